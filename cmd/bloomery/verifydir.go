package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/store"
	"github.com/spf13/cobra"
)

// The data directory of a server, looked at while no server has it.

// verifyDirectory reads all of it, and repairs it if that was asked for.
func (v *verifyCommand) verifyDirectory(cmd *cobra.Command, dir string) error {
	if err := idle(cmd, dir+" is a server's data directory, which is verified as a whole",
		"members", "random", "null", "secret", "normalize", "format", "scheme", "bits", "probes", "funnel"); err != nil {
		return err
	}
	if !v.repair {
		if err := idle(cmd, "it is for --repair", "yes"); err != nil {
			return err
		}
	}
	found, err := store.Verify(dir)
	switch {
	case err == nil && v.asJSON:
		return printJSON(cmd.OutOrStdout(), directoryVerdict{dir, true, found.Values, found.Records, found.Adds, found.TornBytes, found.TornRecords})
	case err == nil:
		return printRecovered(cmd, dir, found)
	case !v.repair || !errors.Is(err, store.ErrDamaged):
		return withRepair(dir, err)
	}
	complain(cmd.ErrOrStderr(), err)
	if bytes := directoryBytes(dir); bytes >= largeDirectory {
		fmt.Fprintf(cmd.ErrOrStderr(), "bloomery: %s: looking through %s bytes for what can be saved\n", dir, human.Commas(bytes))
	}
	if err := store.Repair(dir, func(unknown []string) bool { return v.agree(cmd, dir, unknown) }); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "bloomery: %s: is repaired; the damaged files are kept under names that begin with damaged-\n", dir)
	return nil
}

// largeDirectory takes seconds to read.
const largeDirectory = 1 << 30

// directoryBytes is how much there is to be read.
func directoryBytes(dir string) (sum uint64) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += uint64(info.Size())
		}
	}
	return sum
}

// directoryVerdict is what verify says of a data directory.
type directoryVerdict struct {
	Directory string `json:"directory"`
	OK        bool   `json:"ok"`
	Values    int    `json:"values"`
	Records   uint64 `json:"log_records"`
	Adds      uint64 `json:"log_adds"`
	Torn      uint64 `json:"torn_bytes"`
	Behind    int    `json:"torn_records"`
}

func printRecovered(cmd *cobra.Command, dir string, found store.Recovery) error {
	t := &human.Table{To: cmd.OutOrStdout()}
	t.Row("directory", "%s", dir)
	t.Row("checksums", "all good")
	t.Row("values", "%s", human.Commas(uint64(found.Values)))
	t.Row("snapshot", "%s (%s bytes)", orNothing(found.Snapshot), human.Commas(found.Bytes))
	t.Row("log", "%s records with %s adds, %s bytes in %d files", human.Commas(found.Records), human.Commas(found.Adds), human.Commas(found.LogBytes), found.Segments)
	if found.TornBytes > 0 {
		t.Row("torn", "%s bytes at the end of %s, which were being written when it ended", human.Commas(found.TornBytes), found.Torn)
	}
	if found.TornRecords > 0 {
		t.Row("behind that", "%s", tornRecords(found))
	}
	return t.Err
}

// tornRecords says what whole records behind a torn one may mean, which the files
// alone cannot tell.
func tornRecords(found store.Recovery) string {
	return fmt.Sprintf("%s whole records of the log, which are lost: expected after a power failure; if only the server had ended, the disk has damaged the file", human.Commas(uint64(found.TornRecords)))
}

func orNothing(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// agree says what becomes unknown, and asks.
func (v *verifyCommand) agree(cmd *cobra.Command, dir string, unknown []string) bool {
	stderr := cmd.ErrOrStderr()
	for _, what := range unknown {
		fmt.Fprintf(stderr, "bloomery: %s\n", what)
	}
	if v.yes {
		return true
	}
	if !lines.IsTerminal(cmd.InOrStdin()) {
		fmt.Fprintf(stderr, "bloomery: %s: repeat with --yes to go on\n", dir)
		return false
	}
	fmt.Fprint(stderr, "go on? [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(answer), "y")
}

// logRecovered says what a server found when it started.
func logRecovered(log *slog.Logger, found store.Recovery) {
	if found.Fresh {
		log.Info("a new data directory")
		return
	}
	log.Info("recovered", "values", found.Values, "snapshot", found.Snapshot, "snapshot bytes", found.Bytes,
		"log bytes", found.LogBytes, "log adds", found.Adds, "took", found.Took)
	if found.TornBytes > 0 {
		log.Warn("the log ended in the middle of a record, which was cut off", "file", found.Torn, "bytes", found.TornBytes)
	}
	if found.TornRecords > 0 {
		log.Warn(tornRecords(found), "file", found.Torn, "records", found.TornRecords)
	}
	if found.Unfinished > 0 {
		log.Warn("filters of RESTORE commands that were under way were dropped", "filters", found.Unfinished)
	}
}

// withRepair names the directory that an error is about, and the way out.
func withRepair(dir string, err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%s: %w: bloomery verify --repair %s", dir, err, dir)
	}
	return err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
