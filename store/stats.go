package store

import "time"

// SyncBucket is the upper bound of the first bucket of sync times; each further
// one's is twice that of the one before.
const SyncBucket = 64 * time.Microsecond

// LogStats is what the log has done since the store was opened.
type LogStats struct {
	Bytes   uint64 // written
	Records uint64
	Commits uint64 // calls of Commit
	Writes  uint64 // groups of records, each for all the commits that waited for it

	Syncs    uint64
	SyncTime time.Duration // of all of them

	// SyncBuckets counts syncs by the time that they took: the first up to 64
	// microseconds, each further one up to twice that of the one before, the last
	// all that took longer.
	SyncBuckets [16]uint64
}

// Stats is what a store says to its keeper.
type Stats struct {
	Log      LogStats
	LogBytes uint64 // of the log on the disk, since the newest snapshot

	Snapshots     uint64 // since the store was opened
	SnapshotBytes uint64 // of the newest
	SnapshotAt    time.Time
	SnapshotTime  time.Duration // that it took

	// SnapshotFailure is why there is no newer one, if the last attempt failed; nil
	// if it did not. It is tried again. SnapshotFailures counts such attempts since
	// the store was opened.
	SnapshotFailure  error
	SnapshotFailures uint64

	Recovered Recovery
	Failure   error // why the store has stopped; nil as long as it has not
}

// Recovery is what a store found when it was opened.
type Recovery struct {
	Fresh    bool   // there was nothing
	Snapshot string // the file that was read, and its bytes
	Bytes    uint64
	Values   int // filters and plain values, at the end

	Segments int    // of the log, their bytes, records, and the adds in them
	LogBytes uint64 //
	Records  uint64
	Adds     uint64

	// TornBytes were behind the last whole record of the file Torn: written when
	// the machine or process ended, and not acknowledged at the level Always.
	// TornRecords of them are whole, and came behind one that is not: the system had
	// written the later of what it had in memory when the machine ended. If it was
	// only the process that ended, the file is damaged there.
	TornBytes   uint64
	TornRecords int
	Torn        string

	// Unfinished filters, which a RESTORE was filling when the process ended, were
	// dropped.
	Unfinished int

	Took time.Duration // with what was written to be sure of it
}

// Recovered says what was found when the store was opened.
func (l *Local) Recovered() Recovery { return l.recovered }

// Stats says what the store has done. It costs little.
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
