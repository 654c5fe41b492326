// Package lines is the road from files to lines and back. It opens and decompresses
// files (Source), splits the input into lines (Reader), decides something about every
// line on all CPUs (Pipeline), and writes the selected lines in order (Writer). A
// Reporter prints messages and progress on standard error meanwhile.
//
// A line is any bytes up to a separator, a newline or NUL, and has no length limit.
// Lines that have arrived are never held back for more to come, so that
// 'tail -f | bloomery dedupe' answers at once, and memory does not depend on the
// length of the input.
//
// The package knows nothing of filters: the lines are remembered by a [Seen].
package lines
