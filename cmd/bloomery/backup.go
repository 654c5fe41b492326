package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/store"
	"github.com/spf13/cobra"
)

// backupCommand is `bloomery backup`.
type backupCommand struct {
	data, to      string
	quiet, asJSON bool
}

func newBackup() *cobra.Command {
	c := &backupCommand{}
	cmd := &cobra.Command{
		Use:   "backup --data DIR --to DIR",
		Short: "Back up a running server's data",
		Long: `Backup copies everything that 'bloomery serve --data DIR' has on disk to another
directory on the same machine. The server keeps serving and need not be reachable.

The backup holds everything that was acknowledged before it began. (With
--durability none it holds what the newest snapshot holds: send SAVE first.) Every
record is checked while it is copied, and every file of the backup is read back.

If the target holds an older backup of the same server, only new files are copied.
The target is complete at every moment: an interrupted backup leaves the previous
one intact.

To restore, copy the backup and start 'bloomery serve --data' with the copy, or
start it with the backup itself, which then becomes the server's data.`,
		Example: `  bloomery backup --data /var/lib/bloomery --to /backup/bloomery
  bloomery verify /backup/bloomery
  cp -a /backup/bloomery /var/lib/restored && bloomery serve --data /var/lib/restored`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },

		DisableFlagsInUseLine: true,
	}
	cmd.Flags().StringVar(&c.data, "data", "", "the server's data directory `DIR`")
	cmd.Flags().StringVar(&c.to, "to", "", "the backup's directory `DIR`, which is created if missing")
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "print only errors, for cron")
	addJSON(cmd, &c.asJSON, "print the report as one JSON object on standard output")
	cmd.MarkFlagsMutuallyExclusive("quiet", "json")
	return cmd
}

func (c *backupCommand) run(cmd *cobra.Command) error {
	if c.data == "" || c.to == "" {
		return usagef("name the server's data directory and that of the backup: bloomery backup --data DIR --to DIR")
	}
	if info, err := os.Stat(c.data); err != nil {
		return lines.FileError(c.data, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s: is a file, and no server's data directory", c.data)
	}
	report, err := store.Backup(c.data, c.to)
	switch {
	case errors.Is(err, store.ErrDamaged), errors.Is(err, bloom.ErrLocked):
		return fmt.Errorf("%s to %s: %w", c.data, c.to, err)
	case err != nil:
		return err
	case c.quiet:
		return nil
	case c.asJSON:
		return printJSON(cmd.OutOrStdout(), backupVerdict{c.to, report.Snapshot, report.Copied, report.CopiedBytes, report.Kept, report.KeptBytes, report.Took.Seconds()})
	}
	t := &human.Table{To: cmd.OutOrStdout()}
	t.Row("backup", "%s", c.to)
	t.Row("checksums", "all good")
	t.Row("copied", "%s, %s", human.Count(uint64(report.Copied), "file"), human.Count(report.CopiedBytes, "byte"))
	t.Row("kept", "%s, %s, copied before", human.Count(uint64(report.Kept), "file"), human.Count(report.KeptBytes, "byte"))
	return t.Err
}

// backupVerdict is what backup prints with --json.
type backupVerdict struct {
	Backup      string  `json:"backup"`
	Snapshot    string  `json:"snapshot"`
	Copied      int     `json:"copied"`
	CopiedBytes uint64  `json:"copied_bytes"`
	Kept        int     `json:"kept"`
	KeptBytes   uint64  `json:"kept_bytes"`
	Seconds     float64 `json:"seconds"`
}
