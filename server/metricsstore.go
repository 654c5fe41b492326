package server

import (
	"time"

	"github.com/bloomery/bloom/store"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	metricStopped       = newMetric("store_stopped", gauge, "1 once the store can no longer make anything durable, and acknowledges nothing.")
	metricLogSize       = newMetric("store_log_bytes", gauge, "Size of the log on disk, since the newest snapshot.")
	metricLogBytes      = newMetric("store_log_written_bytes_total", counter, "Bytes written to the log.")
	metricLogRecords    = newMetric("store_log_records_total", counter, "Records written to the log.")
	metricLogWrites     = newMetric("store_log_writes_total", counter, "Writes to the log, each a group of records for all commits that waited.")
	metricCommits       = newMetric("store_commits_total", counter, "Commits, one per batch.")
	metricSync          = newMetric("store_sync_seconds", histogramRow, "Time to make the log durable (fdatasync).")
	metricSnapshots     = newMetric("store_snapshots_total", counter, "Snapshots written.")
	metricSnapshotSize  = newMetric("store_snapshot_bytes", gauge, "Size of the newest snapshot.")
	metricSnapshotAge   = newMetric("store_snapshot_age_seconds", gauge, "Age of the newest snapshot.")
	metricSnapshotTime  = newMetric("store_snapshot_seconds", gauge, "Time it took to write the newest snapshot.")
	metricSnapshotFails = newMetric("store_snapshot_failures_total", counter, "Snapshots that failed. Nothing is lost: the log holds the same data, and the snapshot is retried.")
	metricSnapshotBad   = newMetric("store_snapshot_failed", gauge, "1 if the last attempt to write a snapshot failed, as on a full disk.")
	metricRecovery      = newMetric("store_recovery_seconds", gauge, "Time from the start until the store was ready.")
	metricRecoveredAdds = newMetric("store_recovery_adds", gauge, "Adds replayed from the log at the start.")
	metricTorn          = newMetric("store_recovery_torn_bytes", gauge, "Bytes after the last complete record of the log at the start: the last shutdown was not clean. With --durability always, nothing acknowledged is among them.")
)

func collectStore(s store.Stats, one func(*Metric, float64, ...string), to chan<- prometheus.Metric) {
	oneIf := func(failure error) float64 {
		if failure != nil {
			return 1
		}
		return 0
	}
	one(metricStopped, oneIf(s.Failure))
	one(metricLogSize, float64(s.LogBytes))
	one(metricLogBytes, float64(s.Log.Bytes))
	one(metricLogRecords, float64(s.Log.Records))
	one(metricLogWrites, float64(s.Log.Writes))
	one(metricCommits, float64(s.Log.Commits))
	upTo, count := map[float64]uint64{}, uint64(0)
	for i, bound := 0, store.SyncBucket; i < len(s.Log.SyncBuckets); i, bound = i+1, 2*bound {
		count += s.Log.SyncBuckets[i]
		if i < len(s.Log.SyncBuckets)-1 {
			upTo[bound.Seconds()] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(metricSync.desc, count, s.Log.SyncTime.Seconds(), upTo)
	one(metricSnapshots, float64(s.Snapshots))
	if !s.SnapshotAt.IsZero() {
		one(metricSnapshotSize, float64(s.SnapshotBytes))
		one(metricSnapshotAge, time.Since(s.SnapshotAt).Seconds())
		one(metricSnapshotTime, s.SnapshotTime.Seconds())
	}
	one(metricSnapshotFails, float64(s.SnapshotFailures))
	one(metricSnapshotBad, oneIf(s.SnapshotFailure))
	one(metricRecovery, s.Recovered.Took.Seconds())
	one(metricRecoveredAdds, float64(s.Recovered.Adds))
	one(metricTorn, float64(s.Recovered.TornBytes))
}
