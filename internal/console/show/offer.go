package show

import (
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/console/part"
	"tollgate/internal/line"
	"tollgate/internal/line/health"
)

// Offer is the catalog and the state of its lines on this node.
type Offer struct {
	Catalog *catalog.Snapshot
	Lines   []line.Status
}

// Expectations of a model's answers, from the lowest. A provider's line with a temporary outage is
// better than a sandbox line, so that made-up answers are not taken for the service.
const (
	answersNever = iota // no line of it is asked until somebody does something about it
	playsLater
	playsNow
	answersLater
	answersNow
)

// First returns the first of the best open models accepted by fits, or nil.
func (o Offer) First(fits func(*catalog.Model) bool) (first *catalog.Model) {
	best := -1
	for _, m := range o.Catalog.Models() {
		if m.State != catalog.StateOpen || !fits(m) {
			continue
		}
		if expected := o.expected(m); expected > best {
			first, best = m, expected
		}
	}
	return first
}

// expected returns the expectation of a model's best line.
func (o Offer) expected(m *catalog.Model) int {
	most := answersNever
	for _, l := range o.Catalog.Lines(m.ID) {
		expected := o.ofLine(l, m.ID)
		if expected != answersNever && l.IsSandbox() {
			expected -= answersLater - playsLater
		}
		most = max(most, expected)
	}
	return most
}

func (o Offer) ofLine(l *catalog.Line, model string) int {
	if l.Out != "" {
		return answersNever
	}
	i := slices.IndexFunc(o.Lines, func(s line.Status) bool { return s.Line == l.ID })
	if i < 0 {
		return answersNow // nothing is held against it
	}
	switch s := o.Lines[i]; s.State {
	case health.StateInService, health.StateHalfOpen, health.StateCooling:
		if slices.ContainsFunc(s.ModelsOut, func(p health.PartOut) bool { return p.Model == model }) {
			return answersLater
		}
		return answersNow
	case health.StateCircuitOpen:
		return answersLater
	}
	return answersNever
}

// Allows reports whether a key's allowed models include a model. An empty list allows all models.
func Allows(allowed []string, model string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, model)
}

// Sandbox explains the badge of a sandbox model.
const Sandbox = "Made-up answers: no provider is asked."

// ModelLabel returns the id of a model as an option of a list: sandbox models are marked.
func ModelLabel(s *catalog.Snapshot, id string) string {
	if s.IsSandbox(id) {
		return id + " (sandbox)"
	}
	return id
}

// ModelStanding returns the badge of a model's state, and a badge for a sandbox model.
func ModelStanding(s *catalog.Snapshot, m *catalog.Model) part.Group {
	standing := part.Group{ModelState(m.State)}
	if s.IsSandbox(m.ID) {
		standing = append(standing, part.Badge{Word: "sandbox", Title: Sandbox})
	}
	return standing
}
