// Package replace replaces files so that a path never holds half a file: the new file is
// written under a temporary name in the same directory, synced, and renamed over the old
// one.
//
//	create temporary ──▶ write ──▶ sync ──▶ close ──▶ rename ──▶ sync directory
//	└────────── the old file stands ──────────────────┘└─── the new one does ──▶
//
// After a crash or a power failure at any point, the path holds the whole old file or
// the whole new one, and a temporary file may be left next to it. The order of the steps
// is the proof: the data is on the disk before the name refers to it, and [Do] returns
// nil only when the name is on the disk, too.
package replace

// Place is where a file is put. [Path] is a place in the file system; others wrap it, or
// simulate a disk.
type Place[F File] interface {
	Create() (F, error) // creates the temporary file
	Rename() error      // renames it to its final name, replacing any file there
	Remove() error      // deletes it, if it was not renamed
	SyncDir() error     // makes the names in the directory durable
}

// File is the temporary file while it is written.
type File interface {
	Sync() error
	Close() error
}

// Stage says what a failed replacement left at the path.
type Stage int

const (
	Unwritten Stage = iota // nothing has changed: the path holds the old file
	Unnamed                // the new file is complete, but the path may hold either file
	Unsynced               // the path holds the new file, but a power failure may bring the old one back
)

// Do replaces the file at a place with one that write fills. The error is that of write
// or of the step that failed; the stage has a meaning only with an error. After a failure
// or a panic of write, the temporary file is deleted, since others may need the space.
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
