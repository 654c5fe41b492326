package tidy

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// thousands writes 58999 as 58,999.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// TestURLList compares testdata/urls.txt.gz with what testdata/README.md says of
// it. Documents print results over this list, so it must not change unnoticed.
func TestURLList(t *testing.T) {
	file, err := os.Open(filepath.Join(root, "testdata", "urls.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	lines, distinct := 0, map[string]bool{}
	scanner := bufio.NewScanner(io.TeeReader(unzipped, sum))
	for scanner.Scan() {
		lines++
		distinct[scanner.Text()] = true
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "testdata", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| lines | " + thousands(lines) + " |",
		"| distinct lines | " + thousands(len(distinct)) + " |",
		hex.EncodeToString(sum.Sum(nil)),
	} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("testdata/README.md does not say %q, as urls.txt.gz has it", want)
		}
	}
}
