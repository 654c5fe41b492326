package human

import (
	"regexp"
	"strconv"
)

// libraryPrefix matches the prefix of the library's errors, which means nothing to users
// of the tool or clients of the server. A file name may end like a prefix, so the match
// includes what precedes it.
var libraryPrefix = regexp.MustCompile(`(^|: )(?:(?:bloom|interop|redisbloom|redisstore|store): )+`)

// TrimPrefixes removes the names of the library's packages from an error's text.
func TrimPrefixes(text string) string { return libraryPrefix.ReplaceAllString(text, "$1") }

// bareNumber is a number without commas, as the library's errors have them.
var (
	bareNumber = regexp.MustCompile(`\b\d{5,20} (?:bytes|keys|bits|blocks)\b|\b(?:budget is|limit is|limit of) \d{5,20}\b`)
	digits     = regexp.MustCompile(`\d+`)
)

// Error returns the text of one of the library's errors with commas in its numbers
// and without the names of packages.
func Error(text string) string {
	text = TrimPrefixes(text)
	return bareNumber.ReplaceAllStringFunc(text, func(found string) string {
		return digits.ReplaceAllStringFunc(found, func(number string) string {
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return number
			}
			return Commas(n)
		})
	})
}
