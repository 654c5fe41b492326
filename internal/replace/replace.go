// Package replace replaces files so that a path never holds half of one: the new
// file is written under a temporary name in the same directory, synced, and
// renamed over the old one.
//
//	create temporary ──▶ write ──▶ sync ──▶ close ──▶ rename ──▶ sync directory
//	└────────── the old file stands ──────────────────┘└─── the new one does ──▶
//
// After a crash or a power failure at any point the path holds the whole old file
// or the whole new one, and perhaps a temporary file lies next to it. The order is
// the proof: the data is on the disk before any name leads to it, and [Do] returns
// nil only when the name is on the disk, too.
package replace

// Place is where a file is to stand. [Path] is one in the file system; others wrap
// it, or are a simulated disk.
type Place[F File] interface {
	Create() (F, error) // creates the temporary file
	Rename() error      // gives it its final name, replacing the file that has it
	Remove() error      // deletes it, if it was not renamed
	SyncDir() error     // makes the names in the directory durable
}

// File is the temporary file while it is written.
type File interface {
	Sync() error
	Close() error
}

// Stage says what a failed replacement has left at the path.
type Stage int

const (
	Unwritten Stage = iota // nothing has changed: the old file stands
	Unnamed                // the new file is complete, but it is unknown which of the two has the name
	Unsynced               // the new file has the name, but a power failure may bring the old one back
)

// Do replaces the file at a place by one that write fills. The stage has a meaning
// only with an error, which is that of write or of the step that failed. The
// temporary file does not outlive a failure, or a panic of write, as others may need
// its room.
func Do[F File](place Place[F], write func(F) error) (Stage, error) {
	file, err := place.Create()
	if err != nil {
		return Unwritten, err
	}
	panicked := true
	defer func() {
		if panicked {
			file.Close()
			place.Remove()
		}
	}()
	err = write(file)
	panicked = false
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		place.Remove()
		return Unwritten, err
	}
	if err := place.Rename(); err != nil {
		place.Remove()
		return Unnamed, err
	}
	return Unsynced, place.SyncDir()
}
