package store

// flaw is a rule of the log, or of snapshots, to be broken by a test that must
// notice. Nothing else sets one.
type flaw uint8

const (
	flawNone             flaw = iota
	flawSnapshotUnsynced      // a snapshot is renamed before it is synced
	flawLogRemovedEarly       // segments are removed before the snapshot is in place
	flawNoDirSync             // the directory is never synced
	flawAnswerEarly           // commit returns before the sync
	flawSyncAgain             // a sync that failed is tried again, and believed
	flawSameSegment           // a store that starts goes on in the segment that it read
	flawUnchangedEarly        // commit returns at once if the caller's adds changed nothing
	flawDamageIsEnd           // a damaged record ends the log, wherever it is
	flawLogKept               // a store that starts does not write the last segment again
	flawSnapshotAhead         // a snapshot has its name before the log is on the disk that it has seen
	flawNumbersAgain          // so it is, and a store that starts gives the LSNs again
	flawMergeLogsNew          // while a merge is under way, only new keys are logged
	flawMergeLeaks            // a merge that fails leaves bits, and only new keys are logged
	flawDroppedLeftOut        // a value that was dropped while a snapshot is taken is not in it
	flawCount
)
