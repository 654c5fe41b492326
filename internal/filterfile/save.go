package filterfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bloomery/bloom/internal/replace"
)

// Save replaces the file at path with one that write fills.
func Save(path string, write func(io.Writer) (int64, error)) error {
	var writing error
	_, err := replace.Do(replace.At(path), func(file *os.File) error {
		_, writing = write(file)
		return writing
	})
	switch {
	case err == nil || writing != nil: // write's error already says what it was doing
		return writing
	case errors.Is(err, replace.ErrNotRegular):
		err = fmt.Errorf("%s is %w: use WriteTo for a stream", path, err)
	}
	return fmt.Errorf("bloom: saving: %w", err)
}
