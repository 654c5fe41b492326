package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/server"
)

// wire passes bytes between clients and a server, and counts them.
type wire struct {
	address  string
	up, down meter
}

// meter counts the bytes of one direction, and calls cut when there are more than most.
type meter struct {
	mu          sync.Mutex
	bytes, most int64
	cut         func()
}

func (m *meter) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += int64(len(b))
	if m.cut != nil && m.bytes > m.most {
		m.cut()
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// reset begins to count again. A nil cut means no limit.
func (m *meter) reset(most int64, cut func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes, m.most, m.cut = 0, most, cut
}

// count returns the bytes since reset.
func (m *meter) count() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// newWire takes one connection after the other.
func newWire(t *testing.T, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &wire{address: l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			done := make(chan struct{})
			go func() {
				io.Copy(io.MultiWriter(&w.down, client), to)
				client.Close()
				close(done)
			}()
			io.Copy(io.MultiWriter(&w.up, to), client)
			to.Close()
			client.Close()
			<-done
		}
	}()
	return w
}

// commandUntil runs a command until ctx ends.
func commandUntil(ctx context.Context, args ...string) (stderr string, code int) {
	var out, err bytes.Buffer
	root := newRoot()
	root.SetContext(ctx)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&err)
	code = execute(root)
	return err.String(), code
}

// TestResume: a push and a pull that were interrupted continue where they were, and the
// file comes back byte for byte.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	path, back := filepath.Join(dir, "f.bloom"), filepath.Join(dir, "back.bloom")
	filter, err := bloom.New(64<<20, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		filter.Add(fmt.Appendf(nil, "key %d", i))
	}
	if err := filter.Save(path); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(len(want))
	server := startServer(t, 0, server.Config{})
	w := newWire(t, server)
	url := "redis://" + w.address + "/f"

	ctx, cut := context.WithTimeout(t.Context(), time.Minute)
	defer cut()
	w.up.reset(total/2, cut)
	if stderr, code := commandUntil(ctx, "push", "--resume", path, url); code != exitInterrupted || !strings.Contains(stderr, "run the command again") {
		t.Fatalf("an interrupted push: exit code %d, %s", code, stderr)
	}
	w.up.reset(0, nil)
	must(t, "push", "--resume", path, url)
	if n := w.up.count(); n > total*3/4 {
		t.Errorf("the second push sent %d bytes of %d", n, total)
	}
	if got := ask(t, server, "DBSIZE"); got != ":1" {
		t.Errorf("%s names are left", got)
	}
	refused(t, "already exists", "push", "--resume", path, url)

	ctx, cut = context.WithTimeout(t.Context(), time.Minute)
	defer cut()
	w.down.reset(total/2, cut)
	if stderr, code := commandUntil(ctx, "pull", "--resume", url, "-o", back); code == exitDone || !strings.Contains(stderr, "run the command again") {
		t.Fatalf("an interrupted pull: exit code %d, %s", code, stderr)
	}
	w.down.reset(0, nil)
	must(t, "pull", "--resume", url, "-o", back)
	if n := w.down.count(); n > total*19/20 { // the first chunk comes again, and the one that was cut
		t.Errorf("the second pull received %d bytes of %d", n, total)
	}
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, %v, not the %d of the file", len(got), err, total)
	}
	if left, _ := filepath.Glob(back + ".*"); left != nil {
		t.Errorf("%v is left", left)
	}

	// What is there is another filter's: the download begins again.
	if err := os.WriteFile(back+".part", bytes.Repeat([]byte("x"), 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "pull", "--resume", "--force", url, "-o", back)
	if got, _ := os.ReadFile(back); !bytes.Equal(got, want) {
		t.Error("what was in the way of a download is in its file")
	}
	// What is there was damaged on the disk.
	damaged := bytes.Clone(want)
	copy(damaged[30<<20:], "damaged")
	if err := os.WriteFile(back+".part", damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	w.down.reset(0, nil)
	must(t, "pull", "--resume", "--force", url, "-o", back)
	if got, _ := os.ReadFile(back); !bytes.Equal(got, want) {
		t.Error("what was damaged before the download continued is in its file")
	}
	if n := w.down.count(); n > total*17/20 {
		t.Errorf("after damage in the middle, the download received %d bytes of %d", n, total)
	}

	chain := savedFilters(t, dir)[0]
	refused(t, "--resume is for our own kinds", "push", "--resume", chain, "redis://"+server+"/chain")
	must(t, "push", chain, "redis://"+server+"/chain")
	refused(t, "--resume is for our own kinds", "pull", "--resume", "redis://"+server+"/chain", "-o", filepath.Join(dir, "chain"))
}
