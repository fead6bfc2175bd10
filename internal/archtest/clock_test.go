package archtest

import (
	"go/ast"
	"testing"
)

// wallClock has the product files that may read the process's clock, with the reason. Other files have a
// clock as a field (`Now`, by default time.Now) or read the database's clock, so that tests control the
// time.
var wallClock = map[string]string{
	"cmd/tollgate/main.go":                   "distinguishes a second signal from a copy of the first",
	"internal/app/server/refusal.go":         "the Date of an answer",
	"internal/app/lifecycle.go":              "logs how long a part took to stop",
	"internal/egress/egress.go":              "hides how long a lookup of an address took",
	"internal/store/id/id.go":                "ids sort by time",
	"internal/loop/loop.go":                  "the period of background steps; its tests fake the clock of the runtime",
	"internal/media/handler.go":              "deadlines of sockets",
	"internal/trace/span.go":                 "the end of a span's work; OpenTelemetry's library reads the clock too",
	"internal/store/clock.go":                "the clock of limits and expiry",
	"internal/upstream/exchange/exchange.go": "the arrival of an answer without a Date",
	"internal/upstream/sandbox/job.go":       "simulates a provider with a clock of its own",
	"internal/upstream/sandbox/sandbox.go":   "simulates a provider with a clock of its own",
}

// TestOnlyListedFilesReadTheClock checks that only the files in wallClock call time.Now, time.Since and
// time.Until.
func TestOnlyListedFilesReadTheClock(t *testing.T) {
	t.Parallel()
	tree := source(t)
	read := map[string]bool{}
	for _, f := range product(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			on, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || lastName(on.X) != "time" {
				return true
			}
			switch on.Sel.Name {
			case "Now", "Since", "Until":
				read[f.path] = true
				if wallClock[f.path] == "" {
					t.Errorf("%s: reads the process's clock; take it from a field, so that tests own the time", tree.at(call))
				}
			}
			return true
		})
	}
	for path := range wallClock {
		if !read[path] {
			t.Errorf("%s reads no clock: take it from the list in clock_test.go", path)
		}
	}
}
