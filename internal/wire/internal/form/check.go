package form

import (
	"bytes"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// pricedFields have values that change what the provider charges.
var pricedFields = [...]string{"service_tier", "speed", "inference_geo"}

// PricedFields returns the fields whose values change what the provider charges.
func PricedFields() [len(pricedFields)]string { return pricedFields }

// CheckStream reads stream.
func (r *Request) CheckStream() error {
	var ok bool
	if r.Stream, ok = rawjson.Boolean(r.Doc.Raw("stream")); !ok {
		return fault.At(fault.InvalidRequest, "stream", "`{param}` must be true or false.")
	}
	return nil
}

// CheckOptions reports the values that change what the provider charges.
func (r *Request) CheckOptions() error {
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
		if name == "service_tier" {
			if value == "auto" || value == "default" {
				continue
			}
			r.ServiceTier = value
		}
		r.Options = append(r.Options, wire.PricedField{Param: name, Name: value})
	}
	r.ReadModalities()
	r.ReadOptions()
	return nil
}

// ReadModalities reports each kind of output but text as an option. CheckAudio has
// refused audio and what is no list.
func (r *Request) ReadModalities() {
	for _, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		name := strings.ToLower(strings.TrimSpace(textOf(modality)))
		same := func(o wire.PricedField) bool { return o.Param == "modalities" && o.Name == name }
		if name != "text" && !slices.ContainsFunc(r.Options, same) {
			r.Options = append(r.Options, wire.PricedField{Param: "modalities", Name: name})
		}
	}
}

// AddImage counts an image by its address, a JSON string. The bytes of an
// inline image do not count as text. Other things behind a data address
// (documents, video) are no images.
func (r *Request) AddImage(address []byte) {
	const prefix = 64 // longer than any `data:image/…` in escapes needs to be told apart
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

// CheckAudio refuses audio output, which has no price.
func (r *Request) CheckAudio() error {
	modalities := r.Doc.Raw("modalities")
	if modalities != nil && modalities[0] != '[' {
		return fault.At(fault.InvalidRequest, "modalities", "`modalities` must be an array of strings.")
	}
	for _, modality := range rawjson.Elements(modalities) {
		if strings.EqualFold(strings.TrimSpace(rawjson.Unquote(modality)), "audio") {
			return Audio("modalities")
		}
	}
	if r.Doc.Raw("audio") != nil {
		return Audio("audio")
	}
	return nil
}
