package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := readVersion()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
		DisableFlagsInUseLine: true,
	}
	addJSON(cmd, &asJSON, "print one JSON object")
	return cmd
}

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionJSON) String() string {
	revision := ""
	if v.Revision != "" {
		revision = ", revision " + v.Revision
	}
	return fmt.Sprintf("bloomery %s (%s, %s%s)", v.Version, v.Go, v.Platform, revision)
}

// readVersion reads the version that the go command has recorded in the binary.
func readVersion() versionJSON {
	v := versionJSON{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if s := info.Main.Version; s != "" && s != "(devel)" {
		v.Version = s
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}

// noArgs is cobra.NoArgs as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, not %q", cmd.Name(), args[0])
	}
	return nil
}
