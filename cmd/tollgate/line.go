package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
)

type lineList struct{}

// Run lists lines, joined from what the nodes reported last.
func (c *lineList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: "/lines", query: url.Values{"node": {"all"}}, view: linesView()})
}

type lineDrain struct {
	Line string `arg:"" help:"Id of the line."`
}

// Run takes a line out of use on all nodes.
func (c *lineDrain) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("lines", c.Line, "drain"), view: linesView(), unknown: noLine(c.Line)})
}

type lineResume struct {
	Line string `arg:"" help:"Id of the line."`
}

// Run brings a line back on all nodes.
func (c *lineResume) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("lines", c.Line, "resume"), view: linesView(), unknown: noLine(c.Line)})
}

// noLine says that there is no such line, and which command lists those that there are.
func noLine(id string) error {
	return fmt.Errorf("there is no line %q in the current catalog: `tollgate line list` lists its lines (not_found)", id)
}

// writeModelStates writes the models of listed lines that are not in service, with their
// causes.
func writeModelStates(w io.Writer, lines []object, width int) {
	var out []object
	for _, l := range lines {
		states, _ := rowsOf(l.get("model_states"))
		for _, s := range states {
			if s.get("state") != "in_service" {
				out = append(out, append(object{{"line", l.get("id")}}, s...))
			}
		}
	}
	if len(out) == 0 {
		writeLine(w, "\nEvery model is in service on its lines.")
		return
	}
	writeLine(w, "\nModels that are not in service on a line, or not in a form:")
	table{names: []string{"line", "model", "state", "form", "tools", "since", "until"}, width: width, causes: true}.write(w, out)
}
