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

// Limits of the parts of a multipart body. The body itself is limited by the limit of request
// bodies.
const (
	maxParts     = 256
	maxPartName  = 128     // bytes
	maxTextField = 1 << 20 // bytes of a text field other than a reference
)

// multipartForm is a multipart body.
type multipartForm struct {
	parts []part
}

// part is one field of a form.
type part struct {
	name string // without the brackets of a list
	list bool   // the name had brackets
	file bool   // the part has a file name
	data []byte
}

// IsForm reports whether a Content-Type is a multipart form.
func IsForm(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data")
}

// OpenForm reads the multipart body of an image submission, as official clients send edits: text
// fields with the names of the JSON form, and files or texts as `image`, `image[]` and `mask`. It
// returns invalid_encoding for text other than UTF-8, and invalid_request for a malformed body, too
// many parts, a part above its limit, or a repeated field. The request retains body, which must not
// be changed.
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
	// A body cut off between two parts looks complete to the reader.
	if !bytes.Contains(body, []byte("--"+params["boundary"]+"--")) {
		return nil, broken()
	}
	doc, err := f.document()
	if err != nil {
		return nil, err
	}
	return &Image{Request{doc: doc, form: f}}, nil
}

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
			limit = math.MaxInt64 - 1 // limited by the body
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

// broken returns the error for a malformed or incomplete multipart body.
func broken() error {
	return fault.New(fault.InvalidRequest, "The multipart body is malformed or broke off before its end. Please send the request again.")
}

// plainName removes the brackets of a list from a field's name: `image[]` and `image[0]` are
// elements of `image`.
func plainName(name string) (plain string, list bool) {
	open := strings.IndexByte(name, '[')
	if open <= 0 || !strings.HasSuffix(name, "]") || strings.Trim(name[open+1:len(name)-1], "0123456789") != "" {
		return name, false
	}
	return name[:open], true
}

// isReferenceName reports whether a form's field holds references. They may be files, and the field
// may be repeated.
func isReferenceName(name string) bool { return name == "image" || name == "images" || name == "mask" }

// document returns the text fields as a JSON object of strings.
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
		body.Write(rawjson.Quote(p.name))
		body.WriteByte(':')
		body.Write(rawjson.Quote(string(p.data)))
	}
	body.WriteByte('}')
	return form.OpenDocument(body.Bytes())
}

// formReferences reads the references in one field of a form.
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
			return nil // an empty field counts as absent
		}
		s.countReference(f)
		if p.file {
			if len(p.data) == 0 {
				return fault.At(fault.InvalidRequest, r.Param, "The file in `{param}` is empty.")
			}
			r.file = p.data
		} else if err := r.setText(p.data); err != nil {
			return err
		}
		s.addToReferences(r)
	}
	return nil
}
