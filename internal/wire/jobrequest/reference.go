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

// Reference is an input image or video of a submission.
type Reference struct {
	// Param is the path of the field (`image`, `image[1]`).
	Param string
	// Image and Video are the possible kinds.
	Image, Video bool
	// Address is the http(s) address, or empty if the content was sent (Data).
	Address string
	// Role is one of Roles. If empty, the line chooses the role.
	Role string

	videoByType bool   // an object may have the type video
	anyRole     bool   // the submission is for a video, so an object may have any role
	text        []byte // base64, or a data URI
	file        []byte // a file of a multipart form, instead of text
}

// The roles of a video's references.
const (
	FirstFrame = "first_frame" // the first frame of the clip
	LastFrame  = "last_frame"  // the last frame of the clip
	Subject    = "reference"   // a subject or a style of the clip
)

// Roles returns all roles.
func Roles() []string { return []string{FirstFrame, LastFrame, Subject} }

// isFrame reports whether a role is that of a frame of the clip.
func isFrame(role string) bool { return role == FirstFrame || role == LastFrame }

// Data returns the content of a reference sent with the body. It returns invalid_request if the content is
// not base64.
func (r *Reference) Data() ([]byte, error) {
	if r.file != nil {
		return r.file, nil
	}
	text := r.text
	if isData(text) {
		// The head of a data URI is short, unlike its content.
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

// decode64 decodes base64 in either alphabet, with or without padding and line ends.
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

func isData(text []byte) bool { return hasFold(text, "data:") }

// hasFold reports whether text starts with prefix, ignoring case.
func hasFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix)
}

// referenceField is a field for references.
type referenceField struct {
	name        string
	video       bool   // it may hold videos too
	videoByType bool   // it may hold videos too, as objects with this type
	role        string // of the references; if empty, each object may have its own
}

func imageField(name string) referenceField { return referenceField{name: name} }

func imageOrTypedVideo(name string) referenceField {
	return referenceField{name: name, videoByType: true}
}

func roleField(role string) referenceField { return referenceField{name: role, role: role} }

func anyField(name string) referenceField { return referenceField{name: name, video: true} }

// readReferences reads the references in the given fields. After an error, ReferenceCount may be too small.
func (s *Request) readReferences(fields ...referenceField) error {
	s.References, s.ReferenceCount, s.ReferencesParam = nil, 0, ""
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
	s.countReference(f)
	r := Reference{Param: param, Image: true, Video: f.video, videoByType: f.videoByType, anyRole: s.isVideo, Role: f.role}
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
	s.addToReferences(r)
	return nil
}

func (s *Request) countReference(f referenceField) {
	s.ReferenceCount++
	s.ReferencesParam = cmp.Or(s.ReferencesParam, f.name)
}

// addToReferences adds a reference, up to maxReferences.
func (s *Request) addToReferences(r Reference) {
	if len(s.References) < maxReferences {
		s.References = append(s.References, r)
	}
}

// readObject reads a reference given as an object, and returns its address.
func (r *Reference) readObject(object []byte) ([]byte, error) {
	if path := form.FindStored(object, 0); path != "" {
		return nil, form.StoredError(r.Param + path)
	}
	var address []byte
	own := r.Role
	for name, value := range rawjson.Members(object) {
		value = rawjson.NonNull(value)
		switch {
		case value == nil:
		case string(name) == "type":
			kind := strings.TrimSuffix(rawjson.Unquote(value), "_url")
			if kind != "image" && (kind != "video" || !r.Video && !r.videoByType) {
				return nil, fault.At(fault.InvalidRequest, r.Param+".type", "`{param}` must be %s.", r.kinds())
			}
			r.Image, r.Video = kind == "image", kind == "video"
		case string(name) == "role":
			r.Role = rawjson.Unquote(value)
			if !slices.Contains(r.roles(own), r.Role) {
				return nil, fault.At(fault.InvalidRequest, r.Param+".role", "`{param}` must be %s.", strings.Join(r.roles(own), ", "))
			}
		case string(name) == "url" || string(name) == "image_url" || string(name) == "video_url" && (r.Video || r.videoByType):
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

// roles returns the possible roles of r: the role of its field, or any role for a video's references.
func (r *Reference) roles(own string) []string {
	switch {
	case own != "":
		return []string{own}
	case r.anyRole:
		return Roles()
	}
	return []string{Subject}
}

// checkRoles checks the roles. If only some references have a role, the others get Subject. If none
// has, the line chooses.
func (s *Request) checkRoles() error {
	seen := map[string]bool{}
	for i := range s.References {
		r := &s.References[i]
		if isFrame(r.Role) {
			if seen[r.Role] {
				return fault.At(fault.InvalidRequest, r.Param, "Send one `%s` only.", r.Role)
			}
			r.Video = false
		}
		seen[r.Role] = true
	}
	delete(seen, "")
	for i := range s.References {
		if r := &s.References[i]; len(seen) > 0 && r.Role == "" {
			r.Role = Subject
		}
	}
	return nil
}

// RolesOfReferences returns the roles of all references in order, or nil.
func (s *Request) RolesOfReferences() []string {
	var roles []string
	for _, r := range s.References {
		if r.Role != "" {
			roles = append(roles, r.Role)
		}
	}
	return roles // after checkRoles, either all have a role or none
}

// kinds names the possible kinds of r.
func (r *Reference) kinds() string {
	switch {
	case r.Image && (r.Video || r.videoByType):
		return "image or video"
	case r.Video:
		return "video"
	}
	return "image"
}

// readText reads the JSON string of a reference: an address, or content for Data.
func (r *Reference) readText(raw []byte) error {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text = []byte(rawjson.Unquote(raw))
	}
	return r.setText(text)
}

// setText is like readText for text without quotes.
func (r *Reference) setText(text []byte) error {
	const scheme = 32 // longer than the name of any scheme
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

// readMask reads `mask`, which needs an image.
func (s *Request) readMask() error {
	f := imageField("mask")
	masks := Request{doc: s.doc, form: s.form}
	if err := masks.readReferences(f); err != nil {
		return err
	}
	switch {
	case masks.ReferenceCount == 0:
		s.Mask = nil
		return nil
	case masks.ReferenceCount > 1:
		return fault.At(fault.InvalidRequest, f.name, "Send one `mask` only.")
	case s.ReferenceCount == 0:
		return fault.At(fault.InvalidRequest, f.name, "A `mask` needs the image that it belongs to. Send that in `image`.")
	}
	s.Mask = &masks.References[0]
	return nil
}
