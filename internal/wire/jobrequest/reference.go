package jobrequest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Reference is an image or a video to work from, as it came with a submission.
type Reference struct {
	// Param is the path of the field (`image`, `image[1]`).
	Param string
	// Image and Video say what it may be.
	Image, Video bool
	// Address is the http(s) address that it is to be got from; empty: Data has
	// it.
	Address string
	// Role is what it is for; empty: for the line to say.
	Role string

	typed bool   // an object may say that it is a video
	clips bool   // it is of a video submission, where objects may say any role
	text  []byte // base64, or a data URI
	file  []byte // a file of a multipart form; nil: text holds it
}

// The roles of a video's references.
const (
	FirstFrame = "first_frame" // the clip begins with it
	LastFrame  = "last_frame"  // the clip ends with it
	Subject    = "reference"   // what the clip shows, or how it looks
)

// Roles lists the roles.
func Roles() []string { return []string{FirstFrame, LastFrame, Subject} }

// isFrame tells whether a role is that of one picture of the clip.
func isFrame(role string) bool { return role == FirstFrame || role == LastFrame }

// Data returns the bytes of a reference that came with the body. What is no
// base64 is invalid_request.
func (r *Reference) Data() ([]byte, error) {
	if r.file != nil {
		return r.file, nil
	}
	text := r.text
	if isData(text) {
		// The head of a data URI is short; what follows its comma may not be.
		head := text[:min(len(text), 256)]
		comma := bytes.IndexByte(head, ',')
		if comma < 0 || !strings.HasSuffix(strings.ToLower(string(head[:comma])), ";base64") {
			return nil, fault.At(fault.InvalidRequest, r.Param, "`{param}` is a data URI without base64. Write it as data:image/png;base64,…")
		}
		text = text[comma+1:]
	}
	data, ok := decode64(text)
	if !ok {
		return nil, fault.At(fault.InvalidRequest, r.Param,
			"`{param}` is neither an http(s) address nor a data URI nor valid base64. Send one of these.")
	}
	return data, nil
}

// decode64 reads base64 in either alphabet, with or without its padding; line
// ends inside it are skipped.
func decode64(text []byte) ([]byte, bool) {
	text = bytes.TrimRight(bytes.TrimSpace(text), "=")
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	data := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Decode(data, text)
	return data[:n], err == nil && n > 0
}

// isData tells whether a text is a data URI.
func isData(text []byte) bool { return hasFold(text, "data:") }

// hasFold tells whether a text begins with a prefix, in capitals or not.
func hasFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix)
}

// referenceField is a field that may hold references.
type referenceField struct {
	name  string
	video bool   // videos too
	typed bool   // videos too, where an object says so
	role  string // what its references are for; empty: objects may say it
}

func imageOnly(name string) referenceField { return referenceField{name: name} }

func unlessTyped(name string) referenceField { return referenceField{name: name, typed: true} }

func frameOf(role string) referenceField { return referenceField{name: role, role: role} }

func anyKind(name string) referenceField { return referenceField{name: name, video: true} }

// readReferences reads the references of the given fields. Asked counts them up
// to the first fault.
func (s *Request) readReferences(fields ...referenceField) error {
	s.References, s.Asked, s.ReferencesParam = nil, 0, ""
	for _, f := range fields {
		var err error
		if s.form != nil {
			err = s.formReferences(f)
		} else if raw := s.doc.Raw(f.name); len(raw) > 0 && raw[0] == '[' {
			for i, element := range rawjson.Elements(raw) {
				if err = s.addReference(f, fmt.Sprintf("%s[%d]", f.name, i), element); err != nil {
					break
				}
			}
		} else if raw != nil {
			err = s.addReference(f, f.name, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addReference reads one reference: a string, or an object with its address.
func (s *Request) addReference(f referenceField, param string, raw []byte) error {
	s.sawReference(f)
	r := Reference{Param: param, Image: true, Video: f.video, typed: f.typed, clips: s.clips, Role: f.role}
	if raw[0] == '{' {
		text, err := r.readObject(raw)
		if err != nil {
			return err
		}
		raw = text
	}
	if !rawjson.IsText(raw) {
		return fault.At(fault.InvalidRequest, param,
			"`{param}` must be a string (an http(s) address, a data URI or base64) or an object with `url`.")
	}
	if err := r.readText(raw); err != nil {
		return err
	}
	s.keep(r)
	return nil
}

// sawReference counts a reference.
func (s *Request) sawReference(f referenceField) {
	s.Asked++
	s.ReferencesParam = cmp.Or(s.ReferencesParam, f.name)
}

// keep adds a reference, unless there are too many for any model.
func (s *Request) keep(r Reference) {
	if len(s.References) < maxReferences {
		s.References = append(s.References, r)
	}
}

// readObject reads a reference that is an object and returns the text of its
// address.
func (r *Reference) readObject(object []byte) ([]byte, error) {
	if path := form.FindStored(object, 0); path != "" {
		return nil, form.Stored(r.Param + path)
	}
	var address []byte
	own := r.Role
	for name, value := range rawjson.Members(object) {
		value = rawjson.NonNull(value)
		switch {
		case value == nil:
		case string(name) == "type":
			kind := strings.TrimSuffix(rawjson.Unquote(value), "_url")
			if kind != "image" && (kind != "video" || !r.Video && !r.typed) {
				return nil, fault.At(fault.InvalidRequest, r.Param+".type", "`{param}` must be %s.", r.kinds())
			}
			r.Image, r.Video = kind == "image", kind == "video"
		case string(name) == "role":
			r.Role = rawjson.Unquote(value)
			if !slices.Contains(r.roles(own), r.Role) {
				return nil, fault.At(fault.InvalidRequest, r.Param+".role", "`{param}` must be %s.", strings.Join(r.roles(own), ", "))
			}
		case string(name) == "url" || string(name) == "image_url" || string(name) == "video_url" && (r.Video || r.typed):
			if !rawjson.IsText(value) {
				return nil, fault.At(fault.InvalidRequest, r.Param, "`{param}.%s` must be a string.", name)
			}
			address = value
		}
	}
	if isFrame(r.Role) && !r.Image {
		return nil, fault.At(fault.InvalidRequest, r.Param+".role", "`{param}` is %s, which must be an image.", r.Role)
	}
	if address == nil {
		return nil, fault.At(fault.InvalidRequest, r.Param, "`{param}` has no `url`: an http(s) address, a data URI or base64.")
	}
	return address, nil
}

// roles names what r may be for: what its field says, or, for a video's, any.
func (r *Reference) roles(own string) []string {
	switch {
	case own != "":
		return []string{own}
	case r.clips:
		return Roles()
	}
	return []string{Subject}
}

// checkRoles holds the roles against each other. Where some references have one
// the others are what the clip shows; where none has, the line says what they are.
func (s *Request) checkRoles() error {
	said := map[string]bool{}
	for i := range s.References {
		r := &s.References[i]
		if isFrame(r.Role) {
			if said[r.Role] {
				return fault.At(fault.InvalidRequest, r.Param, "Send one `%s` only.", r.Role)
			}
			r.Video = false
		}
		said[r.Role] = true
	}
	delete(said, "")
	for i := range s.References {
		if r := &s.References[i]; len(said) > 0 && r.Role == "" {
			r.Role = Subject
		}
	}
	return nil
}

// RolesOfReferences are the roles of s's references in their order; nil: none
// has any.
func (s *Request) RolesOfReferences() []string {
	var roles []string
	for _, r := range s.References {
		if r.Role != "" {
			roles = append(roles, r.Role)
		}
	}
	return roles // checkRoles gives each one or none
}

// kinds names what r may be.
func (r *Reference) kinds() string {
	switch {
	case r.Image && (r.Video || r.typed):
		return "image or video"
	case r.Video:
		return "video"
	}
	return "image"
}

// readText reads the string of a reference: an address, or what Data decodes.
func (r *Reference) readText(raw []byte) error {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text = []byte(rawjson.Unquote(raw))
	}
	return r.setText(text)
}

// setText is readText without quotes.
func (r *Reference) setText(text []byte) error {
	const scheme = 32 // longer than any name of a scheme
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return fault.At(fault.InvalidRequest, r.Param, "`{param}` is empty. Send an http(s) address, a data URI or base64, or leave it out.")
	case hasFold(text, "http://") || hasFold(text, "https://"):
		r.Address = string(text)
	case !isData(text) && bytes.Contains(text[:min(len(text), scheme)], []byte("://")):
		return fault.At(fault.InvalidRequest, r.Param, "`{param}` must be an http or https address, a data URI or base64.")
	default:
		r.text = text
	}
	return nil
}

// readMask reads `mask`, which needs an image that it belongs to.
func (s *Request) readMask() error {
	f := imageOnly("mask")
	one := Request{doc: s.doc, form: s.form}
	if err := one.readReferences(f); err != nil {
		return err
	}
	switch {
	case one.Asked == 0:
		s.Mask = nil
		return nil
	case one.Asked > 1:
		return fault.At(fault.InvalidRequest, f.name, "Send one `mask` only.")
	case s.Asked == 0:
		return fault.At(fault.InvalidRequest, f.name, "A `mask` needs the image that it belongs to. Send that in `image`.")
	}
	s.Mask = &one.References[0]
	return nil
}
