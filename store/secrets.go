package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/bloomery/bloom"
)

// The file of secrets has a line for each: the algorithm, and 16 bytes in hexadecimal.
// There is only one so far.
const secretLine = "siphash-2-4 "

// openSecret reads the store's secret, or creates one if the directory is empty.
func openSecret(d disk, fresh bool) ([]byte, error) {
	file, err := d.Open(secretsName)
	if errors.Is(err, fs.ErrNotExist) && fresh {
		secret := newSecret()
		return secret, put(d, secretsName, func(file diskFile) error {
			return writeAll(file, []byte(secretLine+hex.EncodeToString(secret)+"\n"))
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the store's secret: %w: restore the file %q from a backup: without it the filters made with it cannot be used", err, secretsName)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return nil, err
	}
	digits, ok := strings.CutPrefix(strings.TrimSpace(string(text)), secretLine)
	secret, err := hex.DecodeString(digits)
	if !ok || err != nil || len(secret) != bloom.SecretBytes {
		return nil, fmt.Errorf("%w: %s: want a line of %q and %d hexadecimal digits: restore the file from a backup", ErrDamaged, secretsName, secretLine, 2*bloom.SecretBytes)
	}
	return secret, nil
}

func newSecret() []byte {
	secret := make([]byte, bloom.SecretBytes)
	rand.Read(secret)
	return secret
}

// fingerprint identifies a secret without revealing it.
func fingerprint(secret []byte) uint64 {
	f, err := bloom.Config{Keys: 1, Rate: 0.5, Secret: secret}.New()
	if err != nil {
		panic(err) // a secret has the right length
	}
	return f.HashIdentity().Key
}
