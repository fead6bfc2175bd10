package form

import (
	"bytes"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// SharedFields are the top-level fields that the gateway reads, edits or refuses
// in every form, and those of a form's own.
func SharedFields(own ...string) []string {
	return slices.Concat(limitFields, []string{leastField}, pricedFields[:], vendorTools, routingFields, own)
}

// pricedFields have values that change what the provider charges.
var pricedFields = [...]string{"service_tier", "speed", "inference_geo"}

// PricedFields returns the fields whose values change what the provider charges.
func PricedFields() [len(pricedFields)]string { return pricedFields }

// CheckStream reads stream.
func (r *Request) CheckStream() error {
	var ok bool
	if r.Stream, ok = rawjson.Boolean(r.Doc.Raw("stream")); !ok {
		return fault.At(fault.InvalidRequest, "stream", "`stream` must be true or false.")
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
			return fault.At(fault.InvalidRequest, name, "`%s` must be a string.", name)
		}
		value := rawjson.Unquote(raw)
		if name == "service_tier" {
			if value == "auto" || value == "default" {
				continue
			}
			r.ServiceTier = value
		}
		r.Options = append(r.Options, wire.Priced{Param: name, Name: value})
	}
	for _, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		if strings.EqualFold(rawjson.Unquote(modality), "image") {
			r.Options = append(r.Options, wire.Priced{Param: "modalities", Name: "image"})
			break
		}
	}
	return nil
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
	for _, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		if strings.EqualFold(rawjson.Unquote(modality), "audio") {
			return Audio("modalities")
		}
	}
	if r.Doc.Raw("audio") != nil {
		return Audio("audio")
	}
	return nil
}

// CheckCase refuses a top-level key that is one of fields but for case, folded
// as many servers fold it (`Model`, `ſtream`): they would obey it, the last of
// several winning, and the gateway would not have read it. Fields are the names
// that the gateway reads, edits or refuses, none of which has a capital.
//
// Below the top level it refuses a key that equals another one of its object, or
// a name that a check reads, only without regard to case.
func (r *Request) CheckCase(fields []string) error {
	for i := range r.Doc.Members {
		if name := r.Doc.Members[i].Name; !isLower(name) {
			if err := CheckName(string(name), fields); err != nil {
				return err
			}
		}
	}
	if alike := r.Doc.Alike(); alike != nil {
		param := r.Doc.PathTo(alike.At)
		return fault.At(fault.InvalidRequest, param,
			"`%s` differs from the name `%s` only in capital and small letters. Write it like this, or leave it out.", param, alike.Spelling)
	}
	return nil
}

// StoredFields returns the fields that refer to things stored at the provider.
func StoredFields() []string { return slices.Clone(storedFields) }

// CheckStoredFields refuses the fields that refer to things stored at the
// provider.
func (r *Request) CheckStoredFields() error {
	for _, name := range storedFields {
		if r.Doc.Raw(name) != nil {
			return Stored(name)
		}
	}
	return nil
}

// CheckBackground refuses an answer that would be made in the background.
func (r *Request) CheckBackground() error {
	if later, ok := rawjson.Boolean(r.Doc.Raw("background")); later || !ok {
		return fault.At(fault.InvalidRequest, "background",
			"`background` is not offered: the answer would be stored at the provider. Leave it out.")
	}
	return nil
}
