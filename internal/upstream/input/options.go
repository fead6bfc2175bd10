// Package input owns the model input of works for providers with many families of models. The input
// is a flat JSON object; each family has its own names of members and its own spelling of values.
// The provider has default names (Words), and a line's options change them.
//
// Invariants:
//   - Fields with an effect on the price (count, size, ratio, resolution, duration) and references
//     are never taken from a client's further fields.
//   - A work not expressible in the model's input is upstream.Unsuitable, before any call. If the
//     options name no member for a field, the operator is responsible.
//   - This package makes no calls; the provider's adapter carries references.
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

// Fields of a work. The option `fields` names the member for each.
const (
	Prompt     = "prompt"
	Count      = "count"
	Image      = "image"  // the only image to work from
	Images     = "images" // several images to work from, as a list
	Video      = "video"
	Videos     = "videos"
	Mask       = "mask"
	Size       = "size" // width and height as one object
	Width      = "width"
	Height     = "height"
	Ratio      = "ratio"
	Resolution = "resolution"
	Duration   = "duration"
	FirstFrame = "first_frame" // of a video
	LastFrame  = "last_frame"
	Subjects   = "reference_images" // subjects of a video, as a list
	Audio      = "audio"            // whether a video has sound
	Seed       = "seed"
	Negative   = "negative_prompt"
)

// Values of the option `size`: the form of a picture's size.
const (
	SizeRatio  = "ratio"      // as ratio and resolution
	SizePixels = "pixels"     // as width and height
	SizeObject = "image_size" // as one object of width and height
	SizeNone   = "none"       // not at all
)

// Values of the option `duration`: the form of a number of seconds.
const (
	DurationNumber  = "number"  // 5
	DurationText    = "text"    // "5"
	DurationSeconds = "seconds" // "5s"
)

// maxName bounds the name of a member and the id of a model in options.
const maxName = 200

// words returns the fields of a work.
func words() []string {
	return []string{Prompt, Count, Image, Images, Video, Videos, Mask, Size, Width, Height, Ratio, Resolution, Duration,
		FirstFrame, LastFrame, Subjects, Audio, Seed, Negative}
}

func sizes() []string     { return []string{SizeRatio, SizePixels, SizeObject, SizeNone} }
func durations() []string { return []string{DurationNumber, DurationText, DurationSeconds} }
func spelled() []string   { return []string{Ratio, Resolution, Duration} }

// Words are the defaults for a provider's models.
type Words struct {
	// Fields names the member for each field of a work. A field with a missing or empty name is not
	// written.
	Fields map[string]string
	// ImageSize and VideoSize are the forms of the size for each kind, Duration is the form of the
	// duration.
	ImageSize, VideoSize, Duration string
}

// Options are a line's validated options about input.
//
//	fields      the member for each field; "" omits the field
//	size        ratio, pixels, image_size or none
//	duration    number, text or seconds
//	values      the spelling of single ratios, resolutions and durations
//	input       members sent with every request
//	references  the model for works with references
//	models      a list of the same options for single models, each with the
//	            provider's ID of its model in `id`
type Options struct {
	all    options
	models map[string]options
}

// options are those of a line or of one model of it.
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
		one, _ := value.(map[string]any)
		id, _ := one["id"].(string)
		if id == "" || len(id) > maxName {
			return nil, fmt.Errorf("models: [%d] must have the id of a model", i)
		}
		if _, twice := o.models[id]; twice {
			return nil, fmt.Errorf("models: %q stands there twice", id)
		}
		if o.models[id], err = read(one, false); err != nil {
			return nil, fmt.Errorf("models: %q: %w", id, err)
		}
	}
	return o, nil
}

// read parses the options of one level. Only the line's own level has models.
func read(raw map[string]any, line bool) (o options, err error) {
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
			if !line {
				err = errors.New("models: cannot stand within itself")
			}
		case "id":
			if line {
				err = errors.New("id: stands within models alone")
			}
		default:
			err = fmt.Errorf("%s: unknown option: use fields, size, duration, values, input, references or models", name)
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
	given, err := object(raw, "fields")
	if err != nil {
		return nil, err
	}
	read := map[string]string{}
	for word, value := range given {
		if !slices.Contains(words(), word) {
			return nil, fmt.Errorf("fields: unknown %q; use %s", word, strings.Join(words(), ", "))
		}
		name, ok := value.(string)
		if !ok || len(name) > maxName {
			return nil, fmt.Errorf("fields: %s must be the name of a member, or \"\" to leave it out", word)
		}
		read[word] = name
	}
	return read, nil
}

func values(raw map[string]any) (map[string]map[string]json.RawMessage, error) {
	given, err := object(raw, "values")
	if err != nil {
		return nil, err
	}
	read := map[string]map[string]json.RawMessage{}
	for word := range given {
		if !slices.Contains(spelled(), word) {
			return nil, fmt.Errorf("values: unknown %q; use %s", word, strings.Join(spelled(), ", "))
		}
		one, err := members(given, word)
		if err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
		read[word] = one
	}
	return read, nil
}

// members reads an object of free values.
func members(raw map[string]any, name string) (map[string]json.RawMessage, error) {
	given, err := object(raw, name)
	if err != nil {
		return nil, err
	}
	read := map[string]json.RawMessage{}
	for member, value := range given {
		if read[member], err = json.Marshal(value); err != nil || member == "" || len(member) > maxName {
			return nil, fmt.Errorf("%s: %q must be a name with a JSON value", name, member)
		}
	}
	return read, nil
}

func choice(name string, value any, of []string) (string, error) {
	text, ok := value.(string)
	if !ok || !slices.Contains(of, text) {
		return "", fmt.Errorf("%s: must be %s", name, strings.Join(of, ", "))
	}
	return text, nil
}

// Style is how one work is written.
type Style struct {
	// Model is the provider's ID of the model for the work.
	Model string

	fields   map[string]string
	named    map[string]bool // fields named in the options themselves
	size     string
	duration string
	values   map[string]map[string]json.RawMessage
	input    map[string]json.RawMessage
}

// Style returns the style of a work: the provider's defaults, changed by the line's options, then
// by the model's. If the option `references` names a model, a work with references is sent to the
// named model in the named model's style.
func (o *Options) Style(w jobcall.Task, usual Words) *Style {
	s := &Style{Model: w.Model}
	if len(w.References) > 0 {
		if other := o.models[w.Model].references; other != "" {
			s.Model = other
		} else if o.all.references != "" {
			s.Model = o.all.references
		}
	}
	s.fields, s.size, s.duration = maps.Clone(usual.Fields), usual.ImageSize, usual.Duration
	if w.Kind == upstream.KindVideo {
		s.size = usual.VideoSize
	}
	s.named, s.values, s.input = map[string]bool{}, map[string]map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, level := range []options{o.all, o.models[s.Model]} {
		maps.Copy(s.fields, level.fields)
		for word := range level.fields {
			s.named[word] = true
		}
		if level.size != "" {
			s.size = level.size
		}
		if level.duration != "" {
			s.duration = level.duration
		}
		for word, spelling := range level.values {
			if s.values[word] == nil {
				s.values[word] = map[string]json.RawMessage{}
			}
			maps.Copy(s.values[word], spelling)
		}
		maps.Copy(s.input, level.input)
	}
	return s
}
