package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGrafana checks that the dashboard asks for metrics, and for labels of them, that
// exist.
func TestGrafana(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "packaging", "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	known := map[string]Metric{}
	for _, m := range Metrics() {
		known[m.Name] = m
		if m.Type == histogramRow {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[m.Name+suffix] = m
			}
		}
	}
	name, label := regexp.MustCompile(`bloomery_\w+`), regexp.MustCompile(`\{\{(\w+)\}\}`)
	places := map[[2]int]string{}
	used := map[string]bool{}
	for _, panel := range dashboard.Panels {
		if other := places[[2]int{panel.GridPos.X, panel.GridPos.Y}]; other != "" || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("%q is where %q is, or beyond the edge", panel.Title, other)
		}
		places[[2]int{panel.GridPos.X, panel.GridPos.Y}] = panel.Title
		for _, target := range panel.Targets {
			found := name.FindAllString(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%q asks for nothing of ours: %s", panel.Title, target.Expr)
			}
			labels := ""
			for _, metric := range found {
				m, ok := known[metric]
				if used[m.Name] = true; !ok {
					t.Errorf("%q asks for %s, which does not exist", panel.Title, metric)
				}
				labels += " " + strings.Join(m.Labels, " ")
			}
			for _, shown := range label.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(labels+" ", " "+shown[1]+" ") {
					t.Errorf("%q shows the label %s, where %v have%s", panel.Title, shown[1], found, labels)
				}
			}
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || strings.Count(target.Expr, "{") != strings.Count(target.Expr, "}") {
				t.Errorf("%q: %s is not closed", panel.Title, target.Expr)
			}
		}
	}
	for _, name := range regexp.MustCompile(`label_values\((\w+)`).FindAllStringSubmatch(string(text), -1) {
		if _, ok := known[name[1]]; !ok {
			t.Errorf("the variable asks for %s, which does not exist", name[1])
		}
	}
	if len(used) < len(Metrics())-5 {
		t.Errorf("%d of %d metrics are used", len(used), len(Metrics()))
	}
}
