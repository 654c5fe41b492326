package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/storetest"
)

// TestBusy adds from many goroutines to filters of all kinds while snapshots are taken
// and names change. Then it opens a copy of the directory, as if the process had been
// killed, and looks for all keys.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	s := open(t, store.LocalConfig{Dir: dir, Level: store.EverySecond})
	const adders, rounds = 4, 30
	names := []string{}
	for i, spec := range allSpecs {
		spec.Capacity = 100_000
		name := fmt.Sprint("filter ", i)
		if _, err := s.Create(ctx, name, spec); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	key := func(adder, round int) [][]byte { return storetest.Keys(fmt.Sprint(adder, " ", round), 700) }
	var wait, snapshots sync.WaitGroup
	stop := make(chan struct{})
	snapshots.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Snapshot(ctx); err != nil {
				t.Error(err)
			}
			s.Create(ctx, fmt.Sprint("passing ", i), allSpecs[i%len(allSpecs)])
			s.Rename(ctx, fmt.Sprint("passing ", i), "the last")
		}
	})
	for adder := range adders {
		wait.Go(func() {
			for round := range rounds {
				for _, name := range names {
					f, err := s.Open([]byte(name))
					if err != nil {
						t.Error(err)
						return
					}
					keys := key(adder, round)
					if n, err := f.Add(ctx, keys, make([]bool, len(keys))); err != nil {
						t.Errorf("%s: %d, %v", name, n, err)
					}
				}
				if err := s.Commit(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	close(stop)
	snapshots.Wait()
	again := open(t, store.LocalConfig{Dir: copied(t, dir)})
	for _, name := range names {
		f, _ := s.Open([]byte(name))
		g, err := again.Open([]byte(name))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := f.Info().Items, g.Info().Items; a != b {
			t.Errorf("%s has %d items, and %d after recovery", name, a, b)
		}
		for adder := range adders {
			for round := range rounds {
				keys := key(adder, round)
				found := make([]bool, len(keys))
				g.Contains(ctx, keys, found)
				for i, is := range found {
					if !is {
						t.Fatalf("%s: %q is lost", name, keys[i])
					}
				}
			}
		}
	}
	had, _ := s.Len()
	if n, _ := again.Len(); n != had {
		t.Errorf("%d names, and %d after recovery", had, n)
	}
}

// copied returns a copy of the directory, as the next process would find it if this one
// were killed now.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	s := open(t, store.LocalConfig{Dir: dir})
	if !s.Recovered().Fresh {
		t.Errorf("a new directory: %+v", s.Recovered())
	}
	if _, err := store.OpenLocal(store.LocalConfig{Dir: dir}); !errors.Is(err, bloom.ErrLocked) {
		t.Errorf("a second store: %v", err)
	}
	if _, err := store.Verify(dir); !errors.Is(err, bloom.ErrLocked) {
		t.Errorf("verifying beside a store: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, "secrets"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secrets: %v, %v", info.Mode(), err)
	}
	f, err := s.Create(ctx, "f", store.Spec{Kind: store.Paired, Capacity: 1000, Rate: 0.01, Level: store.Unlogged})
	if err != nil {
		t.Fatal(err)
	}
	keys := storetest.Keys("kept", 100)
	f.Add(ctx, keys, make([]bool, len(keys)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := s.Commit(ctx); !errors.Is(err, store.ErrStopped) {
		t.Errorf("Commit of a closed store: %v", err)
	}
	found, err := store.Verify(dir)
	if err != nil || found.Values != 1 || found.Fresh {
		t.Errorf("Verify: %+v, %v", found, err)
	}
	if err := store.Repair(dir, func([]string) bool { t.Error("nothing is damaged"); return false }); err != nil {
		t.Error(err)
	}
	s = open(t, store.LocalConfig{Dir: dir})
	if f, err = s.Open([]byte("f")); err != nil {
		t.Fatal(err)
	}
	if f.Info().Level != store.Unlogged || f.Info().Items != 100 {
		t.Errorf("%+v", f.Info())
	}
	s.Close()

	// Another store's secret is noticed, and so is a missing one.
	secrets := filepath.Join(dir, "secrets")
	was, _ := os.ReadFile(secrets)
	os.WriteFile(secrets, []byte("siphash-2-4 "+strings.Repeat("ab", 16)+"\n"), 0o600)
	if _, err := store.OpenLocal(store.LocalConfig{Dir: dir}); !errors.Is(err, bloom.ErrSecret) {
		t.Errorf("another secret: %v", err)
	}
	os.Remove(secrets)
	if _, err := store.OpenLocal(store.LocalConfig{Dir: dir}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no secret: %v", err)
	}
	os.WriteFile(secrets, was, 0o600)
	open(t, store.LocalConfig{Dir: dir})
}
