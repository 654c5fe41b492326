package store

import "time"

// SyncBucket is the upper bound of the first bucket of sync times. The bound of each
// further bucket is twice the one before.
const SyncBucket = 64 * time.Microsecond

// LogStats is what the log has done since the store was opened.
type LogStats struct {
	Bytes   uint64 // written
	Records uint64
	Commits uint64 // calls of Commit
	Writes  uint64 // groups of records, each for all the commits that waited for it

	Syncs    uint64
	SyncTime time.Duration // total

	// SyncBuckets counts syncs by duration: the first up to 64 microseconds, each
	// further one up to twice the one before, the last all longer syncs.
	SyncBuckets [16]uint64
}

// Stats is what a store reports to its operator.
type Stats struct {
	Log      LogStats
	LogBytes uint64 // of the log on the disk, since the newest snapshot

	Snapshots     uint64 // since the store was opened
	SnapshotBytes uint64 // of the newest
	SnapshotAt    time.Time
	SnapshotTime  time.Duration // how long it took

	// SnapshotFailure is the error of the last attempt, nil if it succeeded. A failed
	// snapshot is retried. SnapshotFailures counts failed attempts since the store was opened.
	SnapshotFailure  error
	SnapshotFailures uint64

	Recovered Recovery
	Failure   error // why the store has stopped; nil if it has not
}

// Recovery is what a store found when it was opened.
type Recovery struct {
	Fresh    bool   // the directory was empty
	Snapshot string // the file that was read, and its bytes
	Bytes    uint64
	Values   int // filters and plain values, after recovery

	Segments int    // of the log; their bytes and records, and the adds in them
	LogBytes uint64 //
	Records  uint64
	Adds     uint64

	// TornBytes is the number of bytes after the last record of the file Torn that was
	// replayed. They were being written when the machine or process crashed, and were
	// not acknowledged at the level Always. TornRecords is the number of whole records
	// among them, which follow one that is not whole: the system had written later data
	// before earlier data when the machine crashed. If only the process crashed, the
	// file is damaged there.
	TornBytes   uint64
	TornRecords int
	Torn        string

	// Unfinished filters, which a RESTORE was filling when the process ended, were
	// dropped.
	Unfinished int

	Took time.Duration // including the writes that made sure that all of it is on disk
}

// Recovered returns what was found when the store was opened.
func (l *Local) Recovered() Recovery { return l.recovered }

// Stats returns statistics. It is cheap.
func (l *Local) Stats() Stats {
	s := Stats{Recovered: l.recovered}
	if l.log == nil {
		return s
	}
	s.LogBytes = l.log.bytes()
	l.log.Lock()
	s.Log, s.Failure = l.log.counts, l.log.failure
	l.log.Unlock()
	l.last.Lock()
	s.Snapshots, s.SnapshotBytes, s.SnapshotAt, s.SnapshotTime = l.last.count, l.last.bytes, l.last.at, l.last.took
	s.SnapshotFailure, s.SnapshotFailures = l.last.err, l.last.failures
	l.last.Unlock()
	return s
}
