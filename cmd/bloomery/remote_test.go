package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/rogpeppe/go-internal/testscript"
)

// startServer serves a store in memory and returns its address.
func startServer(t *testing.T, memory uint64, config server.Config) string {
	t.Helper()
	st, err := store.OpenLocal(store.LocalConfig{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	config.Log = slog.New(slog.DiscardHandler)
	s, err := server.New(st, config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, server.ErrStopped) {
			t.Error(err)
		}
		st.Close()
	})
	return l.Addr().String()
}

// setPorts gives a script two ports of this machine that were free just now, in
// PORT and PORT2.
func setPorts(env *testscript.Env) error {
	for _, name := range []string{"PORT", "PORT2"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // not before both are known
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return err
		}
		env.Setenv(name, port)
	}
	return nil
}

// ask sends a server inline commands and returns the first lines of its replies.
func ask(t *testing.T, address string, commands ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	var replies []string
	r := bufio.NewReader(conn)
	for _, c := range commands {
		fmt.Fprintf(conn, "%s\r\n", c)
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		replies = append(replies, strings.TrimSpace(line))
	}
	return strings.Join(replies, " ")
}

// must runs a command of the tool that has to work, and returns what it says.
func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := command(t, args...)
	if code != exitDone {
		t.Fatalf("bloomery %s: exit code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout + stderr
}

// refused runs a command that has to fail with these words.
func refused(t *testing.T, words string, args ...string) {
	t.Helper()
	_, stderr, code := command(t, args...)
	if code != exitError || !strings.Contains(stderr, words) {
		t.Errorf("bloomery %s: exit code %d: %swant %d and %q", strings.Join(args, " "), code, stderr, exitError, words)
	}
}

// savedFilters are files of all kinds that servers have, each with the keys "key
// 0" to "key 999".
func savedFilters(t *testing.T, dir string) (paths []string) {
	t.Helper()
	save := func(name string, filter interop.Filter, write func(io.Writer) error) {
		for i := range 1000 {
			filter.Add(fmt.Appendf(nil, "key %d", i))
		}
		path := filepath.Join(dir, name)
		if err := replaceFile(path, nil, write); err != nil {
			t.Fatal(err)
		}
		filter.Close()
		paths = append(paths, path)
	}
	to := func(w io.WriterTo) func(io.Writer) error {
		return func(to io.Writer) error { _, err := w.WriteTo(to); return err }
	}
	chain := func(keys uint64) *redisbloom.Filter {
		c, err := redisbloom.New(redisbloom.Config{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, many, large := chain(2000), chain(100), chain(20<<20) // the last of more than a chunk
	save("one.redisbloom", one, to(one))
	save("many.redisbloom", many, to(many))
	save("large.redisbloom", large, to(large))
	filter, err := bloom.New(16<<20, 0.01) // more than a chunk
	if err != nil {
		t.Fatal(err)
	}
	save("filter.bloom", filter, to(filter))
	scalable, err := bloom.ScalableConfig{First: 300, Rate: 0.001, Growth: 4}.New()
	if err != nil {
		t.Fatal(err)
	}
	save("scalable.bloom", scalable, to(scalable))
	window, err := bloom.NewWindow(5000, 0.01, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	save("window.bloom", window, to(window))
	return paths
}

// TestPushPull moves filters of all kinds to a server and back.
func TestPushPull(t *testing.T) {
	dir := t.TempDir()
	address := startServer(t, 0, server.Config{})
	for _, path := range savedFilters(t, dir) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			url := "redis://" + address + "/" + name
			must(t, "push", path, url)
			if got := ask(t, address, "BF.EXISTS "+name+" 'key 0'", "BF.EXISTS "+name+" 'key 999'", "BF.EXISTS "+name+" other", "TTL "+name); got != ":1 :1 :0 :-1" {
				t.Errorf("the server answers %s, want two keys of three, and no expiry", got)
			}
			back := filepath.Join(dir, "back-"+name)
			must(t, "pull", url, "-o", back)
			sent, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(back)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, sent) {
				at := 0
				for at < min(len(got), len(sent)) && got[at] == sent[at] {
					at++
				}
				t.Errorf("the file came back with %d bytes instead of %d, another from byte %d on", len(got), len(sent), at)
			}
			refused(t, "already exists", "pull", url, "-o", back)
			must(t, "pull", url, "-o", back, "--force")
			refused(t, "already", "push", path, url)
			must(t, "push", path, url, "--force")
			// It lives: it takes keys, and those go with it.
			if got := ask(t, address, "BF.ADD "+name+" other"); got != ":1" {
				t.Errorf("BF.ADD: %s", got)
			}
			must(t, "pull", url, "-o", back, "--force")
			root := newRoot()
			var out strings.Builder
			root.SetArgs([]string{"check", back})
			root.SetIn(strings.NewReader("key 5\nother\nanother\n"))
			root.SetOut(&out)
			if execute(root); out.String() != "key 5\nother\n" {
				t.Errorf("check of what came back prints %q", out.String())
			}
		})
	}
	if got := ask(t, address, "DBSIZE"); got != ":6" {
		t.Errorf("%s names on the server, want 6", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left over: %s", left)
	}
}

func TestPushRefuses(t *testing.T) {
	dir := t.TempDir()
	address := startServer(t, 1<<20, server.Config{})
	url := "redis://" + address + "/"
	paths := map[string]string{}
	for _, path := range savedFilters(t, dir) {
		paths[filepath.Base(path)] = path
	}
	cuckoo, err := bloom.CuckooConfig{Seed: 1}.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := cuckoo.Save(filepath.Join(dir, "cuckoo")); err != nil {
		t.Fatal(err)
	}
	split, err := bloom.NewSplitBlock(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	if err := split.Save(filepath.Join(dir, "split")); err != nil {
		t.Fatal(err)
	}
	keyed, err := bloom.Config{Keys: 100, Rate: 0.01, Secret: make([]byte, bloom.SecretBytes)}.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := keyed.Save(filepath.Join(dir, "keyed")); err != nil {
		t.Fatal(err)
	}
	ask(t, address, "SET plain value")
	refused(t, "cuckoo filters of that hash only", "push", filepath.Join(dir, "cuckoo"), url+"f")
	refused(t, "build one from its keys", "push", filepath.Join(dir, "split"), url+"f")
	refused(t, "secret", "push", filepath.Join(dir, "keyed"), url+"f")
	refused(t, "bytes", "push", paths["large.redisbloom"], url+"f")
	refused(t, "bytes", "push", paths["filter.bloom"], url+"f")
	refused(t, "already", "push", paths["one.redisbloom"], url+"plain")
	refused(t, "WRONGTYPE", "push", paths["one.redisbloom"], url+"plain", "--force")
	refused(t, "names no filter", "push", paths["one.redisbloom"], url)
	refused(t, "name a filter file", "push", url+"f", paths["one.redisbloom"])
	refused(t, "is not a server address", "push", paths["one.redisbloom"], "http://"+address+"/f")
	refused(t, "--ca is for rediss://", "push", "--ca", "x.pem", paths["one.redisbloom"], url+"f")
	if got := ask(t, address, "DBSIZE", "GET plain"); got != ":1 $5" {
		t.Errorf("the server has %s names, want the one that was there", got)
	}

	refused(t, "there is no filter of that name", "pull", url+"f", "-o", filepath.Join(dir, "f"))
	refused(t, "WRONGTYPE", "pull", url+"plain", "-o", filepath.Join(dir, "f"))
	refused(t, "-o FILE", "pull", url+"f")
	if _, err := os.Stat(filepath.Join(dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused pull leaves a file: %v", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	refused(t, "is a server running there?", "pull", "redis://"+l.Addr().String()+"/f", "-o", filepath.Join(dir, "f"))
}

func TestPushWithPassword(t *testing.T) {
	dir := t.TempDir()
	address := startServer(t, 0, server.Config{Password: "sésame/@", ReadOnlyPassword: "look"})
	path, back := savedFilters(t, dir)[0], filepath.Join(dir, "back")
	refused(t, "NOAUTH", "push", path, "redis://"+address+"/f")
	refused(t, "check the password", "push", path, "redis://:wrong@"+address+"/f")
	refused(t, "NOPERM", "push", path, "redis://readonly:look@"+address+"/f")
	said := must(t, "push", "--json", path, "redis://:s%C3%A9same%2F%40@"+address+"/a%20name/%3F")
	if !strings.Contains(said, `"name":"a name/?"`) || strings.Contains(said, "same%2F") {
		t.Errorf("push says %s, want the name as it is, and not the password", said)
	}
	must(t, "pull", "redis://readonly:look@"+address+"/a name/%3F", "-o", back)
	// The password for reading needs no user, as with AUTH.
	must(t, "pull", "redis://:look@"+address+"/a name/%3F", "-o", back, "--force")
	refused(t, "WRONGPASS", "pull", "redis://:wrong@"+address+"/a name/%3F", "-o", back, "--force")
	t.Setenv(passwordVariable, "look")
	must(t, "pull", "redis://"+address+"/a name/%3F", "-o", back, "--force")
	t.Setenv(passwordVariable, "sésame/@")
	must(t, "pull", "redis://"+address+"/a name/%3F", "-o", back, "--force")
	_, stderr, _ := command(t, "pull", "redis://:top:secret@host:port/f", "-o", back, "--force")
	if strings.Contains(stderr, "secret") {
		t.Errorf("the password is in the message %q", stderr)
	}
}

func TestPushThroughTLS(t *testing.T) {
	dir := t.TempDir()
	example := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer example.Close()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: example.Certificate().Raw}), 0o666); err != nil {
		t.Fatal(err)
	}
	address := startServer(t, 0, server.Config{TLS: &tls.Config{Certificates: example.TLS.Certificates}})
	path, back := savedFilters(t, dir)[0], filepath.Join(dir, "back")
	refused(t, "--ca", "push", path, "rediss://"+address+"/f")
	refused(t, "does the server use TLS there? then write rediss://", "push", path, "redis://"+address+"/f")
	must(t, "push", "--ca", ca, path, "rediss://"+address+"/f")
	must(t, "pull", "--ca", ca, "rediss://"+address+"/f", "-o", back)
	plain := startServer(t, 0, server.Config{})
	refused(t, "", "push", "--ca", ca, path, "rediss://"+plain+"/f")
}

// TestPullIntoPlace: what is not whole never gets the name.
func TestPullIntoPlace(t *testing.T) {
	dir := t.TempDir()
	path := savedFilters(t, dir)[4] // a scalable
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := dumpHeaderOf(file[:fileHeadBytes], nil)
	if !store.IsDumpHeader(header) || header.redisBloom() || header.fileBytes() != int64(len(file)) {
		t.Fatalf("the header of a file of %d bytes says %d", len(file), header.fileBytes())
	}
	out := filepath.Join(dir, "out")
	write := func(content []byte) error {
		return replaceFile(out, nil, func(w io.Writer) error {
			w.Write(content)
			return header.verify(w)
		})
	}
	for _, at := range []int{0, 100, fileHeadBytes + 5, len(file) - 1} {
		damaged := bytes.Clone(file)
		damaged[at] ^= 1
		if err := write(damaged); err == nil {
			t.Errorf("a file with byte %d damaged gets the name", at)
		}
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after damaged files: %v", err)
	}
	if err := write(file); err != nil {
		t.Error(err)
	}
}

// TestDumpHeaders: which headers are of one filter of RedisBloom's kind, as it grows.
func TestDumpHeaders(t *testing.T) {
	headerOf := func(keys uint64, added int) dumpHeader {
		c, err := redisbloom.New(redisbloom.Config{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		for i := range added {
			c.Add(fmt.Appendf(nil, "key %d", i))
		}
		return c.Header()
	}
	first := headerOf(100, 10)
	if !first.redisBloom() || store.IsDumpHeader(first) {
		t.Errorf("%x is not seen to be RedisBloom's", first)
	}
	for _, tt := range []struct {
		name  string
		later dumpHeader
		want  bool
	}{
		{"the same", first, true},
		{"more keys", headerOf(100, 50), true},
		{"more layers", headerOf(100, 500), true},
		{"another size", headerOf(200, 10), false},
	} {
		if got := first.grewTo(tt.later); got != tt.want {
			t.Errorf("%s: grewTo = %v, want %v", tt.name, got, tt.want)
		}
	}
	ours, err := bloom.New(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := ours.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	for _, h := range []dumpHeader{first, dumpHeaderOf(file.Bytes()[:fileHeadBytes], nil)} {
		if err := h.check(); err != nil {
			t.Errorf("%x is refused: %v", h, err)
		}
		for _, at := range []int{0, 8, 27, 60} { // of RedisBloom's: items, links, bytes, perhaps probes
			damaged := bytes.Clone(h)
			damaged[at] ^= 0x80
			if dumpHeader(damaged).check() == nil {
				t.Errorf("%x passes, with byte %d damaged", damaged, at)
			}
		}
	}
	if headerOf(100, 500).grewTo(first) {
		t.Error("a chain loses no layers")
	}
	endless := store.DumpHeader{Spec: store.Spec{Kind: store.Paired}, Bytes: 1 << 63}.Encode()
	for _, junk := range []string{"", "bloomdmp", string(endless), "hello, this is no header of a dump at all, but is long enough to be one"} {
		if h := dumpHeader(junk); h.redisBloom() || h.check() == nil {
			t.Errorf("%q is taken for a header", junk)
		}
	}
}

// TestPullKeyed: a filter under the server's secret leaves it without the secret,
// and comes back.
func TestPullKeyed(t *testing.T) {
	dir := t.TempDir()
	address := startServer(t, 0, server.Config{})
	url, path := "redis://"+address+"/f", filepath.Join(dir, "f")
	if got := ask(t, address, "BF.RESERVE f 0.01 100 LAYOUT PAIRED", "BF.ADD f a"); got != "+OK :1" {
		t.Fatal(got)
	}
	if _, stderr, code := command(t, "pull", url, "-o", path); code != exitDone || !strings.Contains(stderr, "is hashed with the server's secret: to look keys up, give --secret") {
		t.Errorf("pull: %d, %s", code, stderr)
	}
	refused(t, "give --secret", "check", path)
	ask(t, address, "DEL f")
	must(t, "push", path, url)
	if got := ask(t, address, "BF.EXISTS f a", "BF.EXISTS f b", "BF.ADD f b"); got != ":1 :0 :1" {
		t.Errorf("back again it answers %s", got)
	}
	other := startServer(t, 0, server.Config{})
	refused(t, "secret of another store", "push", path, "redis://"+other+"/f")
}

// TestPushInterrupted: what was uploaded is removed again.
func TestPushInterrupted(t *testing.T) {
	address := startServer(t, 0, server.Config{})
	path := savedFilters(t, t.TempDir())[2] // of several chunks
	f, err := (&anyfile.Options{}).Open(path, anyfile.ToRead)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := dumpOf(f)
	if err != nil {
		t.Fatal(err)
	}
	to, err := (&remoteFlags{}).connect("redis://" + address + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	names, chunks := "", 0
	err = to.upload(ctx, d, false, false, func(int) {
		if chunks++; chunks == 2 {
			names = ask(t, address, "DBSIZE")
			interrupt()
		}
	})
	if !errors.Is(err, context.Canceled) || names != ":1" {
		t.Errorf("interrupted with %s names on the server: %v", names, err)
	}
	if got := ask(t, address, "DBSIZE"); got != ":0" {
		t.Errorf("%s names are left", got)
	}
}

func TestPushThroughSocket(t *testing.T) {
	dir := t.TempDir()
	address := startServer(t, 0, server.Config{Password: "top"})
	l, err := net.Listen("unix", filepath.Join(dir, "a b.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // a socket that leads to the server
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", address)
			if err != nil {
				from.Close()
				continue
			}
			go func() { io.Copy(to, from); to.Close() }()
			go func() { io.Copy(from, to); from.Close() }()
		}
	}()
	path, back := savedFilters(t, dir)[0], filepath.Join(dir, "back")
	url := "unix://:top@" + filepath.ToSlash(dir) + "/a%20b.sock/a%2Fname"
	must(t, "push", path, url)
	must(t, "pull", url, "-o", back)
	must(t, "pull", "redis://:top@"+address+"/a%2Fname", "-o", back, "--force")
	refused(t, "no such file", "pull", "unix://"+filepath.ToSlash(dir)+"/no.sock/x", "-o", back, "--force")
	refused(t, "unix:///PATH/NAME", "pull", "unix://host/x", "-o", back, "--force")
}
