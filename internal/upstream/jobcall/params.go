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

// ParamRule decides about the params for a provider. The zero value allows no params.
type ParamRule struct {
	others  bool // allow all names except names, instead of only names
	names   []string
	members map[string]string // provider's names by the gateway's names
	roles   []string          // reference roles known to the provider
}

// As allows a field of the gateway's vocabulary (`audio`, `seed`, `negative_prompt`) and sends the
// field under the provider's name.
func (r ParamRule) As(word, member string) ParamRule {
	r.members = maps.Clone(r.members)
	if r.members == nil {
		r.members = map[string]string{}
	}
	r.members[word] = member
	return r
}

// Roles allows references with these roles (jobrequest.Roles); the adapter must pass the role to
// the provider. Other rules only allow references without roles.
func (r ParamRule) Roles(roles ...string) ParamRule {
	r.roles = roles
	return r
}

// Only returns a rule that allows the params with these names, for providers with a fixed place for
// each param.
func Only(names ...string) ParamRule { return ParamRule{names: names} }

// AllBut returns a rule that allows every param except the fields owned by the gateway: the fields
// of submissions read by the gateway, and names, the provider's fields for everything requested,
// priced or counted, and for the delivery of results.
func AllBut(names ...string) ParamRule { return ParamRule{others: true, names: names} }

// Submit submits a task to a generator; all submissions go through Submit. A param not allowed by
// the generator's rule makes the task Unsuitable before any call, so that no param is dropped
// silently or evades the price.
func Submit(ctx context.Context, g Generator, task Task) (*TaskStatus, error) {
	if task.Kind != upstream.KindImage && task.Kind != upstream.KindVideo {
		return nil, upstream.Unsuitable(task.Kind, "no provider makes a %.80q", task.Kind)
	}
	further, failure := g.ParamRule(task).check(task)
	if failure != nil {
		return nil, failure
	}
	if len(task.Set) > 0 {
		if further == nil {
			further = map[string]json.RawMessage{}
		}
		maps.Copy(further, task.Set)
	}
	task.Params, task.further = nil, further
	return g.Submit(ctx, task)
}

// check returns the params of a task, or a failure if any param is not allowed.
func (r ParamRule) check(task Task) (map[string]json.RawMessage, *upstream.JobFailure) {
	for _, reference := range task.References {
		if reference.Role != "" && !slices.Contains(r.roles, reference.Role) {
			return nil, upstream.Unsuitable(task.Kind, "a reference that is a %.40s, which this provider or model cannot be told", reference.Role)
		}
	}
	if len(task.Params) == 0 {
		return nil, nil
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(task.Params, &params); err != nil || params == nil {
		if err == nil {
			err = errors.New("null")
		}
		return nil, upstream.Unsuitable(task.Kind, "params are no object: %w", err)
	}
	maps.DeleteFunc(params, func(name string, _ json.RawMessage) bool {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		return slices.ContainsFunc(task.Omit, same) || slices.ContainsFunc(slices.Collect(maps.Keys(task.Set)), same)
	})
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch member := r.members[name]; {
		case member == name:
		case member != "":
			if _, twice := params[member]; twice {
				return nil, upstream.Unsuitable(task.Kind, "the fields %q and %q, which are one at the provider", name, member)
			}
			params[member] = params[name]
			delete(params, name)
		default:
			if err := r.Refuses(name); err != nil {
				return nil, upstream.Unsuitable(task.Kind, "the field %.80q %w", name, err)
			}
		}
	}
	return params, nil
}

// Decides reports whether the gateway sets the field called name. It returns false for a field that
// the provider does not have.
func (r ParamRule) Decides(name string) bool {
	return r.others && (slices.Contains(r.names, name) && !slices.Contains(jobrequest.ChoiceNames(), name) || jobrequest.OwnsParam(name))
}

// Refuses returns an error if a param called name cannot be sent to the provider.
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

// Further returns the params of a submission allowed by its generator's rule, and the values set by
// the line, each as JSON, or nil. The generator owns the map.
func (task Task) Further() map[string]json.RawMessage { return task.further }

// AddFurther adds the members of Further to a provider's object.
func (task Task) AddFurther(to map[string]any) {
	for name, value := range task.further {
		to[name] = value
	}
}

// Audio returns the requested value of `audio` and whether the task has one. It is for adapters
// whose rule allows `audio` unchanged.
func (task Task) Audio() (on, requested bool) {
	raw, requested := task.further["audio"]
	return string(raw) == "true", requested
}

// SplitFrames splits the references by role: the first and last frame of a clip, each nil if missing,
// and the rest.
func (task Task) SplitFrames() (first, last *Reference, rest []Reference) {
	for i, r := range task.References {
		switch r.Role {
		case jobrequest.FirstFrame:
			first = &task.References[i]
		case jobrequest.LastFrame:
			last = &task.References[i]
		default:
			rest = append(rest, r)
		}
	}
	return first, last, rest
}

// Frames is like SplitFrames, except for images without roles: one image is the first frame, and two images
// are the first and the last frame.
func (task Task) Frames() (first, last *Reference, rest []Reference) {
	first, last, rest = task.SplitFrames()
	if len(rest) == 0 || len(rest) > 2 || task.HasRoles() || slices.ContainsFunc(rest, func(r Reference) bool { return !r.Image() }) {
		return first, last, rest
	}
	if len(rest) == 2 {
		last = &rest[1]
	}
	return &rest[0], last, nil
}

// HasRoles reports whether the task's references have roles.
func (task Task) HasRoles() bool { return len(task.References) > 0 && task.References[0].Role != "" }
