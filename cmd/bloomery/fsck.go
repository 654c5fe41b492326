package main

import (
	"fmt"

	"github.com/bloomery/bloom/internal/human"
	"github.com/spf13/cobra"
)

func newFsck() *cobra.Command {
	var o storeOptions
	cmd := &cobra.Command{
		Use:   "fsck URL...",
		Short: "Check the filters that 'serve --store' keeps in Redis or Valkey",
		Long: `Fsck looks at every chunk of every filter in Redis or Valkey: whether it is there,
of the right length and with its own head, and whether it has fewer bits set than
when fsck last looked, which means that adds were lost. It also finds chunks that
belong to no filter. It changes nothing but its own notes, and servers may go on
meanwhile. Of a cluster, name some nodes. The exit code is 2 if something is wrong.`,
		Example: `  bloomery fsck redis://10.0.0.1:7000 redis://10.0.0.2:7000`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("name a node: bloomery fsck redis://HOST:PORT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.seeds = args
			return o.fsck(cmd)
		},

		DisableFlagsInUseLine: true,
	}
	o.addConnection(cmd)
	return cmd
}

func (o *storeOptions) fsck(cmd *cobra.Command) error {
	s, end, err := o.openStore(cmd.Context())
	if err != nil {
		return err
	}
	defer end()
	defer s.Close()
	seen, err := s.Check(cmd.Context(), func(text string) { fmt.Fprintln(cmd.OutOrStdout(), human.Error(text)) })
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "bloomery: %s, %s whole, %s\n",
		human.Count(uint64(seen.Filters), "filter"), human.Count(seen.Chunks, "chunk"), human.BinarySize(seen.Bytes))
	if seen.Problems > 0 {
		return fmt.Errorf("%s: see above", human.Count(uint64(seen.Problems), "problem"))
	}
	return nil
}
