package bloom_test

import (
	"fmt"
	"time"

	"github.com/bloomery/bloom"
)

// A queue that delivers a message at least once may soon deliver it again. Messages of
// the last hour are recognised; older ones expire.
func ExampleWindow() {
	clock := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	recent, err := bloom.WindowConfig{
		Keys: 1_000_000, // an hour
		Rate: 0.0001,
		Span: time.Hour,
		Now:  func() time.Time { return clock }, // leave it out for the system's
	}.New()
	if err != nil {
		panic(err)
	}
	receive := func(after time.Duration, id string) {
		clock = clock.Add(after)
		if recent.AddString(id) {
			fmt.Println(clock.Format("15:04"), "handle", id)
		} else {
			fmt.Println(clock.Format("15:04"), "again ", id)
		}
	}
	receive(0, "message 1")
	receive(time.Minute, "message 2")
	receive(50*time.Minute, "message 1")
	receive(50*time.Minute, "message 1") // an hour after the last time it would be forgotten
	receive(76*time.Minute, "message 1")
	// Output:
	// 12:00 handle message 1
	// 12:01 handle message 2
	// 12:51 again  message 1
	// 13:41 again  message 1
	// 14:57 handle message 1
}
