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

// Time that one scrape may take, so that a million filters do not make it fail.
// What there was no time for is taken up by the next.
const (
	listTime   = 100 * time.Millisecond // to look for large filters
	reportTime = 200 * time.Millisecond // to read bits; at least one filter's
)

// filterGauges are the metrics of the largest filters. Nothing is worked out
// until somebody asks.
type filterGauges struct {
	store store.Store
	most  int

	mu     sync.Mutex
	rows   []*filterRow // the largest first
	cursor uint64       // of the names, where the next search goes on
}

// A filterRow is a filter when it was last looked at. It does not have the filter
// itself, whose memory it would keep when the name is deleted.
type filterRow struct {
	name     string
	is       identity
	info     store.Info
	report   bloom.Report
	reported time.Time // when report was made; zero: not yet
}

// An identity tells a filter from another one that got its name, and keeps neither
// in memory. Filters that are no pointers have none, which is nil.
type identity = weak.Pointer[byte]

func identify(filter store.Filter) (is identity) {
	if v := reflect.ValueOf(filter); v.Kind() == reflect.Pointer {
		is = weak.Make((*byte)(v.UnsafePointer()))
	}
	return is
}

// refresh looks at the filters anew and returns a copy of the rows.
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

// read makes the report of a row, unless its name is another filter's by now.
func (r *filterRow) read(st store.Store) {
	filter, err := st.Open([]byte(r.name))
	if err == nil && identify(filter) == r.is {
		r.report, r.reported = filter.Report(), time.Now()
	}
}

// search brings the rows up to date, and goes through names until the end or the
// deadline for filters that are larger.
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
		names, g.cursor = g.store.List(g.cursor, 1000)
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

// look returns the row of a name, nil if it is no filter's.
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

// prune keeps the largest.
func (g *filterGauges) prune() {
	slices.SortFunc(g.rows, func(a, b *filterRow) int {
		return cmp.Or(cmp.Compare(b.info.Bytes, a.info.Bytes), strings.Compare(a.name, b.name))
	})
	n := min(len(g.rows), g.most)
	clear(g.rows[n:])
	g.rows = g.rows[:n]
}

// collect shows the rows.
func (g *filterGauges) collect(one func(*Metric, float64, ...string)) {
	rows, now, oldest := g.refresh(), time.Now(), time.Duration(0)
	shown := map[string]bool{}
	for _, row := range rows {
		name := labelOf(row.name)
		if shown[name] { // Prometheus would refuse all that there is
			continue
		}
		shown[name] = true
		one(metricItems, float64(row.info.Items), name)
		one(metricRoom, float64(row.info.Room), name)
		one(metricBytes, float64(row.info.Bytes), name)
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

// maxLabel is the longest name that is shown whole, in bytes.
const maxLabel = 200

// labelOf is a name as a label, which must be UTF-8 and should be legible. Others
// are quoted as in Go, and long ones end with a fingerprint.
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
