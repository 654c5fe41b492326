package redisstore_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/bloomery/bloom/store/storetest"
)

// madeFile returns a filter's file, and its dump's header.
func madeFile(t *testing.T, keys int) (header, file []byte) {
	t.Helper()
	f, err := bloom.New(uint64(keys), 0.001)
	if err != nil {
		t.Fatal(err)
	}
	f.SetMeta(map[string]string{"source": "a test"})
	for _, key := range storetest.Keys("filed", keys) {
		f.Add(key)
	}
	if file, err = f.AppendBinary(nil); err != nil {
		t.Fatal(err)
	}
	h := store.DumpHeader{Spec: store.Spec{Kind: store.Paired, Public: true, Capacity: uint64(keys), Rate: 0.001}, Items: f.Added(), Bytes: uint64(len(file))}
	return h.Encode(), file
}

// TestPushPull: a file that is loaded and dumped comes back byte for byte, however it was
// cut, and by whatever store each part was loaded. Until it is complete, nothing is said
// to be absent.
func TestPushPull(t *testing.T) {
	header, file := madeFile(t, 2_000_000) // 3.6 MB, in 57 chunks
	keys := storetest.Keys("filed", 1000)
	config := redisstore.Config{Prefix: newPrefix()}
	var stores []*redisstore.Store
	for i := range 2 {
		s := openStore(t, connect(t, cluster(t)[i].Address), config)
		t.Cleanup(func() { s.Clear(ctx); s.Close() })
		stores = append(stores, s)
	}
	if _, err := stores[0].Load(ctx, "f", header); err != nil {
		t.Fatal(err)
	}
	for at, i := 0, 0; at < len(file); i++ {
		s := stores[i%2]
		f, err := s.Open([]byte("f"))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Contains(ctx, keys[:1], make([]bool, 1)); !errors.Is(err, store.ErrChunk) {
			t.Fatalf("a lookup after %d of %d bytes: %v", at, len(file), err)
		}
		if _, err := f.Add(ctx, keys[:1], make([]bool, 1)); !errors.Is(err, store.ErrChunk) {
			t.Fatalf("an add after %d of %d bytes: %v", at, len(file), err)
		}
		if f, err = s.Open([]byte("f")); err != nil {
			t.Fatal(err)
		}
		if info := f.Info(); info.Loaded != uint64(at) || info.ToLoad != uint64(len(file)) {
			t.Fatalf("after %d of %d bytes: %+v", at, len(file), info)
		}
		if f, err = s.Open([]byte("f")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Dump(0); !errors.Is(err, store.ErrChunk) {
			t.Fatalf("a dump after %d of %d bytes: %v", at, len(file), err)
		}
		end := min(at+[]int{12288, 1, 65_000, 700_001}[i%4], len(file))
		if f, err = s.Open([]byte("f")); err != nil {
			t.Fatal(err)
		}
		if err := f.Load(ctx, int64(end+1), file[at:end]); err != nil {
			t.Fatalf("bytes %d to %d: %v", at, end, err)
		}
		at = end
	}
	for _, s := range stores {
		f, err := s.Open([]byte("f"))
		if err != nil {
			t.Fatal(err)
		}
		found := make([]bool, len(keys))
		if err := f.Contains(ctx, keys, found); errors.Is(err, store.ErrChunk) { // it heard of the end just now
			f, _ = s.Open([]byte("f"))
			err = f.Contains(ctx, keys, found)
			if err != nil {
				t.Fatal(err)
			}
		}
		if slices.Contains(found, false) {
			t.Error("keys of the file are missing")
		}
		var dumped []byte
		next, chunk, err := f.Dump(0)
		if err != nil || !bytes.Equal(chunk, header) {
			t.Errorf("the header is % x, %v, want % x", chunk, err, header)
		}
		for next != 0 {
			if next, chunk, err = f.Dump(next); err != nil {
				t.Fatal(err)
			}
			dumped = append(dumped, chunk...)
		}
		if !bytes.Equal(dumped, file) {
			t.Errorf("%d bytes came back, not the %d of the file", len(dumped), len(file))
		}
	}
}

// TestLoadDamaged: a file that was damaged on its way is refused at its end.
func TestLoadDamaged(t *testing.T) {
	header, file := madeFile(t, 200_000)
	s := openStore(t, connect(t, cluster(t)[0].Address), redisstore.Config{Prefix: newPrefix()})
	t.Cleanup(func() { s.Clear(ctx); s.Close() })
	for _, at := range []int{10, 5000, 12288, 100_000, len(file) - 1} {
		damaged := slices.Clone(file)
		damaged[at] ^= 1
		f, err := s.Load(ctx, "f", header)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Load(ctx, int64(len(file)+1), damaged); !errors.Is(err, store.ErrChunk) {
			t.Errorf("byte %d: %v", at, err)
		}
		if f, err = s.Open([]byte("f")); err == nil {
			err = f.Contains(ctx, storetest.Keys("filed", 1), make([]bool, 1))
		}
		if !errors.Is(err, store.ErrChunk) && !errors.Is(err, redisstore.ErrDamaged) {
			t.Errorf("a lookup in what is damaged at byte %d: %v", at, err)
		}
		if n, err := s.Drop(ctx, "f"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// TestDirectoryLost: when the server that has the names starts without its data, all
// filters are in error, for stores that are open and for new ones, and not "not found".
func TestDirectoryLost(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server.Address)
	s := openStore(t, client, redisstore.Config{})
	defer s.Close()
	f := create(t, s, "f", spec)
	keys := storetest.Keys("k", 10)
	if _, err := f.Add(ctx, keys, make([]bool, 10)); err != nil {
		t.Fatal(err)
	}
	if out, err := server.CLI(ctx, "DEL", "bloomery:{names}"); err != nil || strings.TrimSpace(out) != "1" {
		t.Fatal(out, err)
	}
	for what, err := range map[string]error{
		"a lookup": f.Contains(ctx, keys, make([]bool, 10)),
		"an add":   second(f.Add(ctx, keys, make([]bool, 10))),
		"Kind":     third(s.Kind([]byte("f"))),
		"Len":      second(s.Len()),
		"List":     third(s.List(0, 10)),
		"Open":     second(s.Open([]byte("g"))),
		"Create":   second(s.Create(ctx, "g", spec)),
		"Drop":     second(s.Drop(ctx, "f")),
		"Rename":   s.Rename(ctx, "f", "g"),
		"Swap":     s.Swap(ctx, "f", "g"),
		"Clear":    s.Clear(ctx),
		"New":      second(redisstore.New(ctx, client, redisstore.Config{})),
	} {
		if !errors.Is(err, redisstore.ErrDamaged) || !strings.Contains(err.Error(), "bring that data back") {
			t.Errorf("%s, without the directory: %v", what, err)
		}
	}
	if len(keysAt(t, client, "bloomery:b:*")) == 0 {
		t.Error("the chunks were deleted")
	}
}
