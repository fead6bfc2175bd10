package jobcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/wire/jobrequest"
)

// ParamRule says which of a task's params may go to a provider. The zero value
// lets none pass.
type ParamRule struct {
	others  bool // those that are not named pass, else those that are
	names   []string
	members map[string]string // by the gateway's word: the provider's
	roles   []string          // of references that the provider can tell apart
}

// As lets a field of the gateway's vocabulary (`audio`, `seed`,
// `negative_prompt`) pass under the provider's name of it.
func (r ParamRule) As(word, member string) ParamRule {
	r.members = maps.Clone(r.members)
	if r.members == nil {
		r.members = map[string]string{}
	}
	r.members[word] = member
	return r
}

// Roles lets references of these roles (jobrequest.Roles) pass, which the adapter
// then has to tell the provider. A rule without them takes references without.
func (r ParamRule) Roles(roles ...string) ParamRule {
	r.roles = roles
	return r
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
	if len(w.Set) > 0 {
		if further == nil {
			further = map[string]json.RawMessage{}
		}
		maps.Copy(further, w.Set)
	}
	w.Params, w.further = nil, further
	return g.Submit(ctx, w)
}

// check returns the params of a task, all of which pass.
func (r ParamRule) check(w Task) (map[string]json.RawMessage, *upstream.JobFailure) {
	for _, reference := range w.References {
		if reference.Role != "" && !slices.Contains(r.roles, reference.Role) {
			return nil, upstream.Unsuitable(w.Kind, "a reference that is a %.40s, which this provider or model cannot be told", reference.Role)
		}
	}
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
	maps.DeleteFunc(params, func(name string, _ json.RawMessage) bool {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		return slices.ContainsFunc(w.Omit, same) || slices.ContainsFunc(slices.Collect(maps.Keys(w.Set)), same)
	})
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch member := r.members[name]; {
		case member == name:
		case member != "":
			if _, twice := params[member]; twice {
				return nil, upstream.Unsuitable(w.Kind, "the fields %q and %q, which are one at the provider", name, member)
			}
			params[member] = params[name]
			delete(params, name)
		default:
			if err := r.Refuses(name); err != nil {
				return nil, upstream.Unsuitable(w.Kind, "the field %.80q %w", name, err)
			}
		}
	}
	return params, nil
}

// Decides tells whether the gateway decides about a field of this name. It does
// not about one that the provider has no place for.
func (r ParamRule) Decides(name string) bool {
	return r.others && (slices.Contains(r.names, name) && !slices.Contains(jobrequest.ChoiceNames(), name) || jobrequest.OwnsParam(name))
}

// Refuses tells why a param of this name cannot go to the provider; nil: it can.
func (r ParamRule) Refuses(name string) error {
	named := slices.Contains(r.names, name)
	switch {
	case !r.others && !named:
		return fmt.Errorf("cannot be one of the model's params; the provider takes %s", strings.Join(r.names, ", "))
	case r.others && (named || jobrequest.OwnsParam(name)):
		return errors.New("is the line's own and cannot be one of the model's params")
	}
	return nil
}

// Further are the params of a submission that its generator's rule lets pass,
// and what the line sets in their place, each as JSON; nil: none. The map is the generator's own.
func (w Task) Further() map[string]json.RawMessage { return w.further }

// AddFurther adds them to a provider's object.
func (w Task) AddFurther(to map[string]any) {
	for name, value := range w.further {
		to[name] = value
	}
}

// Audio is whether the task is to have sound; said is false where nobody said
// it. It is for adapters whose rule lets `audio` pass as it is.
func (w Task) Audio() (on, said bool) {
	raw, said := w.further["audio"]
	return string(raw) == "true", said
}

// Framed returns the references by their roles: the frames that a clip begins and
// ends with, nil without any, and the rest.
func (w Task) Framed() (first, last *Reference, rest []Reference) {
	for i, r := range w.References {
		switch r.Role {
		case jobrequest.FirstFrame:
			first = &w.References[i]
		case jobrequest.LastFrame:
			last = &w.References[i]
		default:
			rest = append(rest, r)
		}
	}
	return first, last, rest
}

// Frames is Framed, but for images without roles: one is the frame that the clip
// begins with, and two are those that it begins and ends with.
func (w Task) Frames() (first, last *Reference, rest []Reference) {
	first, last, rest = w.Framed()
	if len(rest) == 0 || len(rest) > 2 || w.HasRoles() || slices.ContainsFunc(rest, func(r Reference) bool { return !r.Image() }) {
		return first, last, rest
	}
	if len(rest) == 2 {
		last = &rest[1]
	}
	return &rest[0], last, nil
}

// HasRoles tells whether the task's references have roles.
func (w Task) HasRoles() bool { return len(w.References) > 0 && w.References[0].Role != "" }
