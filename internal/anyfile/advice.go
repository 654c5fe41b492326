package anyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomery/bloom"
)

// UsageError is a mistake in how the command was called.
type UsageError struct{ error }

func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// WithAdvice adds advice on what to do next to an error about a filter file.
func WithAdvice(err error) error {
	advice := ""
	var where *fs.PathError
	switch {
	case errors.Is(err, bloom.ErrUnclean):
		return err // see unclean
	case errors.As(err, &where) && MissingDirectory(where.Path) != "":
		advice = fmt.Sprintf("there is no directory %s", MissingDirectory(where.Path))
	case errors.Is(err, fs.ErrNotExist):
		advice = "make it with 'bloomery build -o FILE'"
	case errors.Is(err, bloom.ErrFormat):
		advice = "was it made by 'bloomery build', and copied whole?"
	case errors.Is(err, bloom.ErrVersion):
		advice = "a newer bloomery may read it"
	case errors.Is(err, bloom.ErrChecksum):
		advice = "build it again, or use an intact copy"
	case errors.Is(err, bloom.ErrSecret):
		advice = "give --secret the file that the filter was built with"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}

// Unclean adds advice about a file that another process is changing in place, or was
// changing when it was killed: the file is not damaged.
func Unclean(path string, err error) error {
	if !errors.Is(err, bloom.ErrUnclean) {
		return err
	}
	unlock, err := Lock(path)
	if err != nil {
		return err
	}
	unlock()
	return fmt.Errorf("%s: was not closed cleanly: run 'bloomery dedupe --state %s </dev/null' to repair it", path, Quoted(path))
}

// Quoted returns a path quoted for a shell.
func Quoted(path string) string {
	if path == filepath.Clean(path) && !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// MissingDirectory returns the directory of path if it does not exist, otherwise "".
func MissingDirectory(path string) string {
	directory := filepath.Dir(path)
	if _, err := os.Stat(directory); errors.Is(err, fs.ErrNotExist) {
		return directory
	}
	return ""
}
