package jobcall

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/wire/jobrequest"
)

// ParamRule says which of a task's params may go to a provider. The zero value
// lets none pass.
type ParamRule struct {
	others bool // those that are not named pass, else those that are
	names  []string
}

// Only lets the params of these names pass, for providers that have a place for
// each.
func Only(names ...string) ParamRule { return ParamRule{names: names} }

// AllBut lets every param pass but those that the gateway decides about: the
// fields of submissions that it reads itself, and these names, which are the
// provider's for what is asked, priced and counted, and for where answers go.
func AllBut(names ...string) ParamRule { return ParamRule{others: true, names: names} }

// Submit submits a task to a generator: the one way there. What the generator's
// rule does not let pass makes the task Unsuitable, before any call, so that
// nothing is dropped in silence and nothing gets round the price.
func Submit(ctx context.Context, g Generator, w Task) (*TaskStatus, error) {
	if w.Kind != upstream.KindImage && w.Kind != upstream.KindVideo {
		return nil, upstream.Unsuitable(w.Kind, "no provider makes a %.80q", w.Kind)
	}
	further, failure := g.ParamRule(w).check(w)
	if failure != nil {
		return nil, failure
	}
	w.Params, w.further = nil, further
	return g.Submit(ctx, w)
}

// check returns the params of a task, all of which pass.
func (r ParamRule) check(w Task) (map[string]json.RawMessage, *upstream.JobFailure) {
	if len(w.Params) == 0 {
		return nil, nil
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(w.Params, &params); err != nil || params == nil {
		if err == nil {
			err = errors.New("null")
		}
		return nil, upstream.Unsuitable(w.Kind, "params are no object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		named := slices.Contains(r.names, name)
		switch {
		case !r.others && !named:
			return nil, upstream.Unsuitable(w.Kind, "the field %.80q cannot be one of the model's params; the provider takes %s",
				name, strings.Join(r.names, ", "))
		case r.others && (named || jobrequest.OwnsParam(name)):
			return nil, upstream.Unsuitable(w.Kind, "the field %.80q is the line's own and cannot be one of the model's params", name)
		}
	}
	return params, nil
}

// Further are the params of a submission that its generator's rule lets pass,
// each as JSON; nil: none. The map is the generator's own.
func (w Task) Further() map[string]json.RawMessage { return w.further }

// AddFurther adds them to a provider's object.
func (w Task) AddFurther(to map[string]any) {
	for name, value := range w.further {
		to[name] = value
	}
}
