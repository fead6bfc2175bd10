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

// ParamRule says which params a provider accepts. The zero value allows no params.
type ParamRule struct {
	allowOthers bool // all params except names are allowed, instead of only names
	names       []string
	members     map[string]string // the provider's names by the gateway's names
	roles       []string          // reference roles supported by the provider
}

// Rename allows a field of the gateway's vocabulary (`audio`, `seed`, `negative_prompt`) and sends the
// field under the provider's name.
func (r ParamRule) Rename(name, member string) ParamRule {
	r.members = maps.Clone(r.members)
	if r.members == nil {
		r.members = map[string]string{}
	}
	r.members[name] = member
	return r
}

// Roles allows references with these roles (jobrequest.Roles); the adapter must pass the role to
// the provider. Other rules only allow references without roles.
func (r ParamRule) Roles(roles ...string) ParamRule {
	r.roles = roles
	return r
}

// OnlyParams returns a rule that allows only the params with these names.
func OnlyParams(names ...string) ParamRule { return ParamRule{names: names} }

// AllParamsExcept returns a rule that allows every param except names and the submission fields that
// the gateway reads. names are the provider's fields for everything requested, priced or counted, and
// for the delivery of results.
func AllParamsExcept(names ...string) ParamRule { return ParamRule{allowOthers: true, names: names} }

// Submit submits a task to a generator; all submissions go through Submit. If the generator's rule does
// not allow a param, the task is Unsuitable and no call is made, so that no param is dropped silently or
// evades the price.
func Submit(ctx context.Context, g Generator, task Task) (*TaskStatus, error) {
	if task.Kind != upstream.KindImage && task.Kind != upstream.KindVideo {
		return nil, upstream.Unsuitable(task.Kind, "no provider makes a %.80q", task.Kind)
	}
	extra, failure := g.ParamRule(task).check(task)
	if failure != nil {
		return nil, failure
	}
	if len(task.Set) > 0 {
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		maps.Copy(extra, task.Set)
	}
	task.Params, task.extra = nil, extra
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
			if err := r.CheckName(name); err != nil {
				return nil, upstream.Unsuitable(task.Kind, "the field %.80q %w", name, err)
			}
		}
	}
	return params, nil
}

// SetsField reports whether the gateway sets the field called name. It returns false for a field that
// the provider does not have.
func (r ParamRule) SetsField(name string) bool {
	return r.allowOthers && (slices.Contains(r.names, name) && !slices.Contains(jobrequest.ChoiceNames(), name) || jobrequest.OwnsParam(name))
}

// CheckName returns an error if a param called name cannot be sent to the provider.
func (r ParamRule) CheckName(name string) error {
	inNames := slices.Contains(r.names, name)
	switch {
	case !r.allowOthers && !inNames:
		return fmt.Errorf("cannot be one of the model's params; the provider takes %s", strings.Join(r.names, ", "))
	case r.allowOthers && (inNames || jobrequest.OwnsParam(name)):
		return errors.New("is the line's own and cannot be one of the model's params")
	}
	return nil
}

// ExtraParams returns the submission's params, as checked by the generator's rule, and the values set
// by the line, each as JSON. It returns nil if there are none. The generator owns the map.
func (task Task) ExtraParams() map[string]json.RawMessage { return task.extra }

// AddExtraParams adds the members of ExtraParams to a provider's object.
func (task Task) AddExtraParams(to map[string]any) {
	for name, value := range task.extra {
		to[name] = value
	}
}

// Audio returns the value of the param `audio` and whether the task has the param. It is for adapters
// with a rule that allows `audio` unchanged.
func (task Task) Audio() (enabled, requested bool) {
	raw, requested := task.extra["audio"]
	return string(raw) == "true", requested
}

// SplitFrames splits the references by role into the first frame, the last frame and the rest. A
// missing frame is nil.
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

// Frames is like SplitFrames, except for one or two images without roles. One image is the first frame,
// and two images are the first and the last frame.
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
