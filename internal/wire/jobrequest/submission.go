// Package jobrequest owns the bodies of submissions of images and videos: JSON and
// multipart forms, the rules about their fields that need no catalog, and the
// references that come with them. What they make does not pass through here.
//
// Invariants: nothing is read that has not passed the gate; every part, text and
// list has a bound; what refers to something stored at a provider is refused.
package jobrequest

import (
	"bytes"
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

// Bounds of what a submission holds besides its references.
const (
	maxPrompt = 100_000  // characters
	maxParams = 64 << 10 // bytes of further fields that go to the line
)

// maxReferences is how many references of a submission are read at all; models
// take fewer.
const maxReferences = 100

// Request is an image or video submission that passed the gate. What it asks
// for is set by the Check of its kind; until then it is zero.
type Request struct {
	doc  *rawjson.RequestBody
	form *multipartForm // of a multipart body: doc holds its text fields; else nil
	// clips says that it is a submission of a video.
	clips bool

	// Prompt is the user's text; empty only for videos with references.
	Prompt string
	// Size (images), Resolution and Ratio are as they were written, for the catalog
	// to read; empty: the default. RatioParam is how the user spells
	// the ratio's field.
	Size, Resolution, Ratio, RatioParam string
	// N is how many images are wanted; 0: not said.
	N int64
	// Duration is the length of a video as the JSON number that was sent; empty:
	// the default.
	Duration string
	// References are the images and videos to work from, in the user's order, at
	// most maxReferences. Asked is how many there are.
	References []Reference
	Asked      int
	// ReferencesParam is the field that the references came in; empty: none did.
	ReferencesParam string
	// Mask is what of the first reference may change; nil: all.
	Mask *Reference
	// Audio says whether a clip is to have sound; nil: not said. Callers may set it
	// to what the model has anyway before Params. Choices are the fields of
	// ChoiceNames that were sent, checked.
	Audio   *bool
	Choices []string
	// Callback is the address that wants the result, not judged yet but for its
	// being a string, and CallbackParam how the user spells its field. Empty
	// CallbackParam: there is none.
	Callback, CallbackParam string
}

// Image is a submission of images.
type Image struct{ Request }

// Video is a submission of a video.
type Video struct{ Request }

// OpenImage passes the JSON body of an image submission through the gate, as
// completions.Open does. The request keeps body; nobody may change it afterwards.
func OpenImage(body []byte) (*Image, error) {
	doc, err := form.OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &Image{Request{doc: doc}}, nil
}

// OpenVideo passes the body of a video submission through the gate, as
// OpenImage does.
func OpenVideo(body []byte) (*Video, error) {
	doc, err := form.OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &Video{Request{doc: doc, clips: true}}, nil
}

// Model returns the model's id as the client sent it; model_not_found when it
// is absent or not a string.
func (s *Request) Model() (string, error) {
	raw := s.doc.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.ModelNotFound, "model", "Name the model in `{param}`, as a string. GET /v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Fingerprint tells whether two submissions are the same: it is of the endpoint
// and of the bytes of the body, or of the parts of a multipart body, whose
// boundary clients choose anew each time.
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

// Check applies every rule about the fields of an image submission that needs no
// catalog and fills r's fields. edit says that the endpoint demands a reference.
// Its error is a *fault.Error with the path of the field at fault.
func (r *Image) Check(edit bool) error {
	if err := r.readReferences(imageOnly("image"), imageOnly("images")); err != nil {
		return err
	}
	if edit && r.Asked == 0 {
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
	if r.Resolution, err = r.word("resolution"); err != nil {
		return err
	}
	if r.Ratio, r.RatioParam, err = r.either("ratio", "aspect_ratio", fault.InvalidRequest); err != nil {
		return err
	}
	if err := r.readMask(); err != nil {
		return err
	}
	return r.readRest()
}

// Check is ImageRequest.Check for videos.
func (r *Video) Check() error {
	if err := r.checkCase(); err != nil {
		return err
	}
	err := r.readReferences(frameOf(FirstFrame), frameOf(LastFrame), unlessTyped("image"), unlessTyped("images"),
		unlessTyped("reference_images"), anyKind("references"))
	if err != nil {
		return err
	}
	if err := r.checkRoles(); err != nil {
		return err
	}
	if err := r.readPrompt(r.Asked == 0); err != nil {
		return err
	}
	if err := r.readDuration(); err != nil {
		return err
	}
	if r.Resolution, err = r.word("resolution"); err != nil {
		return err
	}
	if r.Ratio, r.RatioParam, err = r.either("ratio", "aspect_ratio", fault.InvalidRequest); err != nil {
		return err
	}
	if n, err := r.count("n"); err != nil || n > 1 {
		return fault.At(fault.InvalidRequest, "n", "A video job makes one clip. Leave `{param}` out and submit a job for each clip.")
	}
	return r.readRest()
}

// readPrompt reads `prompt`.
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

// readRest reads what both kinds have.
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

// ChoiceNames are the further fields of submissions whose meaning is the same
// for every model that lists them in its params: they are checked here, and what
// a model does not list is refused.
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

// word reads a field that must be a string; empty when it is absent.
func (s *Request) word(name string) (string, error) {
	raw := s.doc.Raw(name)
	if raw != nil && !rawjson.IsText(raw) {
		return "", fault.At(fault.InvalidRequest, name, "`{param}` must be a string.")
	}
	return rawjson.Unquote(raw), nil
}

// either reads a string field that has two spellings, and tells which was used.
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

// count reads a field that must be a positive integer; 0 when it is absent. In
// a form numbers are text.
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

// owned are the fields of submissions that the gateway reads itself: they never
// go to a line as they are.
var owned = []string{
	"model", "prompt", "n", "size", "resolution", "duration", "ratio", "aspect_ratio", "stream",
	"image", "images", "reference_images", "references", "mask", "callback_url", "callBackUrl",
	"first_frame", "last_frame", "audio",
}

// checkCase refuses fields that are owned but for case.
func (s *Request) checkCase() error {
	if s.form != nil {
		for _, p := range s.form.parts {
			if err := form.CheckName(p.name, owned); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range s.doc.Members {
		if err := form.CheckName(string(s.doc.Members[i].Name), owned); err != nil {
			return err
		}
	}
	return form.CheckSimilarKeys(s.doc)
}

// OwnsParam tells whether a submission's field is one that the gateway reads
// itself, so that a model's further fields cannot have that name.
func OwnsParam(name string) bool { return slices.Contains(owned, name) }

// Ignored returns the fields that are neither the gateway's own nor among the names, so that nobody
// gets them.
func (s *Request) Ignored(names []string) (ignored []string) {
	for _, m := range s.doc.Members {
		name := string(m.Name)
		if !OwnsParam(name) && !slices.Contains(names, name) && !slices.Contains(ChoiceNames(), name) {
			ignored = append(ignored, name)
		}
	}
	return ignored
}

// Misnamed refuses fields of other gateways' video forms that would change the
// bill and are read by none here: leaving them out in silence would render, and
// charge, something else. params are those that the model's entry lets pass.
func (r *Video) Misnamed(params []string) error {
	for name, instead := range map[string]string{"size": "`resolution` and `ratio`", "seconds": "`duration`"} {
		if r.doc.Raw(name) != nil && !slices.Contains(params, name) {
			return fault.At(fault.InvalidRequest, name, "Videos have no `{param}` here. Use %s.", instead)
		}
	}
	return nil
}

// Params returns the fields of the given names as one JSON object, as they were
// sent, but for those that are absent or that the gateway reads itself, and
// `audio` where Audio is set; nil when there are none. Numbers and booleans of a form are those of JSON. It refuses
// what refers to something stored at a provider, addresses of the web that checkAddress refuses, all
// other addresses, and more than 64 KiB.
func (s *Request) Params(names []string, checkAddress func(address string) error) (json.RawMessage, error) {
	if err := s.checkParams(names, checkAddress); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range names {
		raw := s.doc.Raw(name)
		if raw == nil || OwnsParam(name) {
			continue
		}
		if s.form != nil {
			raw = literal(raw)
		}
		if out.Len()+len(raw) > maxParams {
			return nil, fault.At(fault.InvalidRequest, name,
				"`{param}` is too long: the further fields of a submission may have %d bytes in all.", maxParams)
		}
		before := byte(',')
		if out.Len() == 0 {
			before = '{'
		}
		out.WriteByte(before)
		out.Write(quoted(name))
		out.WriteByte(':')
		out.Write(raw)
	}
	if s.Audio != nil {
		before := byte(',')
		if out.Len() == 0 {
			before = '{'
		}
		out.WriteByte(before)
		fmt.Fprintf(&out, `"audio":%t`, *s.Audio)
	}
	if out.Len() == 0 {
		return nil, nil
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// checkParams checks the references and addresses in the fields of the given names.
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

// literal returns the number or boolean that a form's text spells, else the
// text.
func literal(raw []byte) []byte {
	text := []byte(rawjson.Unquote(raw))
	if string(text) == "true" || string(text) == "false" || isNumber(text) {
		return text
	}
	return raw
}

// quoted writes a JSON string.
func quoted(text string) []byte {
	out, _ := json.Marshal(text) // strings only: cannot fail
	return out
}

// isNumber tells whether a text is a JSON number.
func isNumber(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '-' && !isDigit(raw[0]) {
		return false
	}
	return isDigit(raw[len(raw)-1]) && rawjson.IsValid(raw)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
