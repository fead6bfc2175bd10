package show

import (
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/console/ui"
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
	unavailable = iota // no line of it is asked until somebody does something about it
	sandboxLater
	sandboxNow
	providerLater
	providerNow
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
	most := unavailable
	for _, l := range o.Catalog.Lines(m.ID) {
		expected := o.lineExpectation(l, m.ID)
		if expected != unavailable && l.IsSandbox() {
			expected -= providerLater - sandboxLater
		}
		most = max(most, expected)
	}
	return most
}

func (o Offer) lineExpectation(l *catalog.Line, model string) int {
	if l.Out != "" {
		return unavailable
	}
	i := slices.IndexFunc(o.Lines, func(s line.Status) bool { return s.Line == l.ID })
	if i < 0 {
		return providerNow // nothing is held against it
	}
	switch s := o.Lines[i]; s.State {
	case health.StateInService, health.StateHalfOpen, health.StateCooling:
		if slices.ContainsFunc(s.ModelsOut, func(p health.PartOut) bool { return p.Model == model }) {
			return providerLater
		}
		return providerNow
	case health.StateCircuitOpen:
		return providerLater
	}
	return unavailable
}

// Allows reports whether a key's allowed models include a model. An empty list allows all models.
func Allows(allowed []string, model string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, model)
}

// SandboxHint explains the badge of a sandbox model.
const SandboxHint = "Made-up answers: no provider is asked."

// ModelLabel returns the id of a model as an option of a list: sandbox models are marked.
func ModelLabel(s *catalog.Snapshot, id string) string {
	if s.IsSandbox(id) {
		return id + " (sandbox)"
	}
	return id
}

// ModelBadges returns the badge of a model's state, and a badge for a sandbox model.
func ModelBadges(s *catalog.Snapshot, m *catalog.Model) ui.Group {
	standing := ui.Group{ModelState(m.State)}
	if s.IsSandbox(m.ID) {
		standing = append(standing, ui.Badge{Label: "sandbox", Title: SandboxHint})
	}
	return standing
}
