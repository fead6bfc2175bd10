package form

import (
	"bytes"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// pricedFields are fields of every form with values of a different price.
var pricedFields = []string{"service_tier", "speed", "inference_geo"}

// CheckStream reads `stream`.
func (r *Request) CheckStream() error {
	var ok bool
	if r.Stream, ok = rawjson.Boolean(r.Doc.Raw("stream")); !ok {
		return fault.At(fault.InvalidRequest, "stream", "`{param}` must be true or false.")
	}
	return nil
}

// CheckOptions collects the values with a price of their own.
func (r *Request) CheckOptions() error { return r.CheckOptionsExcept() }

// CheckOptionsExcept is like CheckOptions, with further values (`speed=standard`) at the ordinary price.
func (r *Request) CheckOptionsExcept(ordinary ...string) error {
	r.ServiceTier, r.Options = "", nil
	for _, name := range pricedFields {
		raw := r.Doc.Raw(name)
		if raw == nil {
			continue
		}
		if !rawjson.IsText(raw) {
			return fault.At(fault.InvalidRequest, name, "`{param}` must be a string.")
		}
		value := rawjson.Unquote(raw)
		switch tier := name == "service_tier"; {
		case tier && (value == "auto" || value == "default"), slices.Contains(ordinary, name+"="+value):
			continue
		case tier:
			r.ServiceTier = value
		}
		r.Options = append(r.Options, wire.PricedField{Param: name, Name: value})
	}
	r.readModalities()
	r.readOptions()
	return nil
}

// readModalities adds an option for each kind of output except text. CheckModalities has rejected
// values other than lists.
func (r *Request) readModalities() {
	for _, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		name := strings.ToLower(strings.TrimSpace(textOf(modality)))
		same := func(o wire.PricedField) bool { return o.Param == "modalities" && o.Name == name }
		if name != "text" && !slices.ContainsFunc(r.Options, same) {
			r.Options = append(r.Options, wire.PricedField{Param: "modalities", Name: name})
		}
	}
}

// AddImage counts an image by its address, a JSON string. The bytes of an inline image do not count as text.
// Other inline content (documents, video) makes the prompt unbounded.
func (r *Request) AddImage(address []byte) {
	const prefix = 64 // enough to recognize `data:image/…` with escapes
	start := bytes.TrimPrefix(address[:min(len(address), prefix)], []byte(`"`))
	text := strings.ToLower(strings.ReplaceAll(string(start), `\/`, `/`))
	switch {
	case strings.HasPrefix(text, "data:image/"):
		r.Bound.TextBytes -= int64(len(address))
	case strings.HasPrefix(text, "data:"):
		r.Bound.Unbounded = true
	}
	r.Bound.Images++
}

// CheckModalities rejects a value other than a list.
func (r *Request) CheckModalities() error {
	if modalities := r.Doc.Raw("modalities"); modalities != nil && modalities[0] != '[' {
		return fault.At(fault.InvalidRequest, "modalities", "`modalities` must be an array of strings.")
	}
	return nil
}

// CheckAudio rejects audio output in a form that does not have it.
func (r *Request) CheckAudio() error {
	if err := r.CheckModalities(); err != nil {
		return err
	}
	for _, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		if strings.EqualFold(strings.TrimSpace(rawjson.Unquote(modality)), "audio") {
			return AudioError("modalities")
		}
	}
	if r.Doc.Raw("audio") != nil {
		return AudioError("audio")
	}
	return nil
}
