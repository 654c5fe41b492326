package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// testNames: names are created, renamed, dropped and cleared, and stay so after
// reopening.
func testNames(t *testing.T, c Config, s store.Store) {
	spec := c.Specs[0]
	names := []string{"", "a", "b", "with\x00zero", "\xff\xfe", "long" + string(make([]byte, 1000))}
	for i, name := range names {
		add(t, create(t, s, name, spec), Keys(name, i+1))
	}
	if _, err := s.Create(ctx, "a", spec); !errors.Is(err, store.ErrExists) {
		t.Errorf("making it twice: %v", err)
	}
	if err := s.Rename(ctx, "nobody", "b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("renaming nothing: %v", err)
	}
	if err := s.Rename(ctx, "a", "a"); err != nil {
		t.Errorf("renaming to the same: %v", err)
	}
	if err := s.Rename(ctx, "a", "c"); err != nil {
		t.Error(err)
	}
	if err := s.Rename(ctx, "b", "c"); err != nil { // in its place
		t.Error(err)
	}
	mustNotFind(t, s, "a")
	mustNotFind(t, s, "b")
	commit(t, s)
	want := []string{"", "c", names[3], names[4], names[5]}
	for range 2 {
		mustHave(t, open(t, s, "c"), Keys("b", 3))
		for i := range 3 {
			mustHave(t, open(t, s, names[3+i]), Keys(names[3+i], 4+i))
		}
		if got := slices.Sorted(maps.Keys(listed(t, s, 2))); !slices.Equal(got, slices.Sorted(slices.Values(want))) || count(t, s) != len(want) {
			t.Errorf("%q are listed, %d in all, want %q", got, count(t, s), want)
		}
		s = c.reopened(t, s)
	}
	if err := s.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	commit(t, s)
	for range 2 {
		if count(t, s) != 0 || len(listed(t, s, 10)) != 0 {
			t.Errorf("%d names after Clear", count(t, s))
		}
		mustNotFind(t, s, "c")
		s = c.reopened(t, s)
	}
	if used, _ := s.Usage(); used != 0 {
		t.Errorf("%d bytes in use by nothing", used)
	}
}

// listed returns all names, and how often each was listed.
func listed(t *testing.T, s store.Store, count int) map[string]int {
	seen := map[string]int{}
	for cursor := uint64(0); ; {
		names, next, err := s.List(cursor, count)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			seen[name]++
		}
		if cursor = next; cursor == 0 {
			return seen
		}
	}
}

// testList: names that exist throughout are listed, while others come and go.
func testList(t *testing.T, c Config, s store.Store) {
	spec := c.Specs[0]
	const stay = 300
	for i := range stay {
		create(t, s, fmt.Sprint("stays", i), spec)
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Create(ctx, fmt.Sprint("comes", i), spec); err != nil {
				t.Error(err)
			}
			if i >= 20 {
				s.Drop(ctx, fmt.Sprint("comes", i-20))
			}
		}
	})
	for _, count := range []int{1, 10, 1000} {
		seen := listed(t, s, count)
		for i := range stay {
			if seen[fmt.Sprint("stays", i)] == 0 {
				t.Errorf("count %d: name %d is not listed", count, i)
			}
		}
	}
	close(stop)
	wait.Wait()
	if names, _, _ := s.List(0, 10); len(names) < 10 {
		t.Errorf("%d names of the 10 asked for, while there are %d", len(names), count(t, s))
	}
}

// testSwap: a swap is atomic for all callers.
func testSwap(t *testing.T, c Config, s store.Store) {
	spec := c.Specs[0]
	add(t, create(t, s, "old", spec), Keys("old", 10))
	add(t, create(t, s, "new", spec), Keys("new", 10))
	if err := s.Swap(ctx, "old", "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("swapping with nothing: %v", err)
	}
	var wait sync.WaitGroup
	stop := make(chan struct{})
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"old", "new"} {
				if _, err := s.Open([]byte(name)); err != nil {
					t.Errorf("%q, while it was swapped: %v", name, err)
					return
				}
			}
		}
	})
	for range 1001 {
		if err := s.Swap(ctx, "old", "new"); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wait.Wait()
	commit(t, s)
	for range 2 {
		mustHave(t, open(t, s, "old"), Keys("new", 10))
		mustHave(t, open(t, s, "new"), Keys("old", 10))
		s = c.reopened(t, s)
	}
}

func testTexts(t *testing.T, c Config, s store.Store) {
	spec := c.Specs[0]
	create(t, s, "filter", spec)
	create(t, s, "replaced", spec)
	if _, err := s.Get([]byte("filter")); !errors.Is(err, store.ErrWrongKind) {
		t.Errorf("Get of a filter: %v", err)
	}
	if _, err := s.Get([]byte("nobody")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	values := map[string]string{"replaced": "now a text", "empty": "", "binary": "\x00\xff"}
	for name, value := range values {
		if err := s.Set(ctx, name, []byte("before")); err != nil {
			t.Fatal(err)
		}
		if err := s.Set(ctx, name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, s)
	for range 2 {
		for name, want := range values {
			got, err := s.Get([]byte(name))
			if err != nil || string(got) != want {
				t.Errorf("Get(%q) = %q, %v, want %q", name, got, err, want)
			}
			if kind, _, _ := s.Kind([]byte(name)); kind != store.String {
				t.Errorf("Kind(%q) = %v", name, kind)
			}
			if _, err := s.Open([]byte(name)); !errors.Is(err, store.ErrWrongKind) {
				t.Errorf("Open(%q): %v", name, err)
			}
		}
		if _, err := s.Create(ctx, "empty", spec); !errors.Is(err, store.ErrExists) {
			t.Errorf("a filter where there is a text: %v", err)
		}
		s = c.reopened(t, s)
	}
	if count(t, s) != 4 {
		t.Errorf("%d names", count(t, s))
	}
}

// testExpiry: names expire when they should, whether or not anybody looks, and
// OnEnd's function is called.
func testExpiry(t *testing.T, c Config, s store.Store) {
	spec := c.Specs[0]
	ended := make(chan string, 10)
	s.OnEnd(func(name string) { ended <- name })
	if err := s.Expire(ctx, "nobody", time.Now()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Expire of nothing: %v", err)
	}
	at := time.Now().Add(10 * soon).Truncate(time.Millisecond)
	spec.Expires = at
	for _, name := range []string{"ends", "stays", "is put off", "is renamed"} {
		create(t, s, name, spec)
	}
	if _, expires, _ := s.Kind([]byte("ends")); !expires.Equal(at) {
		t.Errorf("it ends at %v, want %v", expires, at)
	}
	if got := open(t, s, "ends").Info().Expires; !got.Equal(at) {
		t.Errorf("Info says that it ends at %v, want %v", got, at)
	}
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	s.Expire(ctx, "stays", time.Time{})
	s.Expire(ctx, "is put off", later)
	s.Rename(ctx, "is renamed", "renamed")
	commit(t, s)
	select {
	case name := <-ended:
		if time.Now().Before(at) || name != "ends" && name != "renamed" {
			t.Errorf("%q has ended at %v, before %v", name, time.Now(), at)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing ended in ten seconds")
	}
	for range 2 {
		mustNotFind(t, s, "ends")
		mustNotFind(t, s, "renamed")
		if _, expires, _ := s.Kind([]byte("stays")); !expires.IsZero() {
			t.Errorf("what stays ends at %v", expires)
		}
		if _, expires, _ := s.Kind([]byte("is put off")); !expires.Equal(later) {
			t.Errorf("what is put off ends at %v, want %v", expires, later)
		}
		s = c.reopened(t, s)
	}
	if seen := listed(t, s, 100); len(seen) != 2 {
		t.Errorf("%v are listed", seen)
	}
	spec.Expires = time.Now().Add(-time.Hour)
	create(t, s, "past", spec)
	mustNotFind(t, s, "past")
	spec.Expires = time.Time{}
	create(t, s, "past", spec)
	open(t, s, "past")
}

// testMemory: the limit applies to new filters and to growth, and dropping a filter
// releases its memory.
func testMemory(t *testing.T, c Config) {
	const limit = 1 << 20
	s := c.Limited(t, limit)
	for _, spec := range c.Specs {
		huge := spec
		huge.Capacity = 1 << 32
		if _, err := s.Create(ctx, "huge", huge); !errors.Is(err, store.ErrMemory) {
			t.Errorf("%s: a filter for 2^32 keys: %v", specName(spec), err)
		}
		if used, max := s.Usage(); used != 0 || max != limit {
			t.Errorf("%s: %d of %d bytes are in use", specName(spec), used, max)
		}
		if spec.Growth != 0 {
			f := create(t, s, "grows", spec)
			keys := Keys("many", 100_000)
			var err error
			taken := [][]byte{}
			for round := 0; err == nil && round < 100; round++ {
				for i := range keys {
					keys[i] = fmt.Appendf(keys[i][:0], "%d/%d", round, i)
				}
				isNew := make([]bool, len(keys))
				var n int
				n, err = f.Add(ctx, keys, isNew)
				for _, key := range keys[max(n-10, 0):n] {
					taken = append(taken, slices.Clone(key))
				}
			}
			used, _ := s.Usage()
			if !errors.Is(err, store.ErrMemory) || used > limit || used < limit/8 {
				t.Errorf("%s: grown until %v, with %d of %d bytes in use", specName(spec), err, used, limit)
			}
			mustHave(t, f, taken)
		} else {
			var err error
			n := 0
			for ; err == nil && n < 100_000; n++ {
				_, err = s.Create(ctx, fmt.Sprint(n), spec)
			}
			if used, _ := s.Usage(); !errors.Is(err, store.ErrMemory) || used > limit || used < limit/2 {
				t.Errorf("%s: %d filters, then %v, with %d of %d bytes in use", specName(spec), n, err, used, limit)
			}
		}
		if err := s.Clear(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if c.Texts {
		if err := s.Set(ctx, "text", make([]byte, limit)); !errors.Is(err, store.ErrMemory) {
			t.Errorf("a text of %d bytes: %v", limit, err)
		}
	}
	if used, _ := s.Usage(); used != 0 {
		t.Errorf("%d bytes in use by nothing", used)
	}
}
