package human

import (
	"regexp"
	"strconv"
)

// libraryPrefix begins every error of packages bloom, interop and store; inside the tool
// it says nothing. A file's name may end with it, so what comes before matters.
var libraryPrefix = regexp.MustCompile(`(^|: )(?:bloom|interop|store): `)

func TrimPrefixes(text string) string { return libraryPrefix.ReplaceAllString(text, "$1") }

// bareNumber is a number that nobody can read: the library writes those of its
// errors without commas.
var (
	bareNumber = regexp.MustCompile(`\b\d{5,20} (?:bytes|keys|bits|blocks)\b|\b(?:budget is|limit is|limit of) \d{5,20}\b`)
	digits     = regexp.MustCompile(`\d+`)
)

// Error is what an error of the library says, in words and numbers for people.
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
