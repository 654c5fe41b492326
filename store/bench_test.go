package store_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// BenchmarkAdds has 8 connections add keys, all of them new, in pipelines, and commit
// after each pipeline. It reports acknowledged adds per second, adds per write of the
// log, and bytes of log per add.
func BenchmarkAdds(b *testing.B) {
	for _, spec := range []store.Spec{
		{Kind: store.RedisBloom, Capacity: 20_000_000, Rate: 0.01},
		{Kind: store.Paired, Capacity: 20_000_000, Rate: 0.01, Public: true},
	} {
		for _, pipeline := range []int{1, 100, 1000} {
			for _, level := range []store.Level{store.StoreLevel, store.Unlogged, store.EverySecond, store.Always} {
				name := map[store.Kind]string{store.RedisBloom: "RedisBloom", store.Paired: "Paired"}[spec.Kind]
				what := level.String()
				if level == store.StoreLevel {
					what = "memory"
				}
				b.Run(fmt.Sprintf("%s/%s/pipeline=%d", name, what, pipeline), func(b *testing.B) {
					benchAdds(b, spec, level, pipeline, 8)
				})
			}
		}
	}
}

func benchAdds(b *testing.B, spec store.Spec, level store.Level, pipeline, connections int) {
	config := store.LocalConfig{Level: level}
	if level != store.StoreLevel {
		config.Dir = b.TempDir()
	}
	s := open(b, config)
	f, err := s.Create(ctx, "f", spec)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Uint64
	total := uint64(b.N) * uint64(pipeline)
	if total > spec.Capacity {
		total = spec.Capacity
	}
	b.ResetTimer()
	start := time.Now()
	var wait sync.WaitGroup
	for range connections {
		wait.Go(func() {
			keys, isNew := make([][]byte, pipeline), make([]bool, pipeline)
			room := make([]byte, 8*pipeline)
			for {
				from := next.Add(uint64(pipeline)) - uint64(pipeline)
				if from >= total {
					return
				}
				for i := range keys {
					keys[i] = room[8*i:][:8]
					binary.LittleEndian.PutUint64(keys[i], (from+uint64(i))*0x9e3779b97f4a7c15)
				}
				if _, err := f.Add(ctx, keys, isNew); err != nil {
					b.Error(err)
				}
				if err := s.Commit(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(start)
	b.ReportMetric(float64(total)/took.Seconds(), "adds/s")
	stats := s.Stats()
	if stats.Log.Writes > 0 {
		b.ReportMetric(float64(total)/float64(stats.Log.Writes), "adds/group")
		b.ReportMetric(float64(stats.Log.Bytes)/float64(total), "B/add")
	}
	b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(s)
}

var recoverAdds = flag.Int("recover", 0, "the number of logged adds that BenchmarkRecovery recovers; 0 for a million")

// BenchmarkRecovery opens a store whose log has recoverAdds adds, and which has no
// snapshot of them.
func BenchmarkRecovery(b *testing.B) {
	adds := max(*recoverAdds, 1_000_000)
	for name, spec := range map[string]store.Spec{
		"RedisBloom": {Kind: store.RedisBloom, Capacity: uint64(adds), Rate: 0.01},
		"Paired":     {Kind: store.Paired, Capacity: uint64(adds), Rate: 0.01, Public: true},
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			config := store.LocalConfig{Dir: dir, CheckpointBytes: 1 << 40}
			s := open(b, config)
			f, err := s.Create(ctx, "f", spec)
			if err != nil {
				b.Fatal(err)
			}
			const pipeline = 1000
			keys, isNew, room := make([][]byte, pipeline), make([]bool, pipeline), make([]byte, 8*pipeline)
			for from := 0; from < adds; from += pipeline {
				for i := range keys {
					keys[i] = room[8*i:][:8]
					binary.LittleEndian.PutUint64(keys[i], uint64(from+i)*0x9e3779b97f4a7c15)
				}
				f.Add(ctx, keys, isNew)
				s.Commit(ctx)
			}
			items := f.Info().Items
			s.Close()
			b.ResetTimer()
			s = open(b, config)
			b.StopTimer()
			r := s.Recovered()
			b.ReportMetric(r.Took.Seconds(), "s")
			b.ReportMetric(float64(r.Adds)/r.Took.Seconds(), "adds/s")
			b.ReportMetric(float64(r.LogBytes), "log-bytes")
			f, _ = s.Open([]byte("f"))
			if got := f.Info().Items; got != items || r.Adds != items {
				b.Errorf("%d items, %d adds recovered, want %d", got, r.Adds, items)
			}
			s.Close()
			b.ReportMetric(0, "ns/op")
		})
	}
}
