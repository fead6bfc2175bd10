package kind

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// RequestField is a documented field of requests. If it has Vendors (field.Vendor.Name), only their lines get
// the field.
type RequestField struct {
	Name    string
	Vendors []string
	Source  string // URL of the reference
}

// Documents reports whether a vendor documents a field. A nil vendor stands for an unknown host, such
// as an engine in a private network: any vendor may document the field.
func (d *Definition) Documents(v *field.Vendor, name string) bool {
	i := slices.IndexFunc(d.Fields, func(f RequestField) bool { return f.Name == name })
	return i >= 0 && (len(d.Fields[i].Vendors) == 0 || v == nil || slices.Contains(d.Fields[i].Vendors, v.Name))
}

// JSONRequest is the JSON body of a request. Kinds embed it.
type JSONRequest struct {
	JSON    *rawjson.RequestBody
	unknown []string
	routing []string
}

// OpenJSON checks the JSON of a body. The request retains body, which must not be changed.
func OpenJSON(body []byte) (JSONRequest, error) {
	doc, err := form.OpenDocument(body)
	return JSONRequest{JSON: doc}, err
}

// Model implements Request.
func (d *JSONRequest) Model() (string, error) { return form.Model(d.JSON) }

// Unknown implements Request.
func (d *JSONRequest) Unknown() []string { return d.unknown }

// Routing implements Request.
func (d *JSONRequest) Routing() []string { return d.routing }

// CheckFields checks the names of all fields. Like chat completions, it rejects fields that refer to objects
// stored at a provider, hosted tools, and names that differ from a known one only in case.
func (d *JSONRequest) CheckFields(documented []RequestField) error {
	d.unknown, d.routing = nil, nil
	table := field.Form("chat")
	for i := range d.JSON.Members {
		name := string(d.JSON.Members[i].Name)
		own := slices.IndexFunc(documented, func(f RequestField) bool { return strings.EqualFold(f.Name, name) })
		switch {
		case own >= 0 && documented[own].Name != name:
			return form.OtherCase(name, documented[own].Name)
		case own >= 0:
			if len(documented[own].Vendors) > 0 {
				d.unknown = append(d.unknown, name)
			}
			continue
		}
		if spelling := table.Spelling(name); spelling != "" {
			return form.OtherCase(name, spelling)
		}
		d.unknown = append(d.unknown, name)
		known := table.Find([]byte(name))
		if known == nil || d.JSON.Raw(name) == nil {
			continue
		}
		switch known.Class {
		case field.Stored, field.Later:
			return form.StoredError(name)
		case field.Tool:
			return fault.At(fault.InvalidRequest, name, "`{param}` is not offered with this kind of model. Leave it out.")
		case field.Costs:
			d.routing = append(d.routing, name)
		}
	}
	if err := form.CheckSimilarKeys(d.JSON); err != nil {
		return err
	}
	for at, value := range d.JSON.Matches {
		if err := form.CheckReference(d.JSON, at, value); err != nil {
			return err
		}
	}
	return nil
}

// CheckAddresses implements Request.
func (d *JSONRequest) CheckAddresses(check func(address string) error) error {
	for at, value := range d.JSON.Matches {
		if err := form.CheckAddress(d.JSON, at, value, check); err != nil {
			return err
		}
	}
	return nil
}

// Edited returns the body with the provider's id of the model and without the fields in omit. If set is not
// nil, it may edit further members.
func (d *JSONRequest) Edited(model string, omit []string, set func(*rawjson.Edits)) rawjson.Pieces {
	m := rawjson.Edits{Doc: d.JSON}
	m.SetText("model", model)
	m.Drop(omit...)
	if set != nil {
		set(&m)
	}
	return m.Body()
}

// FormatList is the catalog's field with the values of `response_format` that a model supports. A model
// without the field supports all values.
const FormatList = "formats"

// Format returns the `response_format` of a request for a model of a kind with these formats, the default
// first.
func (d *JSONRequest) Format(l ModelLimits, formats []string) (string, error) {
	const param = "response_format"
	var offered []string
	for _, f := range formats {
		if list := l.List(FormatList); len(list) == 0 || slices.Contains(list, f) {
			offered = append(offered, f)
		}
	}
	raw, format := d.JSON.Raw(param), formats[0]
	if raw != nil {
		format = rawjson.Unquote(raw)
	}
	switch all := strings.Join(offered, ", "); {
	case slices.Contains(offered, format):
		return format, nil
	case raw == nil:
		return "", Invalid(param, "`{param}` is required, because this model has no %s. Send one of %s.", format, all)
	default:
		return "", Invalid(param, "`{param}` must be one of %s for this model.", all)
	}
}

// ProbeFormat returns the member `response_format` of a probe, after a comma. It is empty for a model with all
// formats.
func ProbeFormat(l ModelLimits) string {
	if formats := l.List(FormatList); len(formats) > 0 {
		return `,"response_format":` + string(rawjson.Quote(formats[0]))
	}
	return ""
}

// ElementOf returns the path of an element of a list.
func ElementOf(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// Invalid returns an error about the value of a field.
func Invalid(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, format, args...)
}

// StoredError returns an error about a field that refers to something stored at a provider.
func StoredError(param string) error { return form.StoredError(param) }
