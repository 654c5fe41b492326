package bloom

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"testing"
)

type hexWord uint64

func (w *hexWord) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*w = hexWord(n)
	return err
}

// TestHashVectors holds our hashing against the values that other programs
// printed.
func TestHashVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors/hash.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		XXH3 []struct {
			Len  int
			Seed hexWord
			Want hexWord `json:"xxh3_64"`
		} `json:"xxh3_64"`
		Sip []struct {
			Len  int
			K0   hexWord `json:"sip_k0"`
			K1   hexWord `json:"sip_k1"`
			Want hexWord `json:"siphash24"`
		} `json:"siphash24"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.XXH3) < 100 || len(vectors.Sip) < 100 {
		t.Fatalf("only %d and %d vectors", len(vectors.XXH3), len(vectors.Sip))
	}
	pattern := make([]byte, 1<<16)
	for i := range pattern {
		pattern[i] = byte(167*i + 13)
	}
	for _, v := range vectors.XXH3 {
		h, _ := NewHasher(uint64(v.Seed), nil)
		checkHash(t, &h, pattern[:v.Len], uint64(v.Want))
	}
	for _, v := range vectors.Sip {
		secret := binary.LittleEndian.AppendUint64(nil, uint64(v.K0))
		secret = binary.LittleEndian.AppendUint64(secret, uint64(v.K1))
		h, err := NewHasher(0, secret)
		if err != nil {
			t.Fatal(err)
		}
		checkHash(t, &h, pattern[:v.Len], uint64(v.Want))
	}
}

// checkHash checks every way to hash the same key.
func checkHash(t *testing.T, h *Hasher, key []byte, want uint64) {
	t.Helper()
	if got := h.Hash(key); got != want {
		t.Errorf("%v of %d bytes = %016x, want %016x", h.id, len(key), got, want)
	}
	if got := h.HashString(string(key)); got != want {
		t.Errorf("%v of a string of %d bytes = %016x, want %016x", h.id, len(key), got, want)
	}
	var one [1]uint64
	if h.fillBytes(one[:], [][]byte{key}); one[0] != want {
		t.Errorf("%v in a batch = %016x, want %016x", h.id, one[0], want)
	}
	if h.fillStrings(one[:], []string{string(key)}); one[0] != want {
		t.Errorf("%v in a batch of strings = %016x, want %016x", h.id, one[0], want)
	}
	if len(key) == 8 {
		if got := h.integer(binary.LittleEndian.Uint64(key)); got != want {
			t.Errorf("%v of an integer = %016x, want %016x", h.id, got, want)
		}
	}
}

// TestSipHashPaper: the example at the end of Aumasson and Bernstein's paper.
func TestSipHashPaper(t *testing.T) {
	secret := make([]byte, SecretBytes)
	message := make([]byte, 15)
	for i := range secret {
		secret[i] = byte(i)
	}
	for i := range message {
		message[i] = byte(i)
	}
	h, err := NewHasher(0, secret)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.Hash(message), uint64(0xa129ca6149be45e5); got != want {
		t.Errorf("SipHash-2-4 = %016x, want %016x", got, want)
	}
}

func TestSecrets(t *testing.T) {
	secret := []byte("0123456789abcdef")
	for _, bad := range [][]byte{{}, secret[:15], append(secret[:16:16], 'x')} {
		if _, err := NewHasher(0, bad); !errors.Is(err, ErrConfig) {
			t.Errorf("a secret of %d bytes: %v, want ErrConfig", len(bad), err)
		}
	}
	if _, err := NewHasher(1, secret); !errors.Is(err, ErrConfig) {
		t.Errorf("seed and secret: %v, want ErrConfig", err)
	}
	h, err := NewHasher(0, secret)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := NewHasher(0, []byte("0123456789abcdeg"))
	if h.id == other.id {
		t.Error("two secrets have one fingerprint")
	}
	plain, _ := NewHasher(0, nil)
	if err := plain.SetSecret(secret); !errors.Is(err, ErrSecret) {
		t.Errorf("unlocking an unkeyed filter: %v, want ErrSecret", err)
	}
	locked := Hasher{id: h.id, locked: true}
	if err := locked.SetSecret([]byte("0123456789abcdeg")); !errors.Is(err, ErrSecret) || !locked.locked {
		t.Errorf("the wrong secret: %v, want ErrSecret and no change", err)
	}
	if err := locked.SetSecret(secret); err != nil || locked.Hash([]byte("k")) != h.Hash([]byte("k")) {
		t.Errorf("the right secret: %v", err)
	}
}
