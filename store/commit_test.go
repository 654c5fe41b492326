package store

import (
	"context"
	"errors"
	"testing"
	"time"
)

// hangingDisk is a disk on which writes to the log can hang.
type hangingDisk struct {
	*crashDisk
	hang chan struct{} // writes hang until it is closed; nil: they do not
	hung chan struct{} // receives when a write hangs
}

type hangingFile struct {
	diskFile
	disk *hangingDisk
}

func (d *hangingDisk) Append(name string) (diskFile, error) {
	file, err := d.crashDisk.Append(name)
	return hangingFile{file, d}, err
}

func (f hangingFile) Write(b []byte) (int, error) {
	if f.disk.hang != nil {
		f.disk.hung <- struct{}{}
		<-f.disk.hang
	}
	return f.diskFile.Write(b)
}

// TestCommitEnds: a commit whose context ends returns while the disk hangs; the
// commit continues for the others, and at most one goroutine waits for the disk.
func TestCommitEnds(t *testing.T) {
	disk := &hangingDisk{crashDisk: newHarness(1, Always, flawNone).disk}
	l, err := OpenLocal(LocalConfig{Level: Always, seams: seams{disk: disk, idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	disk.hang, disk.hung = make(chan struct{}), make(chan struct{}, 10)
	if _, err := l.Create(bg, "a", modelSpecs[2]); err != nil {
		t.Fatal(err)
	}
	patient := make(chan error, 1)
	kept, stop := context.WithCancel(bg)
	defer stop()
	go func() { patient <- l.Commit(kept) }()
	<-disk.hung
	for range 5 {
		ctx, cancel := context.WithTimeout(bg, time.Millisecond)
		if err := l.Commit(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a commit on a disk that hangs: %v", err)
		}
		cancel()
	}
	select {
	case err := <-patient:
		t.Errorf("the commit with time left returned %v", err)
	case <-disk.hung:
		t.Error("there are two writers")
	default:
	}
	close(disk.hang)
	if err := <-patient; err != nil {
		t.Error(err)
	}
	if _, err := l.Drop(bg, "a"); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(bg)
	end()
	if err := l.Snapshot(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a snapshot with an ended context: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
