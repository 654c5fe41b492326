package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/store/redisstore"
	"github.com/bloomery/bloom/store/storetest"
)

// TestCheck: Check finds what is wrong with chunks, and nothing else.
func TestCheck(t *testing.T) {
	client := connect(t, cluster(t)[0].Address)
	prefix := newPrefix()
	s := openStore(t, client, redisstore.Config{Prefix: prefix})
	t.Cleanup(func() { s.Clear(ctx); s.Close() })
	check := func(want ...string) {
		t.Helper()
		var got []string
		c, err := s.Check(ctx, func(text string) { got = append(got, text) })
		if err != nil || c.All() != len(got) || len(got) != len(want) {
			t.Fatalf("%+v, %v, %q, want %q", c, err, got, want)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%q, want %q", got[i], want[i])
			}
		}
	}
	check()
	f := create(t, s, "f", spec)
	create(t, s, "", spec) // a name like any other
	check()
	keys := storetest.Keys("k", 10_000)
	if _, err := f.Add(ctx, keys, make([]bool, len(keys))); err != nil {
		t.Fatal(err)
	}
	check()
	check()
	chunkOf := func(i string) string {
		t.Helper()
		epoch, err := client.Do(ctx, client.B().Hget().Key(prefix+"{names}").Field("nf").Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return prefix + "b:" + epoch + ":" + i
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.Do(ctx, client.B().Setrange().Key(chunkOf("2")).Offset(480).Value(strings.Repeat("\x00", 60_000)).Build()).Error())
	must(client.Do(ctx, client.B().Del().Key(chunkOf("3")).Build()).Error())
	must(client.Do(ctx, client.B().Set().Key(chunkOf("5")).Value("short").Build()).Error())
	must(client.Do(ctx, client.B().Setrange().Key(chunkOf("7")).Offset(24).Value("x").Build()).Error())
	must(client.Do(ctx, client.B().Set().Key(prefix+"b:0123456789abcdef:0").Value("x").Build()).Error())
	must(client.Do(ctx, client.B().Hset().Key(prefix+"{names}:fedcba9876543210").FieldValue().FieldValue("items", "1").Build()).Error())
	wrong := []string{
		`"f": chunk 2 has `, `"f": chunk 3 is gone`, `"f": chunk 5 has 5 bytes, not `, `"f": chunk 7 has the head of another`,
		"the epoch 0123456789abcdef", "the epoch fedcba9876543210",
	}
	check(wrong...)
	check(wrong...) // what was lost stays lost
	if n, err := s.Drop(ctx, "f"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for range 100 { // the chunks are deleted in the background
		if len(keysAt(t, client, prefix+"b:*")) == 30 { // of "", and the one of nobody
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	check(wrong[4:]...)
	must(client.Do(ctx, client.B().Del().Key(prefix+"b:0123456789abcdef:0").Build()).Error())
	must(client.Do(ctx, client.B().Del().Key(prefix+"{names}:fedcba9876543210").Build()).Error())
	check()
}
