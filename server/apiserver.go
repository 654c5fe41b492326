package server

import (
	"time"

	"github.com/bloomery/bloom/store"
)

// A totalsJSON is what the server counts, and holds, at a moment.
type totalsJSON struct {
	Time        int64    `json:"time" doc:"in milliseconds since 1970"`
	Uptime      float64  `json:"uptime_seconds"`
	Names       int      `json:"names" doc:"filters and values"`
	Clients     int      `json:"clients" doc:"connections of RESP"`
	Commands    int64    `json:"commands" doc:"executed since the start, as are those that follow"`
	KeysNew     int64    `json:"keys_new" doc:"keys added that were new"`
	KeysSeen    int64    `json:"keys_seen" doc:"keys added that were already there"`
	KeysFound   int64    `json:"keys_found" doc:"keys looked up and found"`
	KeysAbsent  int64    `json:"keys_absent" doc:"keys looked up that were certainly not there"`
	KeysRemoved int64    `json:"keys_removed" doc:"keys removed"`
	KeysRefused int64    `json:"keys_refused" doc:"removals refused, as the key was certainly not there"`
	BytesIn     int64    `json:"bytes_in" doc:"received"`
	BytesOut    int64    `json:"bytes_out" doc:"sent"`
	Memory      uint64   `json:"memory_bytes" doc:"of all filters and values"`
	Log         uint64   `json:"log_bytes" doc:"of the log since the newest snapshot"`
	Median      *float64 `json:"p50_seconds" doc:"half of the batches of the last second took no longer, up to the next bound of bloomery_batch_seconds; null: there were none, or too slow ones"`
	Slowest     *float64 `json:"p99_seconds" doc:"the same for 99 of 100 batches"`
}

// A serverJSON is what is known of the server.
type serverJSON struct {
	Version     string     `json:"version"`
	Started     int64      `json:"started" doc:"in milliseconds since 1970"`
	Access      string     `json:"access" doc:"what the request's password grants: full or read"`
	Password    bool       `json:"password" doc:"whether a password is set"`
	Remote      bool       `json:"remote" doc:"whether the filters are on other machines"`
	Durability  string     `json:"durability" doc:"as --durability says; memory: nothing is kept when the server stops"`
	Stopped     string     `json:"stopped,omitempty" doc:"why the store no longer acknowledges anything"`
	MemoryLimit uint64     `json:"memory_limit_bytes" doc:"0: none"`
	Resident    uint64     `json:"resident_bytes" doc:"memory of the process"`
	MostClients int        `json:"clients_limit"`
	Layout      string     `json:"layout" doc:"of filters that do not ask for one"`
	Snapshot    *savedJSON `json:"snapshot" doc:"null: this store writes none"`
	Totals      totalsJSON `json:"totals"`
}

// A savedJSON is what is known of snapshots.
type savedJSON struct {
	InProgress bool    `json:"in_progress" doc:"one that was asked for is being written"`
	At         int64   `json:"at,omitempty" doc:"when the newest was written, in milliseconds since 1970; missing: none yet"`
	Bytes      uint64  `json:"bytes"`
	Took       float64 `json:"took_seconds"`
	Failure    string  `json:"failure,omitempty" doc:"why the last attempt failed; it is repeated"`
	Recovery   float64 `json:"recovery_seconds" doc:"from the start until the data was read"`
}

// getServer describes the server.
func getServer(q *apiRequest) (any, error) {
	s := q.server
	_, most := s.store.Usage()
	j := serverJSON{
		Version: s.config.Version, Started: s.start.UnixMilli(), Access: "full", Password: s.config.Password != "", Remote: s.isRemote(),
		Durability: s.config.Durability, MemoryLimit: most, Resident: residentBytes(), MostClients: s.limits.Load().Clients,
		Layout: s.filter.Load().Kind.String(), Totals: s.totals(time.Now()),
	}
	if q.access < accessFull {
		j.Access = "read"
	}
	if st, ok := s.store.(store.Statistician); ok {
		if failure := st.Stats().Failure; failure != nil {
			j.Stopped = reason(failure)
		}
	}
	if st, ok := s.snapshotter(); ok {
		stats := st.Stats()
		j.Snapshot = &savedJSON{InProgress: s.saving().underway(), Bytes: stats.SnapshotBytes, Took: stats.SnapshotTime.Seconds(),
			Recovery: stats.Recovered.Took.Seconds()}
		if !stats.SnapshotAt.IsZero() {
			j.Snapshot.At = stats.SnapshotAt.UnixMilli()
		}
		if stats.SnapshotFailure != nil {
			j.Snapshot.Failure = reason(stats.SnapshotFailure)
		}
	}
	return j, nil
}

// totals are the counts now; p50 and p99 are those of the last beat of the pulse.
func (s *Server) totals(now time.Time) totalsJSON {
	t := totalsJSON{
		Time: now.UnixMilli(), Uptime: now.Sub(s.start).Seconds(), Names: s.nameCount(), Clients: s.clientCount(),
		Commands: s.stats.commands.Load(), KeysNew: s.metrics.fresh.Load(), KeysSeen: s.metrics.seen.Load(),
		KeysFound: s.stats.hits.Load(), KeysAbsent: s.stats.misses.Load(),
		KeysRemoved: s.metrics.gone.Load(), KeysRefused: s.metrics.notThere.Load(),
		BytesIn: s.stats.bytesIn.Load(), BytesOut: s.stats.bytesOut.Load(),
	}
	t.Memory, _ = s.store.Usage()
	if st, ok := s.store.(store.Statistician); ok {
		t.Log = st.Stats().LogBytes
	}
	return t
}

// A quantiles computes quantiles of what a histogram has counted since the last call.
type quantiles struct{ before []int64 }

// since returns, for each share, the upper bound of the bucket that it falls into, in
// units of perUnit; nil if nothing was counted, or beyond the last bound.
func (q *quantiles) since(h *histogram, perUnit float64, shares ...float64) []*float64 {
	counts, total := make([]int64, len(h.counts)), int64(0)
	for i := range counts {
		now := h.counts[i].Load()
		counts[i] = now
		if q.before != nil {
			counts[i] -= q.before[i]
		}
		total += counts[i]
	}
	if q.before == nil {
		q.before = make([]int64, len(counts))
	}
	for i := range counts {
		q.before[i] += counts[i]
	}
	found := make([]*float64, len(shares))
	for i, share := range shares {
		sum := int64(0)
		for at, n := range counts {
			if sum += n; total > 0 && float64(sum) >= share*float64(total) {
				if at < len(h.bounds) {
					found[i] = finite(float64(h.bounds[at]) / perUnit)
				}
				break
			}
		}
	}
	return found
}
