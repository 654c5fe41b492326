package anyfile

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/lines"
)

// serverSecret precedes the digits in a server's file.
const serverSecret = "siphash-2-4 "

// ReadSecret reads a secret: 16 raw bytes, 32 hexadecimal digits, or the secrets
// file of a server's data directory. No path means no secret.
func ReadSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, lines.FileError(path, err)
	}
	if len(b) == bloom.SecretBytes {
		return b, nil
	}
	digits := strings.TrimSpace(string(b))
	digits = strings.TrimPrefix(digits, serverSecret)
	secret, err := hex.DecodeString(digits)
	if err != nil || len(secret) != bloom.SecretBytes {
		return nil, fmt.Errorf("%s: a secret is %d bytes or %d hexadecimal digits: make one with 'head -c %d /dev/urandom > FILE'",
			path, bloom.SecretBytes, 2*bloom.SecretBytes, bloom.SecretBytes)
	}
	return secret, nil
}

// keyed is a filter that may need a secret.
type keyed interface {
	NeedsSecret() bool
	SetSecret(secret []byte) error
}

func (f *File) NeedsSecret() bool {
	k, ok := f.Filter.(keyed)
	return ok && k.NeedsSecret()
}

// Unlock sets the secret of the filters that need one. It refuses a secret that none of
// them needs, and a filter that needs one if none was given.
func Unlock(secretPath string, files ...*File) error {
	secret, err := ReadSecret(secretPath)
	if err != nil {
		return err
	}
	used := false
	for _, f := range files {
		if !f.NeedsSecret() {
			continue
		}
		if secret == nil {
			return fmt.Errorf("%s: the filter is keyed: give --secret the file that it was built with", f.Path)
		}
		if err := f.Filter.(keyed).SetSecret(secret); err != nil {
			return WithAdvice(fmt.Errorf("%s: %w", f.Path, err))
		}
		used = true
	}
	if secret != nil && !used {
		return fmt.Errorf("%s: the filter is not keyed: leave --secret out", files[0].Path)
	}
	return nil
}
