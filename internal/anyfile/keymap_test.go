package anyfile

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalizers(t *testing.T) {
	for _, test := range []struct{ form, line, want string }{
		{"lower", "AbZ[`{Ä\xff", "abz[`{Ä\xff"},
		{"upper", "aBz[`{ä\xff", "ABZ[`{ä\xff"},
		{"trim", " \t\r\v\f a b \r", "a b"},
		{"trim", " ", ""},
		{"trim", "\u00a0x", "\u00a0x"},
		{"hex", "DEADbeef", "deadbeef"},
		{"hex", "0xDE:AD-be ef", "deadbeef"},
		{"hex", "0x", "0x"},
		{"hex", "0xyz", "0xyz"},
		{"hex", "not hex", "not hex"},
		{"hex", "", ""},
		{"hex", "::", "::"},

		{"url", "HTTP://Example.COM", "http://example.com/"},
		{"url", "http://example.com:80/a", "http://example.com/a"},
		{"url", "http://example.com:443/a", "http://example.com:443/a"},
		{"url", "https://example.com:443", "https://example.com/"},
		{"url", "wss://example.com:443", "wss://example.com/"},
		{"url", "ftp://example.com:21/x", "ftp://example.com/x"},
		{"url", "http://example.com:", "http://example.com/"},
		{"url", "gopher://example.com:70", "gopher://example.com:70/"},
		{"url", "http://User:Pass@Example.com/", "http://User:Pass@example.com/"},
		{"url", "http://a@b@Example.com/", "http://a@b@example.com/"},
		{"url", "http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"},
		{"url", "http://[2001:DB8::1]", "http://[2001:db8::1]/"},
		{"url", "http://[2001:DB8::1]:8080", "http://[2001:db8::1]:8080/"},
		{"url", "http://2001:db8::80", "http://2001:db8::80/"},
		{"url", "http://A::80", "http://a::80/"},
		{"url", "http://example.com/A/B", "http://example.com/A/B"},
		{"url", "http://example.com/%7euser/%2f%3a", "http://example.com/~user/%2F%3A"},
		{"url", "http://e%58ample.com/", "http://example.com/"},
		{"url", "http://%c3%a4.com/", "http://%C3%A4.com/"},
		{"url", "http://example.com/100%", "http://example.com/100%"},
		{"url", "http://example.com/%4%31", "http://example.com/%4%31"},
		{"url", "http://example.com?q=%41%26", "http://example.com/?q=A%26"},
		{"url", "http://example.com/?", "http://example.com/?"},
		{"url", "http://example.com/?b=2&a=1", "http://example.com/?b=2&a=1"},
		{"url", "http://example.com/#frag", "http://example.com/"},
		{"url", "http://example.com#?x", "http://example.com/"},
		{"url", "http://example.com/?q#frag?x", "http://example.com/?q"},
		// RFC 3986, section 5.2.4 and 5.4.
		{"url", "http://a/b/c/./../../g", "http://a/g"},
		{"url", "http://a/b/c/.", "http://a/b/c/"},
		{"url", "http://a/b/c/..", "http://a/b/"},
		{"url", "http://a/../../g", "http://a/g"},
		{"url", "http://a/b/../c/../..", "http://a/"},
		{"url", "http://a/.", "http://a/"},
		{"url", "http://a/b/c/g.", "http://a/b/c/g."},
		{"url", "http://a/b/c/..g", "http://a/b/c/..g"},
		{"url", "http://a/b/%2E%2e/c", "http://a/c"},
		{"url", "http://a//b/../c", "http://a//c"},
		{"url", "http://a/b/?x=../y", "http://a/b/?x=../y"},
		{"url", "file:///etc/../x", "file:///x"},
		// Not URLs with an authority.
		{"url", "example.com/A/../B", "example.com/A/../B"},
		{"url", "mailto:A@B.C", "mailto:A@B.C"},
		{"url", "/?u=HTTP://X", "/?u=HTTP://X"},
		{"url", "1a://X", "1a://X"},
		{"url", "://X", "://X"},
		{"url", "", ""},
	} {
		got := string(normalizers[test.form]([]byte("kept "), []byte(test.line)))
		if got != "kept "+test.want {
			t.Errorf("%s of %q is %q, want %q", test.form, test.line, got, test.want)
		}
	}
}

// TestNormalizersAreIdempotent: a line in normal form is unchanged, whatever its bytes;
// so a file that was normalised before gives the same keys.
func TestNormalizersAreIdempotent(t *testing.T) {
	parts := []string{"http", "HTTPS", "://", "a", "B", "%", "4", "1", "%41", "%2f", "%2E", "..", ".", "/", "?", "#", ":", "80", "443", "@", "[", "]", " ", "0x", "\xff", "ä"}
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "line"), ""))
		if rapid.Bool().Draw(t, "url") {
			line = append([]byte("http://"), line...)
		}
		for name, form := range normalizers {
			once := form(nil, line)
			if again := form(nil, once); !bytes.Equal(once, again) {
				t.Fatalf("%s of %q is %q, and of that %q", name, line, once, again)
			}
		}
	})
}

func TestKeyMap(t *testing.T) {
	input := [][]byte{[]byte(" HTTP://A "), []byte(""), []byte("x")}
	keys := func(funnel, normalize string) []string {
		t.Helper()
		m, err := NewKeyMap(funnel, normalize)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for range 2 { // the second time in reused memory
			got, err := m.Of(input)
			if err != nil {
				t.Fatal(err)
			}
			all = nil
			for _, key := range got {
				all = append(all, string(key))
			}
		}
		return all
	}
	for _, test := range []struct {
		funnel, normalize string
		want              []string
	}{
		{"", "", []string{" HTTP://A ", "", "x"}},
		{"", "trim", []string{"HTTP://A", "", "x"}},
		{"", "trim,url,upper", []string{"HTTP://A/", "", "X"}},
		{"unencoded-chars", "trim,url,upper", []string{"H\x00T\x00T\x00P\x00:\x00/\x00/\x00A\x00/\x00", "", "X\x00"}},
	} {
		if got := keys(test.funnel, test.normalize); !slices.Equal(got, test.want) {
			t.Errorf("%q %q: %q, want %q", test.funnel, test.normalize, got, test.want)
		}
	}
	for _, bad := range [][2]string{{"tunnel", ""}, {"", "url,"}, {"", "URL"}} {
		if _, err := NewKeyMap(bad[0], bad[1]); err == nil {
			t.Errorf("%q makes a map", bad)
		}
	}
	m, err := NewKeyMap("long", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Of(input); err == nil {
		t.Error("text was accepted as a long")
	}
}
