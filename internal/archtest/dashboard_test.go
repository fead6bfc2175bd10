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

// dashboard is the part of such a file that Grafana reads.
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

// over reports whether two panels overlap.
func (p *panel) over(q *panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// TestDashboardsAreWhole finds mistakes that Grafana would show as empty panels. Each panel has its
// own id and place, existing variables, a known unit, and legends made of labels in its queries.
func TestDashboardsAreWhole(t *testing.T) {
	t.Parallel()
	uids := map[string]string{}
	for file, least := range dashboards() {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/"+file)), &d); err != nil {
			t.Fatal(err)
		}
		if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) < least || uids[d.UID] != "" {
			t.Errorf("%s: uid %q, title %q, schema %d, %d panels", file, d.UID, d.Title, d.SchemaVersion, len(d.Panels))
		}
		uids[d.UID] = file
		t.Run(file, func(t *testing.T) { d.check(t) })
	}
}

// check looks at the variables and at each panel.
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
			t.Errorf("%s: its source of data is %+v, of the variables %q", where, from, defined)
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
			t.Errorf("%s: id %d at %+v", p.Title, p.ID, at)
		}
		ids[p.ID] = true
		for j := range d.Panels[:i] {
			if p.over(&d.Panels[j]) {
				t.Errorf("%s lies on %s", p.Title, d.Panels[j].Title)
			}
		}
		if p.Title == "" || !slices.Contains(kinds, p.Type) || p.Type == "row" && p.GridPos.W != columns {
			t.Errorf("panel %d: %s %q", p.ID, p.Type, p.Title)
		}
		if p.Type == "row" {
			continue
		}
		check(p.Title, p.Datasource)
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("%s: unit %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.RefID == "" || refs[q.RefID] || q.Expr == "" {
				t.Errorf("%s: query %q: %s", p.Title, q.RefID, q.Expr)
			}
			refs[q.RefID] = true
			for _, v := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !strings.HasPrefix(v[1], "__") && !slices.Contains(defined, v[1]) {
					t.Errorf("%s: there is no variable %s", p.Title, v[1])
				}
			}
			left := []string{"instance", "job"} // where nothing is summed up
			if groups := by.FindAllStringSubmatch(q.Expr, -1); groups != nil {
				left = nil
				for _, g := range groups {
					left = append(left, strings.Split(strings.ReplaceAll(g[1], " ", ""), ",")...)
				}
			} else if strings.HasPrefix(q.Expr, "sum(") || strings.HasPrefix(q.Expr, "max(") {
				left = nil
			}
			for _, l := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !slices.Contains(left, l[1]) || l[1] == "le" {
					t.Errorf("%s: the legend names %s, which %s does not leave", p.Title, l[1], q.Expr)
				}
			}
		}
		if len(refs) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
	}
}
