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

// Availabilities of a model, the worst first. A provider's line with a temporary outage ranks above a sandbox
// line, because users must not mistake made-up answers for the service.
const (
	unavailable   = iota // no line can answer until somebody changes the catalog or resumes a line
	sandboxLater         // a sandbox line with a temporary outage
	sandboxNow           // a sandbox line in service
	providerLater        // a provider's line with a temporary outage
	providerNow          // a provider's line in service
)

// First returns the open model with the best availability, among the models accepted by fits. Among equally
// available models, it returns the first in the catalog. It returns nil if there is no such model.
func (o Offer) First(fits func(*catalog.Model) bool) (first *catalog.Model) {
	best := -1
	for _, m := range o.Catalog.Models() {
		if m.State != catalog.StateOpen || !fits(m) {
			continue
		}
		if rank := o.availability(m); rank > best {
			first, best = m, rank
		}
	}
	return first
}

// availability returns the best availability of a model on its lines.
func (o Offer) availability(m *catalog.Model) int {
	best := unavailable
	for _, l := range o.Catalog.Lines(m.ID) {
		rank := o.lineAvailability(l, m.ID)
		if rank != unavailable && l.IsSandbox() {
			rank -= providerLater - sandboxLater
		}
		best = max(best, rank)
	}
	return best
}

// lineAvailability returns the availability of a model on a line. It rates a sandbox line like a provider's
// line.
func (o Offer) lineAvailability(l *catalog.Line, model string) int {
	if l.UnusableReason != "" {
		return unavailable
	}
	i := slices.IndexFunc(o.Lines, func(s line.Status) bool { return s.Line == l.ID })
	if i < 0 {
		return providerNow // the line has no status yet
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

// SandboxHint explains the sandbox badge.
const SandboxHint = "Made-up answers, without a provider."

// ModelLabel returns the label of a model in a choice. It marks sandbox models.
func ModelLabel(s *catalog.Snapshot, id string) ui.Words {
	if s.IsSandbox(id) {
		return ui.Sayf("%s (sandbox)", id)
	}
	return ui.Data(id)
}

// ModelBadges returns the badge of a model's state, and a badge for a sandbox model.
func ModelBadges(s *catalog.Snapshot, m *catalog.Model) ui.Group {
	badges := ui.Group{ModelState(m.State)}
	if s.IsSandbox(m.ID) {
		badges = append(badges, ui.Badge{Label: "sandbox", Title: SandboxHint})
	}
	return badges
}
