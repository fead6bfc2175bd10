package archtest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboards are the Grafana files in deploy/monitoring with their minimum number of panels.
func dashboards() map[string]int {
	return map[string]int{"dashboard.json": 40, "dashboard-money.json": 15}
}

// dashboard has the checked members of a Grafana file.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Datasource dataSource
		}
	}
	Panels []panel
}

type dataSource struct{ Type, UID string }

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Datasource  dataSource
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

// overlaps reports whether two panels overlap.
func (p *panel) overlaps(q *panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// TestDashboards checks that each panel has its own id and place, existing variables, a known unit, and
// legends made of labels in its queries. Grafana shows an empty panel otherwise.
func TestDashboards(t *testing.T) {
	t.Parallel()
	uids := map[string]string{}
	for file, minPanels := range dashboards() {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/"+file)), &d); err != nil {
			t.Fatal(err)
		}
		if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) < minPanels || uids[d.UID] != "" {
			t.Errorf("%s: got uid %q, title %q, schema %d, %d panels; want a uid of its own, a title, at least schema 36 and %d panels",
				file, d.UID, d.Title, d.SchemaVersion, len(d.Panels), minPanels)
		}
		uids[d.UID] = file
		t.Run(file, func(t *testing.T) { d.check(t) })
	}
}

// check checks the variables and each panel.
func (d *dashboard) check(t *testing.T) {
	const columns = 24
	units := []string{"none", "s", "bytes", "reqps", "ops", "percentunit", "currencyUSD"} // as Grafana's list of formats names them
	kinds := []string{"row", "stat", "timeseries", "state-timeline", "bargauge"}
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	by := regexp.MustCompile(`\bby \(([^)]*)\)`)
	legend := regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

	defined := []string{}
	check := func(where string, from dataSource) {
		t.Helper()
		if name := variable.FindStringSubmatch(from.UID); from.Type != "prometheus" || name == nil || !slices.Contains(defined, name[1]) {
			t.Errorf("%s: got the data source %+v, want one of the variables %q", where, from, defined)
		}
	}
	for _, v := range d.Templating.List { // each may use those before it
		if v.Type != "datasource" {
			check("variable "+v.Name, v.Datasource)
		}
		defined = append(defined, v.Name)
	}
	ids := map[int]bool{}
	for i := range d.Panels {
		p := &d.Panels[i]
		if at := p.GridPos; p.ID < 1 || ids[p.ID] || at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > columns || at.Y < 0 {
			t.Errorf("%s: got id %d at %+v, want an id of its own and a place within %d columns", p.Title, p.ID, at, columns)
		}
		ids[p.ID] = true
		for j := range d.Panels[:i] {
			if p.overlaps(&d.Panels[j]) {
				t.Errorf("%s overlaps %s", p.Title, d.Panels[j].Title)
			}
		}
		if p.Title == "" || !slices.Contains(kinds, p.Type) || p.Type == "row" && p.GridPos.W != columns {
			t.Errorf("panel %d: got type %s, title %q, width %d; want a title, one of %q, and the full width for a row",
				p.ID, p.Type, p.Title, p.GridPos.W, kinds)
		}
		if p.Type == "row" {
			continue
		}
		check(p.Title, p.Datasource)
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("%s: got unit %q, want one of %q", p.Title, p.FieldConfig.Defaults.Unit, units)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.RefID == "" || refs[q.RefID] || q.Expr == "" {
				t.Errorf("%s: got query %q: %q, want a reference of its own and an expression", p.Title, q.RefID, q.Expr)
			}
			refs[q.RefID] = true
			for _, v := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !strings.HasPrefix(v[1], "__") && !slices.Contains(defined, v[1]) {
					t.Errorf("%s: there is no variable %s", p.Title, v[1])
				}
			}
			labels := []string{"instance", "job"} // of the result, if nothing is summed up
			if groups := by.FindAllStringSubmatch(q.Expr, -1); groups != nil {
				labels = nil
				for _, g := range groups {
					labels = append(labels, strings.Split(strings.ReplaceAll(g[1], " ", ""), ",")...)
				}
			} else if strings.HasPrefix(q.Expr, "sum(") || strings.HasPrefix(q.Expr, "max(") {
				labels = nil
			}
			for _, l := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !slices.Contains(labels, l[1]) || l[1] == "le" {
					t.Errorf("%s: the legend names %s, which the result of %s does not have", p.Title, l[1], q.Expr)
				}
			}
		}
		if len(refs) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
	}
}
