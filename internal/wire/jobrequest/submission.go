// Package jobrequest owns the bodies of submissions of images and videos: JSON and multipart forms,
// the checks without the catalog, and the references. Results do not pass through it.
//
// Invariants: a body is only read after the gate has checked it; every part, text and list has a
// limit; references to objects stored at a provider are rejected.
package jobrequest

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Limits of a submission without its references.
const (
	maxPrompt = 100_000  // characters
	maxParams = 64 << 10 // bytes of further fields for the line
)

// maxReferences is the largest number of references read. Models accept fewer.
const maxReferences = 100

// Request is an image or video submission accepted by rawjson.Open. Check sets its exported fields.
type Request struct {
	doc  *rawjson.RequestBody
	form *multipartForm // the multipart body, or nil; then doc holds its text fields
	// isVideo is set for a submission of a video.
	isVideo bool

	// Prompt is the user's text. It is empty only for videos with references.
	Prompt string
	// Size (images), Resolution and Ratio are the client's texts; the catalog parses them. Empty means
	// the default. RatioParam is the name of the field that has the ratio.
	Size, Resolution, Ratio, RatioParam string
	// N is the number of images, or 0 if not sent.
	N int64
	// Duration is the length of a video as a JSON number. Empty means the default.
	Duration string
	// References are the first maxReferences input images and videos, in the user's order.
	// ReferenceCount is the number of all references.
	References     []Reference
	ReferenceCount int
	// ReferencesParam is the name of the field with the references, or empty.
	ReferencesParam string
	// Mask marks the part of the first reference to change. If nil, everything may change.
	Mask *Reference
	// Audio reports whether a clip has sound. It is nil if not sent. A caller may set Audio to the
	// model's default before it calls Params. Choices lists the fields of ChoiceNames that were sent.
	Audio   *bool
	Choices []string
	// Callback is the address for the result, not yet checked, and CallbackParam the name of the field
	// that has the address. An empty CallbackParam means no callback.
	Callback, CallbackParam string
}

// Image is a submission of images.
type Image struct{ Request }

// Video is a submission of a video.
type Video struct{ Request }

// OpenImage checks the JSON body of an image submission, as completions.Open does. The request
// retains body, which must not be changed.
func OpenImage(body []byte) (*Image, error) {
	doc, err := form.OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &Image{Request{doc: doc}}, nil
}

// OpenVideo is like OpenImage for a video submission.
func OpenVideo(body []byte) (*Video, error) {
	doc, err := form.OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &Video{Request{doc: doc, isVideo: true}}, nil
}

// Model returns the model id sent by the client, or a model_not_found error if the id is absent or
// not a string.
func (s *Request) Model() (string, error) { return form.Model(s.doc) }

// Fingerprint identifies a submission by its endpoint and its body. For a multipart body it uses
// the parts, because clients choose a new boundary each time.
func (s *Request) Fingerprint(endpoint string) []byte {
	h := sha256.New()
	write := func(field []byte) { fmt.Fprintf(h, "%d:", len(field)); h.Write(field) }
	write([]byte(endpoint))
	if s.form == nil {
		write(s.doc.Body)
		return h.Sum(nil)
	}
	for _, p := range s.form.parts {
		fmt.Fprintf(h, "%t", p.file)
		write([]byte(p.name))
		write(p.data)
	}
	return h.Sum(nil)
}

// Check checks the fields of an image submission without the catalog, and sets r's fields. It
// returns a *fault.Error with the path of the field. edit is set if the endpoint requires a
// reference.
func (r *Image) Check(edit bool) error {
	if err := r.readReferences(imageField("image"), imageField("images")); err != nil {
		return err
	}
	if edit && r.ReferenceCount == 0 {
		return fault.At(fault.InvalidRequest, "image",
			"An edit needs a reference image. Send it in `{param}`: an address, a data URI, base64 or a file of a multipart form.")
	}
	if err := r.checkCase(); err != nil {
		return err
	}
	if err := r.readPrompt(true); err != nil {
		return err
	}
	var err error
	if r.N, err = r.count("n"); err != nil {
		return err
	}
	if r.Size, err = r.word("size"); err != nil {
		return err
	}
	if err := r.readShape(); err != nil {
		return err
	}
	if err := r.readMask(); err != nil {
		return err
	}
	if err := r.readFormat(); err != nil {
		return err
	}
	return r.readRest()
}

// Check is like Image.Check for videos.
func (r *Video) Check() error {
	if err := r.checkCase(); err != nil {
		return err
	}
	err := r.readReferences(roleField(FirstFrame), roleField(LastFrame), imageOrTypedVideo("image"), imageOrTypedVideo("images"),
		imageOrTypedVideo("reference_images"), anyField("references"))
	if err != nil {
		return err
	}
	if err := r.checkRoles(); err != nil {
		return err
	}
	if err := r.readPrompt(r.ReferenceCount == 0); err != nil {
		return err
	}
	if err := r.readDuration(); err != nil {
		return err
	}
	if err := r.readShape(); err != nil {
		return err
	}
	if n, err := r.count("n"); err != nil || n > 1 {
		return fault.At(fault.InvalidRequest, "n", "A video job makes one clip. Leave `{param}` out and submit a job for each clip.")
	}
	return r.readRest()
}

// The values of response_format.
const (
	FormatURL    = "url"
	FormatBase64 = "b64_json"
)

// readFormat reads `response_format`.
func (r *Image) readFormat() error {
	format, err := r.word("response_format")
	if err == nil && format != "" && format != FormatURL && format != FormatBase64 {
		err = fault.At(fault.InvalidRequest, "response_format", "`{param}` must be url or b64_json.")
	}
	return err
}

// ResponseFormat returns the form in which the client wants the images: FormatURL, FormatBase64, or
// "" for either. It may be called before Check.
func (s *Request) ResponseFormat() string { return rawjson.Unquote(s.doc.Raw("response_format")) }

// readShape reads `resolution`, and `ratio` in either spelling.
func (s *Request) readShape() (err error) {
	if s.Resolution, err = s.word("resolution"); err != nil {
		return err
	}
	s.Ratio, s.RatioParam, err = s.either("ratio", "aspect_ratio", fault.InvalidRequest)
	return err
}

func (s *Request) readPrompt(needed bool) error {
	raw := s.doc.Raw("prompt")
	if raw != nil && !rawjson.IsText(raw) {
		return fault.At(fault.InvalidRequest, "prompt", "`{param}` must be a string.")
	}
	s.Prompt = rawjson.Unquote(raw)
	switch {
	case needed && strings.TrimSpace(s.Prompt) == "":
		return fault.At(fault.MissingPrompt, "prompt", "Say in `{param}` what is to be made.")
	case utf8.RuneCountInString(s.Prompt) > maxPrompt:
		return fault.At(fault.InvalidRequest, "prompt", "`{param}` must not be longer than %d characters.", maxPrompt)
	case strings.ContainsRune(s.Prompt, 0):
		return fault.At(fault.InvalidRequest, "prompt", "`{param}` must not hold the character U+0000.")
	}
	return nil
}

// readDuration reads `duration`: a number, or `auto`.
func (s *Request) readDuration() error {
	raw := s.doc.Raw("duration")
	switch {
	case raw == nil || rawjson.IsText(raw) && rawjson.Unquote(raw) == "auto":
		s.Duration = ""
	case !isNumber(raw):
		return fault.At(fault.InvalidRequest, "duration", "`{param}` must be a number of seconds.")
	default:
		s.Duration = string(raw)
	}
	return nil
}

// readRest reads the remaining fields of both kinds.
func (s *Request) readRest() error {
	if raw := s.doc.Raw("stream"); string(raw) == "true" || s.form != nil && string(raw) == `"true"` {
		return fault.At(fault.InvalidRequest, "stream", "Jobs are not streamed. Leave `{param}` out, and poll the job or name a `callback_url`.")
	}
	if err := s.readChoices(); err != nil {
		return err
	}
	var err error
	s.Callback, s.CallbackParam, err = s.either("callback_url", "callBackUrl", fault.InvalidCallbackURL)
	return err
}

// ChoiceNames returns the optional fields that mean the same for every model with these params.
// Check checks their types, and the catalog rejects a field that is not in the model's params.
func ChoiceNames() []string { return []string{"seed", "negative_prompt"} }

// readChoices reads `audio`, `seed` and `negative_prompt`.
func (s *Request) readChoices() error {
	s.Audio, s.Choices = nil, nil
	for _, name := range append(ChoiceNames(), "audio") {
		raw := s.doc.Raw(name)
		if raw != nil && s.form != nil {
			if raw = literal(raw); string(raw) == `""` {
				raw = nil
			}
		}
		if raw == nil {
			continue
		}
		switch name {
		case "audio":
			on := string(raw) == "true"
			if !on && string(raw) != "false" {
				return fault.At(fault.InvalidRequest, name, "`audio` must be true or false.")
			}
			s.Audio = &on
			continue
		case "seed":
			if _, ok := rawjson.Integer(raw); !ok || !isNumber(raw) {
				return fault.At(fault.InvalidRequest, name, "`seed` must be an integer.")
			}
		default:
			if !rawjson.IsText(raw) || strings.ContainsRune(rawjson.Unquote(raw), 0) {
				return fault.At(fault.InvalidRequest, name, "`{param}` must be a string without the character U+0000.")
			}
		}
		s.Choices = append(s.Choices, name)
	}
	return nil
}

// word returns a string field, or "" if the field is absent.
func (s *Request) word(name string) (string, error) {
	raw := s.doc.Raw(name)
	if raw != nil && !rawjson.IsText(raw) {
		return "", fault.At(fault.InvalidRequest, name, "`{param}` must be a string.")
	}
	return rawjson.Unquote(raw), nil
}

// either returns the string of a field with two names, and the name that the client used.
func (s *Request) either(name, other string, code fault.Code) (value, param string, err error) {
	for _, spelling := range []string{name, other} {
		raw := s.doc.Raw(spelling)
		switch {
		case raw == nil:
		case !rawjson.IsText(raw):
			return "", "", fault.At(code, spelling, "`{param}` must be a string.")
		case param != "" && rawjson.Unquote(raw) != value:
			return "", "", fault.At(code, spelling, "`%s` and `%s` contradict each other. Leave one of them out.", name, other)
		default:
			value, param = rawjson.Unquote(raw), cmp.Or(param, spelling)
		}
	}
	return value, param, nil
}

// count returns a positive integer field, or 0 if the field is absent. In a multipart form,
// numbers are text.
func (s *Request) count(name string) (int64, error) {
	raw := s.doc.Raw(name)
	if s.form != nil && raw != nil {
		if raw = []byte(rawjson.Unquote(raw)); len(raw) == 0 {
			return 0, nil
		}
	}
	if raw == nil {
		return 0, nil
	}
	if n, ok := rawjson.Integer(raw); ok && isNumber(raw) && n >= 1 {
		return n, nil
	}
	return 0, fault.At(fault.InvalidRequest, name, "`{param}` must be an integer of at least 1.")
}

// gatewayFields are the fields that the gateway reads and never sends to a line unchanged.
var gatewayFields = []string{
	"model", "prompt", "n", "size", "resolution", "duration", "ratio", "aspect_ratio", "stream",
	"image", "images", "reference_images", "references", "mask", "callback_url", "callBackUrl",
	"first_frame", "last_frame", "audio", "response_format",
}

// checkCase rejects a field whose name differs from one of gatewayFields only in case, and, in a JSON
// body, two keys that differ only in case.
func (s *Request) checkCase() error {
	if s.form != nil {
		for _, p := range s.form.parts {
			if err := form.CheckName(p.name, gatewayFields); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range s.doc.Members {
		if err := form.CheckName(string(s.doc.Members[i].Name), gatewayFields); err != nil {
			return err
		}
	}
	return form.CheckSimilarKeys(s.doc)
}

// OwnsParam reports whether the gateway reads a submission's field itself, so that the field cannot
// be one of a model's params.
func OwnsParam(name string) bool { return slices.Contains(gatewayFields, name) }

// IgnoredFields returns the fields that no line gets: the gateway does not read them, and names does not
// have them.
func (s *Request) IgnoredFields(names []string) (ignored []string) {
	for _, m := range s.doc.Members {
		name := string(m.Name)
		if !OwnsParam(name) && !slices.Contains(names, name) && !slices.Contains(ChoiceNames(), name) {
			ignored = append(ignored, name)
		}
	}
	return ignored
}

// CheckNames rejects `size` and `seconds`, which other gateways use for a video's shape and length. If
// the gateway ignored such a field, it would make and charge another video than requested. params are
// the model's params.
func (r *Video) CheckNames(params []string) error {
	for name, instead := range map[string]string{"size": "`resolution` and `ratio`", "seconds": "`duration`"} {
		if r.doc.Raw(name) != nil && !slices.Contains(params, name) {
			return fault.At(fault.InvalidRequest, name, "Videos have no `{param}` here. Use %s.", instead)
		}
	}
	return nil
}

// Params returns the named fields as one JSON object, without absent fields and fields read by the
// gateway, and `audio` if Audio is set. It returns nil if no field remains. In a form, numbers
// and booleans become JSON values. Params rejects references to objects stored at a provider, web
// addresses that checkAddress rejects, addresses that are neither web nor inline addresses, and more
// than 64 KiB.
func (s *Request) Params(names []string, checkAddress func(address string) error) (json.RawMessage, error) {
	if err := s.checkParams(names, checkAddress); err != nil {
		return nil, err
	}
	var out []byte
	for _, name := range names {
		raw := s.doc.Raw(name)
		if raw == nil || OwnsParam(name) {
			continue
		}
		if s.form != nil {
			raw = literal(raw)
		}
		if len(out)+len(raw) > maxParams {
			return nil, fault.At(fault.InvalidRequest, name,
				"`{param}` is too long: the further fields of a submission may have %d bytes in all.", maxParams)
		}
		out = append(rawjson.Put(out, ",", rawjson.Quote(name), ":"), raw...)
	}
	if s.Audio != nil {
		out = fmt.Appendf(out, `,"audio":%t`, *s.Audio)
	}
	if out == nil {
		return nil, nil
	}
	out[0] = '{'
	return append(out, '}'), nil
}

// checkParams checks the references and addresses in the named fields.
func (s *Request) checkParams(names []string, checkAddress func(address string) error) error {
	for at, value := range s.doc.Matches {
		i := slices.IndexFunc(s.doc.Members, func(m rawjson.Member) bool { return at < m.To })
		if field := string(s.doc.Members[i].Name); !slices.Contains(names, field) || OwnsParam(field) {
			continue
		}
		if err := form.CheckReference(s.doc, at, value); err != nil {
			return err
		}
		if err := form.CheckAddress(s.doc, at, value, checkAddress); err != nil {
			return err
		}
	}
	return nil
}

// literal returns the number or boolean in a form's JSON string, or else the string.
func literal(raw []byte) []byte {
	text := []byte(rawjson.Unquote(raw))
	if string(text) == "true" || string(text) == "false" || isNumber(text) {
		return text
	}
	return raw
}

func isNumber(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '-' && !isDigit(raw[0]) {
		return false
	}
	return isDigit(raw[len(raw)-1]) && rawjson.IsValid(raw)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
