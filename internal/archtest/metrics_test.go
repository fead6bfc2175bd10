package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// metricsOfCode returns the metrics in product code with their positions.
func metricsOfCode(t *testing.T) map[string]string {
	t.Helper()
	name := regexp.MustCompile(`^tollgate_[a-z_]+$`)
	positions := map[string]string{}
	tree := source(t)
	for _, f := range product(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && name.MatchString(text) {
					positions[text] = tree.at(l)
				}
			}
			return true
		})
	}
	if len(positions) < 20 {
		t.Fatalf("found %d metrics, want at least 20", len(positions))
	}
	return positions
}

// metricsOfDocument returns the metrics in the table of docs/operator.md with their labels. A histogram
// also has the label le.
func metricsOfDocument(t *testing.T) map[string][]string {
	t.Helper()
	shown := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(tollgate_[a-z_]+)` \\| (counter|gauge|histogram)(.*?) \\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/operator.md"), -1) {
		labels := []string{"instance", "job"}
		if m[2] == "histogram" {
			labels = append(labels, "le")
		}
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, l[1])
		}
		shown[m[1]] = labels
	}
	return shown
}

// TestDocumentShowsTheMetrics checks that the table of docs/operator.md lists every metric with its
// labels, and no other metrics.
func TestDocumentShowsTheMetrics(t *testing.T) {
	t.Parallel()
	exist, shown := metricsOfCode(t), metricsOfDocument(t)
	for metric, at := range exist {
		if shown[metric] == nil {
			t.Errorf("docs/operator.md: the table of metrics lacks %s (%s)", metric, at)
		}
	}
	for _, m := range regexp.MustCompile("`(tollgate_[a-z_]+)`").FindAllStringSubmatch(read(t, "docs/operator.md"), -1) {
		if exist[m[1]] == "" {
			t.Errorf("docs/operator.md: there is no metric %s", m[1])
		}
	}
}

// TestMonitoringUsesTheMetrics checks that the dashboard shows every metric, and that dashboards and
// alerts use only existing metrics and labels.
func TestMonitoringUsesTheMetrics(t *testing.T) {
	t.Parallel()
	shown := metricsOfDocument(t)
	part := regexp.MustCompile(`_(bucket|sum|count)$`)
	label := regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)`)
	onDashboard := map[string]bool{}
	for _, file := range append(slices.Sorted(maps.Keys(dashboards())), "alerts.yaml") {
		for _, m := range regexp.MustCompile(`(tollgate_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(read(t, "deploy/monitoring/"+file), -1) {
			name := m[1]
			if whole := part.ReplaceAllString(name, ""); slices.Contains(shown[whole], "le") {
				name = whole
			}
			if shown[name] == nil {
				t.Errorf("%s: there is no metric %s", file, m[1])
			}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(shown[name], l[1]) {
					t.Errorf("%s: %s has no label %s", file, name, l[1])
				}
			}
			onDashboard[name] = onDashboard[name] || file == "dashboard.json"
		}
	}
	for name := range shown {
		if !onDashboard[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
