package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/alecthomas/kong"
)

type lineList struct{}

func (c *lineList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: "/lines", query: url.Values{"node": {"all"}}, view: linesView()})
}

// lineSwitch drains or resumes a line.
type lineSwitch struct{ lineArg }

func (c *lineSwitch) Run(p *process, parsed *kong.Context) error {
	return p.call(call{method: http.MethodPost, path: path("lines", c.Line, parsed.Selected().Name), view: linesView(),
		notFound: fmt.Errorf("there is no line %q in the current catalog: see `tollgate line list` (not_found)", c.Line)})
}

// writeModelStates writes a table of models out of service on a line.
func writeModelStates(w io.Writer, lines []object, width int) {
	var rows []object
	for _, l := range lines {
		states, _ := rowsOf(l.get("model_states"))
		for _, s := range states {
			if s.get("state") != "in_service" {
				rows = append(rows, append(object{{"line", l.get("id")}}, s...))
			}
		}
	}
	if len(rows) == 0 {
		if !slices.ContainsFunc(lines, func(l object) bool { return l.get("state") != "in_service" }) {
			writeLine(w, "\nEvery model is in service on its lines.")
		}
		return
	}
	writeLine(w, "\nModels that are out of service on a line, or in one form of it:")
	table{names: []string{"line", "model", "state", "form", "tools", "since", "until"}, width: width, showCauses: true}.write(w, rows)
}
