package archtest

import (
	"go/ast"
	"testing"
)

// wallClock lists the product files that may read the process's clock, with the reason. All others
// have a clock as a field (`Now`, by default time.Now) or read the database's, so that tests
// control the time.
var wallClock = map[string]string{
	"cmd/tollgate/main.go":                   "tells a second signal from an echo of the first",
	"internal/app/server/refusal.go":         "the Date of an answer",
	"internal/app/lifecycle.go":              "says in the log how long a part took to stop",
	"internal/egress/egress.go":              "blurs how long a look at an address took",
	"internal/store/id/id.go":                "ids sort by time",
	"internal/loop/loop.go":                  "the rhythm of background steps; its tests fake the clock of the runtime",
	"internal/media/handler.go":              "deadlines of sockets",
	"internal/trace/span.go":                 "when the work of a span was over, beside the clock of OpenTelemetry's library",
	"internal/store/clock.go":                "is the clock that limits and expiry go by",
	"internal/upstream/exchange/exchange.go": "when an answer without a Date came",
	"internal/upstream/sandbox/job.go":       "plays a provider, whose time goes by",
	"internal/upstream/sandbox/sandbox.go":   "plays a provider, whose time goes by",
}

// TestTheClockHasOwners checks that only listed files call time.Now, time.Since and time.Until.
func TestTheClockHasOwners(t *testing.T) {
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
			if !ok || named(on.X) != "time" {
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
