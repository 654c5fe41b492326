// Package lines turns files into lines and lines into output. It opens and decompresses
// files (Source), splits the input into lines (Reader), decides something about every
// line on all CPUs (Pipeline), and writes the selected lines in order (Writer).
// Meanwhile a Reporter prints messages and progress on standard error.
//
// A line is any bytes up to a separator, a newline or NUL, and has no length limit.
// Lines that have arrived are never held back until more arrive, so that
// 'tail -f | bloomery dedupe' answers at once. Memory does not depend on the length of
// the input.
//
// The package knows nothing of filters: the lines are remembered by a [Seen].
package lines
