package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// While the server is under load, its directory is backed up to a sibling directory.
// Some backups are killed. Now and then the last backup replaces the server's
// directory, and must then contain everything that was acknowledged before it began.

func (p *plant) backupDir() string { return p.dir + "-backup" }

// backUp copies the directory. It is killed after the given time, if that is not 0.
func (p *plant) backUp(killed time.Duration) error {
	cmd := exec.Command(p.binary, "backup", "--quiet", "--data", p.dir, "--to", p.backupDir())
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	var was atomic.Bool
	if killed > 0 {
		defer time.AfterFunc(killed, func() { was.Store(true); cmd.Process.Kill() }).Stop()
	}
	if err := cmd.Wait(); err != nil && !was.Load() {
		return fmt.Errorf("backup: %w\n%s", err, said.Bytes())
	}
	return nil
}

// backUpBeside takes backups until the load has stopped, and kills half of them.
func (p *plant) backUpBeside(rng *rand.Rand, ended <-chan struct{}) error {
	for {
		select {
		case <-ended:
			return nil
		case <-time.After(between(rng, time.Millisecond, 20*time.Millisecond)):
		}
		killed := time.Duration(0)
		if rng.IntN(2) == 0 {
			killed = between(rng, time.Millisecond, 30*time.Millisecond)
		}
		if err := p.backUp(killed); err != nil {
			return err
		}
	}
}

// restore replaces the server's directory by a new backup. The server has exited.
func (p *plant) restore() error {
	if err := p.backUp(0); err != nil {
		return err
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	return os.Rename(p.backupDir(), p.dir)
}
