package input

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Carry makes a reference available to the provider and returns the value of the reference in the
// input: an address or a data URI. Its error is a *upstream.JobFailure.
type Carry func(ctx context.Context, r jobcall.Reference) (string, error)

// Write returns a task as JSON for its model's input. A field of the task takes precedence over a
// further field of the client, and a further field over a member of the option `input`. The error
// is a *upstream.JobFailure: upstream.Unsuitable if the style has no member for a field, otherwise
// the error of carry. Write calls carry only if the style has members for all fields.
func (s *Style) Write(ctx context.Context, task jobcall.Task, carry Carry) ([]byte, error) {
	d := draft{style: s, task: task, members: map[string]any{}}
	d.setFields()
	byMember := d.references()
	if d.fault != nil {
		return nil, d.fault
	}
	out := make(map[string]json.RawMessage, len(s.input)+len(task.ExtraParams())+len(d.members)+len(byMember))
	for name, value := range s.input {
		out[name] = value
	}
	for name, value := range task.ExtraParams() {
		out[name] = value
	}
	for name, value := range d.members {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, upstream.Unsuitable(task.Kind, "encode %s: %w", name, err)
		}
		out[name] = raw
	}
	for name, refs := range byMember {
		raw, err := refs.write(ctx, carry)
		if err != nil {
			return nil, err
		}
		out[name] = raw
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "encode the input: %w", err)
	}
	return body, nil
}

// draft is an unfinished input.
type draft struct {
	style   *Style
	task    jobcall.Task
	members map[string]any
	fault   *upstream.JobFailure // the first failure
}

// memberRefs holds the references of one member.
type memberRefs struct {
	list bool // the member is a list
	refs []jobcall.Reference
}

// fail records the first failure.
func (d *draft) fail(format string, args ...any) {
	if d.fault == nil {
		d.fault = upstream.Unsuitable(d.task.Kind, format, args...)
	}
}

// set sets the member of a field. It is a no-op if the style has no member for the field.
func (d *draft) set(field string, value any) {
	name := d.style.fields[field]
	if name == "" {
		return
	}
	if _, exists := d.members[name]; exists {
		d.fail("the line's options name %q twice", name)
	}
	d.members[name] = value
}

// setSpelled sets the member of a field to the style's spelling of text, or to value if the style
// has no spelling of text.
func (d *draft) setSpelled(field, text string, value any) {
	if spelling, ok := d.style.values[field][text]; ok {
		value = spelling
	}
	d.set(field, value)
}

// setFields sets the members of all fields except the references.
func (d *draft) setFields() {
	s, task := d.style, d.task
	if task.Prompt != "" {
		d.set(Prompt, task.Prompt)
	}
	if task.Count > 1 {
		if s.fields[Count] == "" {
			d.fail("the model %s makes one image per call", s.Model)
		}
		d.set(Count, task.Count)
	}
	d.setSize()
	if task.Seconds > 0 {
		text := strconv.FormatInt(task.Seconds, 10)
		switch s.duration {
		case DurationText:
			d.setSpelled(Duration, text, text)
		case DurationSeconds:
			d.setSpelled(Duration, text, text+"s")
		default:
			d.setSpelled(Duration, text, task.Seconds)
		}
	}
}

// setSize sets the members for the size of the picture or video. The client pays for a tier above
// the smallest, so the input must request such a tier: by name, or in pixels. Without a ratio, the
// pixels are those of a square picture.
func (d *draft) setSize() {
	s, task := d.style, d.task
	requested := s.fields[Resolution] != "" && (s.size == SizeRatio || s.renamed[Resolution])
	width, height := task.Width, task.Height
	if side := task.Square(); width <= 0 && !requested && task.Kind == upstream.KindImage {
		width, height = side, side
	}
	switch s.size {
	case SizeRatio:
		if task.Ratio != "" {
			d.setSpelled(Ratio, task.Ratio, task.Ratio)
		} else if task.Exact {
			d.fail("the model %s takes a ratio, not pixels", s.Model)
		}
		d.setSpelled(Resolution, task.Tier, task.Tier)
	case SizePixels:
		if width > 0 && height > 0 {
			requested = requested || s.fields[Width] != "" && s.fields[Height] != ""
			d.set(Width, width)
			d.set(Height, height)
		}
	case SizeObject:
		if width > 0 && height > 0 {
			requested = requested || s.fields[Size] != ""
			d.set(Size, map[string]int{"width": width, "height": height})
		}
	}
	if s.size != SizeRatio && s.renamed[Resolution] {
		d.setSpelled(Resolution, task.Tier, task.Tier)
	}
	if task.HasSmallerTier && !requested {
		d.fail("the input of the model %s cannot request %s", s.Model, task.Tier)
	}
}

// references returns the references by member.
func (d *draft) references() map[string]memberRefs {
	var images, videos, subjects []jobcall.Reference
	byMember := map[string]memberRefs{}
	for _, r := range d.task.References {
		switch {
		case strings.HasPrefix(r.Type, "video/"):
			videos = append(videos, r)
		case r.Role == jobrequest.FirstFrame:
			d.assign(byMember, "first frame", []jobcall.Reference{r}, FirstFrame, "")
		case r.Role == jobrequest.LastFrame:
			d.assign(byMember, "last frame", []jobcall.Reference{r}, LastFrame, "")
		case r.Role == jobrequest.Subject:
			subjects = append(subjects, r)
		default:
			images = append(images, r)
		}
	}
	d.assign(byMember, "images", images, Image, Images)
	d.assign(byMember, "reference images", subjects, "", Subjects)
	d.assign(byMember, "videos", videos, Video, Videos)
	if d.task.Mask != nil {
		d.assign(byMember, "a mask", []jobcall.Reference{*d.task.Mask}, Mask, "")
	}
	return byMember
}

// assign assigns references to the member of the field single, or to the member of the field list
// if there are several references or single has no member. kind names the references in errors.
func (d *draft) assign(byMember map[string]memberRefs, kind string, refs []jobcall.Reference, single, list string) {
	if len(refs) == 0 {
		return
	}
	name, isList := d.style.fields[single], false
	if len(refs) > 1 || name == "" {
		name, isList = d.style.fields[list], true
	}
	_, twice := byMember[name]
	switch {
	case name == "":
		d.fail("the model %s does not take %d %s", d.style.Model, len(refs), kind)
	case twice, d.members[name] != nil:
		d.fail("the line's options name %q twice", name)
	default:
		byMember[name] = memberRefs{list: isList, refs: refs}
	}
}

// ParamRule returns the rule for a client's params. It forbids the fields omitted by the line, and the
// members written by Write, because such a param could change the result without changing the price.
func (s *Style) ParamRule() jobcall.ParamRule {
	var forbidden []string
	for field, member := range s.fields {
		if member != "" && s.uses(field) {
			forbidden = append(forbidden, member)
		}
	}
	for _, field := range choices() {
		if member, known := s.fields[field]; known && member == "" {
			forbidden = append(forbidden, field)
		}
	}
	rule := jobcall.AllParamsExcept(forbidden...).Roles(jobrequest.Roles()...)
	for _, field := range choices() {
		if member := s.fields[field]; member != "" {
			rule = rule.Rename(field, member)
		}
	}
	return rule
}

// choices returns the fields set by the client's params. Their values are sent unchanged, under the
// member's name.
func choices() []string { return []string{Audio, Seed, Negative} }

// uses reports whether the style can write a field.
func (s *Style) uses(field string) bool {
	switch field {
	case Audio, Seed, Negative:
		return false
	case Ratio:
		return s.size == SizeRatio
	case Resolution:
		return s.size == SizeRatio || s.renamed[Resolution]
	case Width, Height:
		return s.size == SizePixels
	case Size:
		return s.size == SizeObject
	}
	return true
}

// write calls carry for each reference and returns the member's value.
func (c memberRefs) write(ctx context.Context, carry Carry) (json.RawMessage, error) {
	addresses := make([]string, len(c.refs))
	for i, r := range c.refs {
		address, err := carry(ctx, r)
		if err != nil {
			return nil, err
		}
		addresses[i] = address
	}
	if c.list {
		return json.Marshal(addresses)
	}
	return json.Marshal(addresses[0])
}
