package server

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
	"weak"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
)

// The time that one scrape may take, so that it does not fail with a million filters.
// The next scrape continues where this one stopped.
const (
	listTime   = 100 * time.Millisecond // to look for large filters
	reportTime = 200 * time.Millisecond // to read bits, of at least one filter
)

// filterGauges are the metrics of the largest filters. They are computed only at a
// scrape.
type filterGauges struct {
	store store.Store
	most  int

	mu     sync.Mutex
	rows   []*filterRow // the largest first
	cursor uint64       // of the names, where the next search continues
}

// A filterRow describes a filter when it was last read. It does not refer to the
// filter, whose memory it would keep alive after the name is deleted.
type filterRow struct {
	name     string
	is       identity
	info     store.Info
	report   bloom.Report
	reported time.Time // when report was made; zero: not yet
}

// An identity distinguishes a filter from a later one with the same name, and keeps
// neither in memory. Filters that are not pointers have the zero identity.
type identity = weak.Pointer[byte]

func identify(filter store.Filter) (is identity) {
	if v := reflect.ValueOf(filter); v.Kind() == reflect.Pointer {
		is = weak.Make((*byte)(v.UnsafePointer()))
	}
	return is
}

// refresh updates the rows and returns a copy of them.
func (g *filterGauges) refresh() []filterRow {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.search(time.Now().Add(listTime))
	byAge := slices.SortedFunc(slices.Values(g.rows), func(a, b *filterRow) int { return a.reported.Compare(b.reported) })
	for i, end := 0, time.Now().Add(reportTime); i < len(byAge) && (i == 0 || time.Now().Before(end)); i++ {
		byAge[i].read(g.store)
	}
	rows := make([]filterRow, len(g.rows))
	for i, row := range g.rows {
		rows[i] = *row
	}
	return rows
}

// read updates the report of a row, unless another filter has its name by now.
func (r *filterRow) read(st store.Store) {
	filter, err := st.Open([]byte(r.name))
	if err == nil && identify(filter) == r.is {
		r.report, r.reported = filter.Report(), time.Now()
	}
}

// search updates the rows, and searches the names for larger filters until the last
// name or the deadline.
func (g *filterGauges) search(deadline time.Time) {
	known := map[string]*filterRow{}
	for _, row := range g.rows {
		known[row.name] = row
	}
	g.rows = nil
	for name, old := range known {
		if row := g.look(name); row != nil {
			if row.is == old.is && row.is != (identity{}) {
				row.report, row.reported = old.report, old.reported
			}
			g.rows = append(g.rows, row)
		}
	}
	for g.most > 0 {
		var names []string
		names, g.cursor, _ = g.store.List(g.cursor, 1000)
		for _, name := range names {
			if known[name] != nil || isAside(name) {
				continue
			}
			if row := g.look(name); row != nil {
				known[name] = row // a name may be listed twice
				g.rows = append(g.rows, row)
			}
		}
		if len(g.rows) > 4*g.most {
			g.prune()
		}
		if g.cursor == 0 || time.Now().After(deadline) {
			break
		}
	}
	g.prune()
}

// look returns the row for a name, nil if it is not a filter's.
func (g *filterGauges) look(name string) *filterRow {
	filter, err := g.store.Open([]byte(name))
	if err != nil {
		return nil
	}
	info := filter.Info()
	if info.Bytes == 0 { // dropped just now
		return nil
	}
	return &filterRow{name: name, is: identify(filter), info: info}
}

// prune keeps the largest filters only.
func (g *filterGauges) prune() {
	slices.SortFunc(g.rows, func(a, b *filterRow) int {
		return cmp.Or(cmp.Compare(b.info.Bytes, a.info.Bytes), strings.Compare(a.name, b.name))
	})
	n := min(len(g.rows), g.most)
	clear(g.rows[n:])
	g.rows = g.rows[:n]
}

// collect collects the metrics of the rows.
func (g *filterGauges) collect(one func(*Metric, float64, ...string)) {
	rows, now, oldest := g.refresh(), time.Now(), time.Duration(0)
	shown := map[string]bool{}
	for _, row := range rows {
		name := labelOf(row.name)
		if shown[name] { // Prometheus would reject the whole scrape
			continue
		}
		shown[name] = true
		one(metricItems, float64(row.info.Items), name)
		one(metricRoom, float64(row.info.Room), name)
		one(metricBytes, float64(row.info.Bytes), name)
		if row.info.Kind == store.Counting {
			one(metricStuck, float64(row.info.Stuck), name)
		}
		if !row.reported.IsZero() {
			one(metricFill, row.report.Fill, name)
			one(metricRate, row.report.Rate, name)
			one(metricPlanned, row.report.Plan.Rate, name)
			oldest = max(oldest, now.Sub(row.reported))
		}
	}
	one(metricShown, float64(len(shown)))
	one(metricAge, oldest.Seconds())
}

// maxLabel is the longest name that is shown in full, in bytes.
const maxLabel = 200

// labelOf returns a name as a label, which must be UTF-8 and should be legible. Other
// names are quoted as in Go, and long ones end with a fingerprint.
func labelOf(name string) string {
	label := name
	if name == "" || name[0] == '"' || strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		label = strconv.Quote(name)
	}
	if len(label) > maxLabel {
		sum := sha256.Sum256([]byte(name))
		label = fmt.Sprintf("%s...%x", strings.ToValidUTF8(label[:maxLabel], ""), sum[:8])
	}
	return label
}
