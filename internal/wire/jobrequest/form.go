package jobrequest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Bounds of a multipart body, part by part. The whole is bounded by the limit of
// request bodies.
const (
	maxParts     = 256
	maxPartName  = 128     // bytes
	maxTextField = 1 << 20 // bytes of a text field that is no reference
)

// multipartForm is a multipart body.
type multipartForm struct {
	parts []part // in their order
}

// part is one field of a form.
type part struct {
	name string // without the brackets of a list
	list bool   // the name had them
	file bool   // it has a file name
	data []byte
}

// IsForm tells whether a Content-Type is that of a multipart form.
func IsForm(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data")
}

// OpenForm reads the multipart body of an image submission, as the official
// clients send edits: text fields named like those of the JSON form, and files or
// texts as `image`, `image[]` and `mask`. It answers invalid_encoding for a text
// that is not UTF-8, and invalid_request for what is no form, has too many
// parts or a part that is too long, or repeats a field. The request keeps body;
// nobody may change it afterwards.
func OpenForm(contentType string, body []byte) (*Image, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" || len(params["boundary"]) > 70 {
		return nil, fault.New(fault.InvalidRequest,
			"The Content-Type of the multipart body has no valid boundary. Let your client set this header.")
	}
	f, err := readForm(multipart.NewReader(bytes.NewReader(body), params["boundary"]))
	if err != nil {
		return nil, err
	}
	// A body that breaks off between two parts looks like one that ended.
	if !bytes.Contains(body, []byte("--"+params["boundary"]+"--")) {
		return nil, broken()
	}
	doc, err := f.document()
	if err != nil {
		return nil, err
	}
	return &Image{Request{doc: doc, form: f}}, nil
}

// readForm reads all parts.
func readForm(r *multipart.Reader) (*multipartForm, error) {
	f := &multipartForm{}
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, broken()
		}
		if len(f.parts) == maxParts {
			return nil, fault.New(fault.InvalidRequest, "The multipart body has more than %d parts.", maxParts)
		}
		one := part{name: p.FormName(), file: p.FileName() != ""}
		if one.name == "" || len(one.name) > maxPartName || !utf8.ValidString(one.name) {
			return nil, fault.New(fault.InvalidRequest,
				"A part of the multipart body has no name, or one that is longer than %d bytes.", maxPartName)
		}
		one.name, one.list = plainName(one.name)
		limit := int64(maxTextField)
		if one.file || isReferenceName(one.name) {
			limit = math.MaxInt64 - 1 // the body's own limit bounds it
		}
		if one.data, err = io.ReadAll(io.LimitReader(p, limit+1)); err != nil {
			return nil, broken()
		}
		if int64(len(one.data)) > limit {
			return nil, fault.At(fault.InvalidRequest, one.name, "The field `{param}` is longer than %d bytes.", limit)
		}
		if !one.file && !utf8.Valid(one.data) {
			return nil, fault.At(fault.InvalidEncoding, one.name, "The field `{param}` is not valid UTF-8.")
		}
		f.parts = append(f.parts, one)
	}
}

// broken is the fault of a body that ends too early or is no multipart.
func broken() error {
	return fault.New(fault.InvalidRequest, "The multipart body is malformed or broke off before its end. Please send the request again.")
}

// plainName takes the brackets of a list off a field's name: `image[]` and
// `image[0]` are elements of `image`.
func plainName(name string) (plain string, list bool) {
	open := strings.IndexByte(name, '[')
	if open <= 0 || !strings.HasSuffix(name, "]") || strings.Trim(name[open+1:len(name)-1], "0123456789") != "" {
		return name, false
	}
	return name[:open], true
}

// isReferenceName tells whether a form's field holds references, which may be
// files and may stand there several times.
func isReferenceName(name string) bool { return name == "image" || name == "images" || name == "mask" }

// document makes the object of JSON that the text fields stand for. All values
// are strings.
func (f *multipartForm) document() (*rawjson.RequestBody, error) {
	seen := map[string]bool{}
	var body bytes.Buffer
	body.WriteByte('{')
	for _, p := range f.parts {
		if isReferenceName(p.name) || p.list {
			continue
		}
		switch {
		case p.file && OwnsParam(p.name):
			return nil, fault.At(fault.InvalidRequest, p.name, "The field `{param}` must be text, not a file.")
		case p.file:
			continue
		case seen[p.name]:
			return nil, fault.At(fault.InvalidRequest, p.name, "The field `{param}` stands in the form more than once. Send each field once.")
		}
		if len(seen) > 0 {
			body.WriteByte(',')
		}
		seen[p.name] = true
		body.Write(quoted(p.name))
		body.WriteByte(':')
		body.Write(quoted(string(p.data)))
	}
	body.WriteByte('}')
	return form.OpenDocument(body.Bytes())
}

// formReferences reads the references that a form has in one field.
func (s *Request) formReferences(f referenceField) error {
	total, n := 0, 0
	for _, p := range s.form.parts {
		if p.name == f.name {
			total++
		}
	}
	for _, p := range s.form.parts {
		if p.name != f.name {
			continue
		}
		r := Reference{Param: f.name, Image: true, Video: f.video}
		if total > 1 || p.list {
			r.Param = fmt.Sprintf("%s[%d]", f.name, n)
		}
		n++
		if !p.file && len(p.data) == 0 && total == 1 && !p.list {
			return nil // an empty field of a form is one that was left out
		}
		s.sawReference(f)
		if p.file {
			if len(p.data) == 0 {
				return fault.At(fault.InvalidRequest, r.Param, "The file in `{param}` is empty.")
			}
			r.file = p.data
		} else if err := r.setText(p.data); err != nil {
			return err
		}
		s.keep(r)
	}
	return nil
}
