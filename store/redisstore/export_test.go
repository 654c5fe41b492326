package redisstore

import (
	"testing"
	"time"
)

// WaitReplayed waits until nothing is to be sent again.
func (s *Store) WaitReplayed(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); s.replay != nil && s.replay.inAlarm(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("adds are still to be sent again after a minute")
		}
	}
}
