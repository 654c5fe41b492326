package browser

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/bloomery/bloom/internal/webtest"
)

const root = "../.."

// served has what the reader's tests need: the reader, the golden files, and keys.
func served(t *testing.T, keys [][]byte) string {
	t.Helper()
	return serve(t, map[string]http.Handler{
		"/web/":    http.FileServer(http.Dir("..")),
		"/golden/": http.FileServer(http.Dir(filepath.Join(root, "testdata", "golden"))),
		"/keys": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Write(webtest.Pack(keys))
		}),
	})
}

// lookup is a case as the page gets it.
type lookup struct {
	File   string `json:"file"`
	Secret string `json:"secret"`
	Now    int64  `json:"now"`
}

func lookupOf(t *testing.T, c webtest.Case) string {
	t.Helper()
	text, err := json.Marshal(lookup{"/golden/" + filepath.Base(c.Path), hex.EncodeToString([]byte(c.Secret)), c.Now.UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prepare imports the reader and fetches the keys.
const prepare = `
	globalThis.reader ??= await import('/web/bloomery.js');
	globalThis.shared ??= await import('/web/testdata/answers.mjs');
	globalThis.packed ??= new Uint8Array(await (await fetch('/keys')).arrayBuffer());
	const optionsOf = ({ secret, now }) => ({ now: () => now, ...(secret === '' ? {} : { secret: shared.bytesOfHex(secret) }) });
`

// halves runs a test of each golden file, half of them in each of two tabs.
func halves(t *testing.T, keys [][]byte, test func(t *testing.T, b *tab, c webtest.Case)) {
	address := served(t, keys)
	cases := webtest.Golden(t, root)
	for half, name := range []string{"even", "odd"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t)
			b.open(address + "/blank")
			for i := half; i < len(cases); i += 2 {
				test(t, b, cases[i])
			}
		})
	}
}

// TestGolden: the browser answers as the library does, for every golden file, which it
// opens as a File, the way a page gets it.
func TestGolden(t *testing.T) {
	t.Parallel()
	keys := webtest.Keys(100_000)
	halves(t, keys, func(t *testing.T, b *tab, c webtest.Case) {
		var got string
		b.run(prepare+`
			const one = `+lookupOf(t, c)+`;
			const file = new File([await (await fetch(one.file)).blob()], 'a file');
			return shared.answers(await reader.open(file, optionsOf(one)), packed);
		`, &got)
		webtest.Compare(t, c, keys, got)
	})
}

// TestRange: the same by HTTP Range, and from a File that is not loaded.
func TestRange(t *testing.T) {
	t.Parallel()
	keys := webtest.Keys(16)
	halves(t, keys, func(t *testing.T, b *tab, c webtest.Case) {
		var got struct {
			URL, File           string
			Requests, BytesRead int
		}
		b.run(prepare+`
			const one = `+lookupOf(t, c)+`;
			const told = (found) => found.map((is) => (is ? '1' : '0')).join('');
			const keys = [...shared.unpack(packed)];
			const remote = await reader.openURL(one.file, optionsOf(one));
			const answers = [];
			for (const key of keys) {
				answers.push(await remote.has(key));
			}
			const file = new File([await (await fetch(one.file)).blob()], 'a file');
			const local = await reader.open(file, { ...optionsOf(one), ranges: true });
			return {
				URL: told(answers), File: told(await local.hasMany(keys)),
				Requests: remote.requests, BytesRead: remote.bytesRead,
			};
		`, &got)
		want := webtest.Answers(t, c, keys)
		if got.URL != want || got.File != want {
			t.Errorf("%s: by Range %s, from a File %s, want %s", c.Name, got.URL, got.File, want)
		}
		if c.Name == "filter" && (got.Requests != 1+len(keys) || got.BytesRead != 12_288+512*len(keys)) {
			t.Errorf("%s: %d requests and %d bytes for %d keys", c.Name, got.Requests, got.BytesRead, len(keys))
		}
	})
}
