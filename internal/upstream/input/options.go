// Package input owns how a work is written as the input of a model where a
// provider hosts many families of models: a flat JSON object whose members are
// named, and whose values are spelled, differently by each family. A provider
// says its usual words (Words), a line's options change them.
//
// Invariants:
//   - What decides about the price (count, size, ratio, resolution, duration)
//     and what is worked from are never taken from a client's further fields.
//   - What the words of a model cannot say is upstream.Unsuitable, before any
//     call; a word that the options leave empty is one that the operator
//     answers for.
//   - Nothing here makes a call; references are carried by the provider's
//     adapter.
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

// What can be said of a work. The option `fields` names the member for each.
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
	Subjects   = "reference_images" // what a video shows, as a list
	Audio      = "audio"            // whether a video has sound
	Seed       = "seed"
	Negative   = "negative_prompt"
)

// The values of the option `size`: how the size of a picture is said.
const (
	SizeRatio  = "ratio"      // as ratio and resolution
	SizePixels = "pixels"     // as width and height
	SizeObject = "image_size" // as one object of width and height
	SizeNone   = "none"       // not at all
)

// The values of the option `duration`: how a number of seconds is said.
const (
	DurationNumber  = "number"  // 5
	DurationText    = "text"    // "5"
	DurationSeconds = "seconds" // "5s"
)

// maxName bounds the name of a member and the id of a model in options.
const maxName = 200

// words lists what can be said, sized and spelled.
func words() []string {
	return []string{Prompt, Count, Image, Images, Video, Videos, Mask, Size, Width, Height, Ratio, Resolution, Duration,
		FirstFrame, LastFrame, Subjects, Audio, Seed, Negative}
}

func sizes() []string     { return []string{SizeRatio, SizePixels, SizeObject, SizeNone} }
func durations() []string { return []string{DurationNumber, DurationText, DurationSeconds} }
func spelled() []string   { return []string{Ratio, Resolution, Duration} }

// Words are what a provider's models usually understand.
type Words struct {
	// Fields names the member for each thing that can be said; a missing or
	// empty one is not said.
	Fields map[string]string
	// ImageSize and VideoSize are how size is said for each kind; Duration is
	// how seconds are.
	ImageSize, VideoSize, Duration string
}

// Options are a line's options about input, checked.
//
//	fields      the member for each thing that can be said; "" says it not
//	size        ratio, pixels, image_size or none
//	duration    number, text or seconds
//	values      how single ratios, resolutions and durations are spelled
//	input       members that go along with every request
//	references  the model that works with references go to
//	models      a list of the same options for single models, each with the
//	            provider's id of its model in `id`
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

// Check tells what is wrong with a line's options, in the words of Read.
func Check(raw map[string]any) error {
	_, err := Read(raw)
	return err
}

// Read checks and reads a line's options. Values come from YAML or JSON. The
// error names the option and says what may stand there.
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

// read reads the options of one level; models are for the line's alone.
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

// object returns an option that must be an object; nil if it is not there.
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
	// Model is the provider's id of the model that the work goes to.
	Model string

	fields   map[string]string
	named    map[string]bool // words that the options name themselves
	size     string
	duration string
	values   map[string]map[string]json.RawMessage
	input    map[string]json.RawMessage
}

// Style finds how a work is written: by the provider's words, then the line's
// options, then the model's. A work with references goes to the model that the
// option `references` names, if any, and is written in that one's style.
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
