package main

import (
	"fmt"
	"time"

	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
)

func newFsck() *cobra.Command {
	var o fsckOptions
	cmd := &cobra.Command{
		Use:   "fsck URL...",
		Short: "Check the filters that 'serve --store' keeps in Redis or Valkey",
		Long: `Fsck looks at every chunk of every filter in Redis or Valkey: whether it is there,
of the right length and with its own head, and whether it has fewer bits set than
when fsck last looked, which means that adds were lost. It also finds chunks that
belong to no filter. It changes nothing but its own notes, and servers may go on
meanwhile. Of a cluster, name some nodes. The exit code is 2 if something is wrong.

--metrics writes the result to a file for the textfile collector of Prometheus's
node_exporter, which reads *.prom files from a directory.`,
		Example: `  bloomery fsck redis://10.0.0.1:7000 redis://10.0.0.2:7000
  bloomery fsck --metrics /var/lib/node_exporter/bloomery.prom redis://10.0.0.1:7000`,
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
	cmd.Flags().StringVar(&o.metrics, "metrics", "", "write metrics to `FILE`")
	return cmd
}

type fsckOptions struct {
	storeOptions
	metrics string
}

func (o *fsckOptions) fsck(cmd *cobra.Command) error {
	began := time.Now()
	s, end, err := o.openStore(cmd.Context())
	if err != nil {
		return err
	}
	defer end()
	defer s.Close()
	seen, err := s.Check(cmd.Context(), func(text string) { fmt.Fprintln(cmd.OutOrStdout(), human.Error(text)) })
	if err != nil {
		return err // and no metrics: the last ones say when that was
	}
	if err := o.writeMetrics(seen, time.Since(began)); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "bloomery: %s, %s whole, %s\n",
		human.Count(uint64(seen.Filters), "filter"), human.Count(seen.Chunks, "chunk"), human.BinarySize(seen.Bytes))
	if n := seen.All(); n > 0 {
		return fmt.Errorf("%s: see above", human.Count(uint64(n), "problem"))
	}
	return nil
}

// writeMetrics replaces the file of metrics, if one is asked for.
func (o *fsckOptions) writeMetrics(seen redisstore.Checked, took time.Duration) error {
	if o.metrics == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	set := func(name, help string, value float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "bloomery_fsck_" + name, Help: help})
		g.Set(value)
		registry.MustRegister(g)
	}
	set("filters", "Filters that were checked.", float64(seen.Filters))
	set("chunks", "Chunks that are there and whole.", float64(seen.Chunks))
	set("bytes", "Bytes of the chunks that are whole.", float64(seen.Bytes))
	set("end_timestamp_seconds", "When the check ended.", float64(time.Now().UnixMilli())/1000)
	set("duration_seconds", "How long it took.", took.Seconds())
	problems := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bloomery_fsck_problems", Help: "Problems, by kind."}, []string{"kind"})
	registry.MustRegister(problems)
	for _, kind := range redisstore.Problems {
		problems.WithLabelValues(string(kind)).Set(float64(seen.Problems[kind]))
	}
	if err := prometheus.WriteToTextfile(o.metrics, registry); err != nil {
		return lines.FileError(o.metrics, err)
	}
	return nil
}
