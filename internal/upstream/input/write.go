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

// Carry brings a reference to the provider and returns the reference's value in the input: an
// address or a data URI. Its error is a *upstream.JobFailure.
type Carry func(ctx context.Context, r jobcall.Reference) (string, error)

// Write writes a work as its model's input: the operator's own members first, replaced by the
// client's further fields, replaced by the fields of the work. The error is a *upstream.JobFailure:
// upstream.Unsuitable if the style has no member for a field, otherwise Carry's. Carry is called
// only if the style has members for all fields.
func (s *Style) Write(ctx context.Context, w jobcall.Task, carry Carry) ([]byte, error) {
	d := draft{style: s, work: w, members: map[string]any{}}
	d.plain()
	carried := d.references()
	if d.fault != nil {
		return nil, d.fault
	}
	out := make(map[string]json.RawMessage, len(s.input)+len(w.Further())+len(d.members)+len(carried))
	for name, value := range s.input {
		out[name] = value
	}
	for name, value := range w.Further() {
		out[name] = value
	}
	for name, value := range d.members {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, upstream.Unsuitable(w.Kind, "%s cannot be written: %w", name, err)
		}
		out[name] = raw
	}
	for name, refs := range carried {
		raw, err := refs.write(ctx, carry)
		if err != nil {
			return nil, err
		}
		out[name] = raw
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, upstream.Unsuitable(w.Kind, "the input cannot be written: %w", err)
	}
	return body, nil
}

// draft is an unfinished input.
type draft struct {
	style   *Style
	work    jobcall.Task
	members map[string]any
	fault   *upstream.JobFailure // the first failure
}

// carried holds the references of one member.
type carried struct {
	list bool
	refs []jobcall.Reference
}

// fail records the first failure.
func (d *draft) fail(format string, args ...any) {
	if d.fault == nil {
		d.fault = upstream.Unsuitable(d.work.Kind, format, args...)
	}
}

// say writes a field if the style has a member for the field.
func (d *draft) say(word string, value any) {
	name := d.style.fields[word]
	if name == "" {
		return
	}
	if _, taken := d.members[name]; taken {
		d.fail("the line's options name %q twice", name)
	}
	d.members[name] = value
}

// spell writes a field whose values may have the model's own spelling.
func (d *draft) spell(word, text string, value any) {
	if own, ok := d.style.values[word][text]; ok {
		value = own
	}
	d.say(word, value)
}

// plain writes everything except the references.
func (d *draft) plain() {
	s, w := d.style, d.work
	if w.Prompt != "" {
		d.say(Prompt, w.Prompt)
	}
	if w.Count > 1 {
		if s.fields[Count] == "" {
			d.fail("the model %s makes one image a call", s.Model)
		}
		d.say(Count, w.Count)
	}
	d.size()
	if w.Seconds > 0 {
		text := strconv.FormatInt(w.Seconds, 10)
		switch s.duration {
		case DurationText:
			d.spell(Duration, text, text)
		case DurationSeconds:
			d.spell(Duration, text, text+"s")
		default:
			d.spell(Duration, text, w.Seconds)
		}
	}
}

// size writes the size of the picture or video. A tier above the smallest is paid for and must be
// requested: by name, or in pixels, for a square picture if there is no ratio.
func (d *draft) size() {
	s, w := d.style, d.work
	named := s.fields[Resolution] != "" && (s.size == SizeRatio || s.named[Resolution])
	width, height := w.Width, w.Height
	if side := w.Square(); width <= 0 && !named && w.Kind == upstream.KindImage {
		width, height = side, side
	}
	switch s.size {
	case SizeRatio:
		if w.Ratio != "" {
			d.spell(Ratio, w.Ratio, w.Ratio)
		} else if w.Exact {
			d.fail("the model %s takes a ratio, no pixels", s.Model)
		}
		d.spell(Resolution, w.Tier, w.Tier)
	case SizePixels:
		if width > 0 && height > 0 {
			named = named || s.fields[Width] != "" && s.fields[Height] != ""
			d.say(Width, width)
			d.say(Height, height)
		}
	case SizeObject:
		if width > 0 && height > 0 {
			named = named || s.fields[Size] != ""
			d.say(Size, map[string]int{"width": width, "height": height})
		}
	}
	if s.size != SizeRatio && s.named[Resolution] {
		d.spell(Resolution, w.Tier, w.Tier)
	}
	if w.Larger && !named {
		d.fail("the model %s cannot be asked for %s", s.Model, w.Tier)
	}
}

// references returns the references for each member.
func (d *draft) references() map[string]carried {
	var images, videos, subjects []jobcall.Reference
	found := map[string]carried{}
	for _, r := range d.work.References {
		switch {
		case strings.HasPrefix(r.Type, "video/"):
			videos = append(videos, r)
		case r.Role == jobrequest.FirstFrame:
			d.assign(found, "first frame", []jobcall.Reference{r}, FirstFrame, "")
		case r.Role == jobrequest.LastFrame:
			d.assign(found, "last frame", []jobcall.Reference{r}, LastFrame, "")
		case r.Role == jobrequest.Subject:
			subjects = append(subjects, r)
		default:
			images = append(images, r)
		}
	}
	d.assign(found, "images", images, Image, Images)
	d.assign(found, "reference images", subjects, "", Subjects)
	d.assign(found, "videos", videos, Video, Videos)
	if d.work.Mask != nil {
		d.assign(found, "a mask", []jobcall.Reference{*d.work.Mask}, Mask, "")
	}
	return found
}

// assign assigns references to a member: the single member for one reference, or the list member.
func (d *draft) assign(found map[string]carried, what string, refs []jobcall.Reference, one, several string) {
	if len(refs) == 0 {
		return
	}
	name, list := d.style.fields[one], false
	if len(refs) > 1 || name == "" {
		name, list = d.style.fields[several], true
	}
	_, twice := found[name]
	switch {
	case name == "":
		d.fail("the model %s does not take %d %s", d.style.Model, len(refs), what)
	case twice, d.members[name] != nil:
		d.fail("the line's options name %q twice", name)
	default:
		found[name] = carried{list: list, refs: refs}
	}
}

// ParamRule allows all params except the fields written by the line, because these would get around
// the price.
func (s *Style) ParamRule() jobcall.ParamRule {
	var own []string
	for word, name := range s.fields {
		if name != "" && s.uses(word) {
			own = append(own, name)
		}
	}
	for _, word := range choices() {
		if member, known := s.fields[word]; known && member == "" {
			own = append(own, word)
		}
	}
	rule := jobcall.AllBut(own...).Roles(jobrequest.Roles()...)
	for _, word := range choices() {
		if member := s.fields[word]; member != "" {
			rule = rule.As(word, member)
		}
	}
	return rule
}

// choices returns the fields sent as further fields: the client's value under the model's own name.
func choices() []string { return []string{Audio, Seed, Negative} }

// uses reports whether a style ever writes a field.
func (s *Style) uses(word string) bool {
	switch word {
	case Audio, Seed, Negative:
		return false
	case Ratio:
		return s.size == SizeRatio
	case Resolution:
		return s.size == SizeRatio || s.named[Resolution]
	case Width, Height:
		return s.size == SizePixels
	case Size:
		return s.size == SizeObject
	}
	return true
}

// write carries the references and returns the member's value.
func (c carried) write(ctx context.Context, carry Carry) (json.RawMessage, error) {
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
