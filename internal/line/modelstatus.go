package line

import (
	"cmp"
	"slices"
	"strings"

	"tollgate/internal/line/health"
	"tollgate/internal/wire"
)

// ModelStatus is the state of a model on a line, in all forms or in one form.
type ModelStatus struct {
	Model string    `json:"model"`
	Form  wire.Form `json:"form,omitempty"`  // empty for all forms
	Tools bool      `json:"tools,omitempty"` // whether the state applies only to requests with tools
	// State is health.StateInService, StateCooling, StateModelOut or StateFormOut. It is
	// independent of the state of the line as a whole.
	State string `json:"state"`
	Cause string `json:"cause,omitempty"`
	Since int64  `json:"since,omitempty"` // Unix seconds
	Until int64  `json:"until,omitempty"` // next request or probe in Unix seconds
}

// modelStates returns the states of all parts that are out or cooling, and the state in_service for
// each model available in at least one form.
func modelStates(models []string, parts health.PartsOut) []ModelStatus {
	var states []ModelStatus
	out := map[string]bool{}
	add := func(state string, list []health.PartOut) {
		for _, p := range list {
			states = append(states, ModelStatus{Model: p.Model, Form: p.Form, Tools: p.Tools, State: state, Cause: p.Cause,
				Since: p.Since, Until: p.Until})
			out[p.Model] = out[p.Model] || p.Form == ""
		}
	}
	add(health.StateModelOut, parts.ModelsOut)
	add(health.StateCooling, parts.ModelsCooling)
	add(health.StateFormOut, parts.FormsOut)
	for _, model := range models {
		if !out[model] {
			states = append(states, ModelStatus{Model: model, State: health.StateInService})
		}
	}
	slices.SortStableFunc(states, func(a, b ModelStatus) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), strings.Compare(string(a.Form), string(b.Form)))
	})
	return states
}

// joinModelStates returns the states of all models reported by any node.
func joinModelStates(nodes []OnNode, parts health.PartsOut) []ModelStatus {
	var models []string
	for _, n := range nodes {
		for _, s := range n.ModelStates {
			models = append(models, s.Model)
		}
	}
	slices.Sort(models)
	return modelStates(slices.Compact(models), parts)
}
