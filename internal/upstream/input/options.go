// Package input owns the model input of tasks for providers with many families of models. The input
// is a flat JSON object. Each family has its own names of members and its own spelling of values: a
// provider has defaults (Defaults), and a line's options change the defaults.
//
// Invariants:
//   - Fields with an effect on the price (count, size, ratio, resolution, duration) and references
//     are never taken from a client's further fields.
//   - A task that the model's input cannot express is upstream.Unsuitable before any call. If the
//     reason is an option that omits a field, the operator has to change the option.
//   - This package makes no calls; the provider's adapter uploads or links references.
package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Fields of a task. The option `fields` names the member of the input for each field.
const (
	Prompt     = "prompt"
	Count      = "count"
	Image      = "image"  // a single reference image
	Images     = "images" // reference images as a list
	Video      = "video"
	Videos     = "videos"
	Mask       = "mask"
	Size       = "size" // width and height as one object
	Width      = "width"
	Height     = "height"
	Ratio      = "ratio"
	Resolution = "resolution"
	Duration   = "duration"
	FirstFrame = "first_frame" // first frame of a video
	LastFrame  = "last_frame"
	Subjects   = "reference_images" // reference images with the role of a subject, as a list
	Audio      = "audio"            // whether a video has sound
	Seed       = "seed"
	Negative   = "negative_prompt"
)

// Values of the option `size`: how the input expresses a size.
const (
	SizeRatio  = "ratio"      // a ratio and a resolution
	SizePixels = "pixels"     // a width and a height
	SizeObject = "image_size" // one object with width and height
	SizeNone   = "none"       // the input has no size
)

// Values of the option `duration`: how the input expresses a number of seconds.
const (
	DurationNumber  = "number"  // 5
	DurationText    = "text"    // "5"
	DurationSeconds = "seconds" // "5s"
)

// maxName bounds the length of the name of a member and of the id of a model, in bytes.
const maxName = 200

// allFields returns the fields of a task.
func allFields() []string {
	return []string{Prompt, Count, Image, Images, Video, Videos, Mask, Size, Width, Height, Ratio, Resolution, Duration,
		FirstFrame, LastFrame, Subjects, Audio, Seed, Negative}
}

func sizes() []string         { return []string{SizeRatio, SizePixels, SizeObject, SizeNone} }
func durations() []string     { return []string{DurationNumber, DurationText, DurationSeconds} }
func spelledFields() []string { return []string{Ratio, Resolution, Duration} }

// Defaults are the options of a provider's models.
type Defaults struct {
	// Fields maps each field of a task to the name of its member. A field with a missing or empty
	// name is not written.
	Fields map[string]string
	// ImageSize and VideoSize are values of the option `size`, one for each kind of task. Duration
	// is a value of the option `duration`.
	ImageSize, VideoSize, Duration string
}

// Options are a line's validated input options.
//
//	fields      the name of the member for each field; "" omits the field
//	size        ratio, pixels, image_size or none
//	duration    number, text or seconds
//	values      the spelling of single ratios, resolutions and durations
//	input       members sent with every request
//	references  the model for tasks with references
//	models      a list of options for single models; each entry has the
//	            provider's model ID in `id`
type Options struct {
	all    options
	models map[string]options
}

// options are the options of a line, or of one model of a line.
type options struct {
	fields     map[string]string
	size       string
	duration   string
	values     map[string]map[string]json.RawMessage
	input      map[string]json.RawMessage
	references string
}

// Check returns Read's error for a line's options.
func Check(raw map[string]any) error {
	_, err := Read(raw)
	return err
}

// Read validates and parses a line's options. Values come from YAML or JSON. The error names the
// option and the allowed values.
func Read(raw map[string]any) (*Options, error) {
	all, err := read(raw, true)
	if err != nil {
		return nil, err
	}
	o := &Options{all: all, models: map[string]options{}}
	list, ok := raw["models"].([]any)
	if !ok && raw["models"] != nil {
		return nil, errors.New("models: must be a list of options, each with the id of its model")
	}
	for i, value := range list {
		entry, _ := value.(map[string]any)
		id, _ := entry["id"].(string)
		if id == "" || len(id) > maxName {
			return nil, fmt.Errorf("models: [%d] must have the id of a model", i)
		}
		if _, exists := o.models[id]; exists {
			return nil, fmt.Errorf("models: %q is listed twice", id)
		}
		if o.models[id], err = read(entry, false); err != nil {
			return nil, fmt.Errorf("models: %q: %w", id, err)
		}
	}
	return o, nil
}

// read parses the options of a line, or of an entry of models. Only a line's options may have
// models.
func read(raw map[string]any, ofLine bool) (o options, err error) {
	for name, value := range raw {
		switch name {
		case "fields":
			o.fields, err = fields(raw)
		case "size":
			o.size, err = choice(name, value, sizes())
		case "duration":
			o.duration, err = choice(name, value, durations())
		case "values":
			o.values, err = values(raw)
		case "input":
			o.input, err = members(raw, name)
		case "references":
			text, ok := value.(string)
			if !ok || text == "" || len(text) > maxName {
				err = errors.New("references: must be a model's id")
			}
			o.references = text
		case "models":
			if !ofLine {
				err = errors.New("models: not allowed inside models")
			}
		case "id":
			if ofLine {
				err = errors.New("id: only allowed inside models")
			}
		default:
			err = fmt.Errorf("%s: unknown option. The options are fields, size, duration, values, input, references or models", name)
		}
		if err != nil {
			return options{}, err
		}
	}
	return o, nil
}

// object returns an option of type object, or nil if the option is missing.
func object(raw map[string]any, name string) (map[string]any, error) {
	value, ok := raw[name]
	if !ok {
		return nil, nil
	}
	o, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: must be an object", name)
	}
	return o, nil
}

func fields(raw map[string]any) (map[string]string, error) {
	option, err := object(raw, "fields")
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for field, value := range option {
		if !slices.Contains(allFields(), field) {
			return nil, fmt.Errorf("fields: unknown %q; use %s", field, strings.Join(allFields(), ", "))
		}
		name, ok := value.(string)
		if !ok || len(name) > maxName {
			return nil, fmt.Errorf("fields: %s must be the name of a member, or \"\" to omit the field", field)
		}
		names[field] = name
	}
	return names, nil
}

func values(raw map[string]any) (map[string]map[string]json.RawMessage, error) {
	option, err := object(raw, "values")
	if err != nil {
		return nil, err
	}
	spellings := map[string]map[string]json.RawMessage{}
	for field := range option {
		if !slices.Contains(spelledFields(), field) {
			return nil, fmt.Errorf("values: unknown %q; use %s", field, strings.Join(spelledFields(), ", "))
		}
		if spellings[field], err = members(option, field); err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
	}
	return spellings, nil
}

// members parses the option name, an object with values of any type.
func members(raw map[string]any, name string) (map[string]json.RawMessage, error) {
	option, err := object(raw, name)
	if err != nil {
		return nil, err
	}
	encoded := map[string]json.RawMessage{}
	for member, value := range option {
		if encoded[member], err = json.Marshal(value); err != nil || member == "" || len(member) > maxName {
			return nil, fmt.Errorf("%s: %q must be a name with a JSON value", name, member)
		}
	}
	return encoded, nil
}

func choice(name string, value any, allowed []string) (string, error) {
	text, ok := value.(string)
	if !ok || !slices.Contains(allowed, text) {
		return "", fmt.Errorf("%s: must be %s", name, strings.Join(allowed, ", "))
	}
	return text, nil
}

// Style determines how a task is written as a model's input.
type Style struct {
	// Model is the provider's ID of the model for the task.
	Model string

	fields   map[string]string
	renamed  map[string]bool // the fields in the option `fields`
	size     string
	duration string
	values   map[string]map[string]json.RawMessage
	input    map[string]json.RawMessage
}

// Style returns the style of a task: the provider's defaults, changed first by the line's options
// and then by the model's options. If the option `references` names a model, a task with references
// is sent to that model, in that model's style.
func (o *Options) Style(task jobcall.Task, defaults Defaults) *Style {
	s := &Style{Model: task.Model}
	if len(task.References) > 0 {
		if model := o.models[task.Model].references; model != "" {
			s.Model = model
		} else if o.all.references != "" {
			s.Model = o.all.references
		}
	}
	s.fields, s.size, s.duration = maps.Clone(defaults.Fields), defaults.ImageSize, defaults.Duration
	if task.Kind == upstream.KindVideo {
		s.size = defaults.VideoSize
	}
	s.renamed, s.values, s.input = map[string]bool{}, map[string]map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, level := range []options{o.all, o.models[s.Model]} {
		maps.Copy(s.fields, level.fields)
		for field := range level.fields {
			s.renamed[field] = true
		}
		if level.size != "" {
			s.size = level.size
		}
		if level.duration != "" {
			s.duration = level.duration
		}
		for field, spellings := range level.values {
			if s.values[field] == nil {
				s.values[field] = map[string]json.RawMessage{}
			}
			maps.Copy(s.values[field], spellings)
		}
		maps.Copy(s.input, level.input)
	}
	return s
}
