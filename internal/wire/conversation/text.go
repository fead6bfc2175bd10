package conversation

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Unsupported returns the error for a value unknown to the line's form.
func Unsupported(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, format, args...)
}

// NotOffered returns the error for a value that no translation supports.
func NotOffered(param string) error {
	return Unsupported(param, "`{param}` is not offered for this model. Leave it out.")
}

// NotFetched returns the error for a document that the line would have to fetch.
func NotFetched(param string) error {
	return Unsupported(param, "`{param}`: this model takes documents in the request, of type base64, text or content.")
}

// CheckPriced rejects hosted tools and values with a price of their own, except those named.
// Translations drop them, so the client would pay for something it did not get. Cache marks are
// accepted: translations keep them if the other form has them.
func (r *Request) CheckPriced(accept ...string) error {
	if len(r.Parameters.Tools) > 0 && r.Client != wire.FormResponses { // that form's decoder knows them
		t := r.Parameters.Tools[0]
		return Unsupported(t.Param, "`{param}` asks for the hosted tool `%s`, which is not offered for this model. Leave it out.", t.Name)
	}
options:
	for _, o := range r.Options {
		for _, name := range accept {
			if o.PriceKey() == name {
				continue options
			}
		}
		if o.Option == "" || o.Option == "service_tier" || o.Option == "modalities" {
			return NotOffered(o.Param)
		}
	}
	return nil
}

// CheckSingle rejects a request for several answers.
func (r *Request) CheckSingle() error {
	if r.N > 1 {
		return Unsupported(r.FieldName("n"), "This model gives one answer a request: leave `{param}` out or send 1.")
	}
	return nil
}

// FieldName returns the client's name of a field, given its name in chat completions.
func (r *Request) FieldName(name string) string {
	switch {
	case r.Client == wire.FormMessages && name == "stop":
		return "stop_sequences"
	case r.Client != wire.FormGemini:
		return name
	}
	switch name {
	case "n":
		return "generationConfig.candidateCount"
	case "stop":
		return "generationConfig.stopSequences"
	case "logprobs":
		return "generationConfig.responseLogprobs"
	}
	return name
}

// OutputKinds returns the requested kinds of output, for a line with text and images. It returns an
// error for another kind.
func (r *Request) OutputKinds() (text, image bool, err error) {
	for i, modality := range rawjson.Elements(r.Modalities) {
		switch rawjson.Unquote(modality) {
		case "text":
			text = true
		case "image":
			image = true
		default:
			return false, false, Unsupported(fmt.Sprintf("modalities[%d]", i), "`{param}` must be text or image for this model.")
		}
	}
	return text || !image, image, nil
}

// FetchError returns the error for an image at param that was not fetched because of err.
func FetchError(param string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.InvalidRequest {
		return Unsupported(param, "`{param}` cannot be used: %s", f.Message())
	}
	return err
}

// EffortFor returns the effort for a line's model, or "" if the client sent none.
func (r *Request) EffortFor(t wire.Translation) (string, error) {
	raw, err := t.Effort(r.Effort.Word, r.Effort.At)
	if err != nil {
		return "", err
	}
	word := rawjson.Unquote(raw)
	for _, known := range wire.Efforts() {
		if word == known {
			return word, nil
		}
	}
	if raw != nil {
		return "", Unsupported(r.Effort.At, "`{param}` must be one of none, minimal, low, medium, high, xhigh and max.")
	}
	return "", nil
}

// IsBlank reports whether the contents of a JSON string are empty or only white space.
func IsBlank(contents []byte) bool {
	for i := 0; i < len(contents); i++ {
		switch c := contents[i]; {
		case c == ' ':
		case c == '\\' && i+1 < len(contents) && (contents[i+1] == 'n' || contents[i+1] == 't' || contents[i+1] == 'r'):
			i++
		case c == '\\' || c >= utf8.RuneSelf: // other white space
			return strings.TrimSpace(string(rawjson.AppendUnquoted(nil, contents))) == ""
		default:
			return false
		}
	}
	return true
}

// Quoted returns the contents of a JSON string with their quotes.
func Quoted(contents []byte) []byte {
	return rawjson.Put(make([]byte, 0, len(contents)+2), `"`, contents, `"`)
}

// maxArgumentDepth is the nesting limit of a tool call's arguments. Real arguments are never so
// deep, and the request around them must stay within the limit of JSON readers.
const maxArgumentDepth = 800

// AppendObject appends the JSON object in raw. raw is the object, or a string that contains the
// object's JSON. An empty string becomes an empty object. Any other text becomes the member `_raw` of
// an object, so that no output of a model is lost.
func AppendObject(dst, raw []byte) []byte {
	text := raw
	if rawjson.IsText(raw) {
		text = []byte(rawjson.Unquote(raw))
	}
	from := rawjson.SkipSpace(text, 0)
	if from == len(text) || string(text) == "null" {
		return append(dst, "{}"...)
	}
	if text[from] != '{' || !utf8.Valid(text) || !rawjson.IsWithin(text[from:], maxArgumentDepth) {
		return append(AppendQuoted(append(dst, `{"_raw":`...), text), '}')
	}
	return append(dst, bytes.TrimRight(text[from:], " \n\t\r")...)
}

// ArgumentText returns the arguments of a call as a JSON string. A string sent by the client stays
// unchanged.
func (c *CallPart) ArgumentText() []byte {
	raw := c.Arguments
	switch {
	case raw == nil || rawjson.IsText(raw) && IsBlank(rawjson.Contents(raw)): // some vendors reject text other than JSON
		return []byte(`"{}"`)
	case rawjson.IsText(raw):
		return raw
	}
	return AppendQuoted(nil, raw)
}

// AppendEscaped appends text as the contents of a JSON string. Invalid UTF-8 is replaced.
func AppendEscaped(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	for len(text) > 0 {
		n := rawjson.Plain(text)
		if utf8.Valid(text[:n]) {
			dst = append(dst, text[:n]...)
		} else {
			dst = append(dst, strings.ToValidUTF8(string(text[:n]), "\ufffd")...)
		}
		if n == len(text) {
			break
		}
		switch c := text[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		text = text[n+1:]
	}
	return dst
}

// AppendQuoted appends text as a JSON string.
func AppendQuoted(dst, text []byte) []byte {
	return append(AppendEscaped(append(dst, '"'), text), '"')
}

// Contents returns the contents of a provider's JSON string unchanged, or repaired if the string is
// invalid. The JSON of another value becomes a text. It returns nil for nil.
func Contents(raw []byte) []byte {
	switch {
	case raw == nil:
		return nil
	case rawjson.IsString(raw):
		return rawjson.Contents(raw)
	case rawjson.IsText(raw):
		return AppendEscaped(nil, rawjson.AppendUnquoted(nil, raw[1:len(raw)-1]))
	}
	return AppendEscaped(nil, raw)
}

// HasScheme reports whether a JSON string is a web address.
func HasScheme(address []byte) bool {
	const longest = 32 // of a scheme, with any escapes of its slashes
	start := rawjson.Contents(address)
	head := strings.ToLower(strings.ReplaceAll(string(start[:min(len(start), longest)]), `\/`, `/`))
	return strings.HasPrefix(head, "https://") || strings.HasPrefix(head, "http://")
}

// SplitData splits a base64 data address into its media type in lower case and its data, which may
// have escapes (`\/`). ok is set for a data address; its kind is empty if it is not base64.
func SplitData(address []byte) (kind string, data []byte, ok bool) {
	const longest = 512 // of the text before the data, with any escapes
	in := rawjson.Contents(address)
	comma := bytes.IndexByte(in[:min(len(in), longest)], ',')
	if comma < 0 {
		return "", nil, false
	}
	head, ok := strings.CutPrefix(strings.ToLower(string(rawjson.AppendUnquoted(nil, in[:comma]))), "data:")
	if !ok {
		return "", nil, false
	}
	kind, options, _ := strings.Cut(head, ";")
	if options != "base64" && !strings.HasSuffix(options, ";base64") {
		return "", nil, true
	}
	return strings.TrimSpace(kind), in[comma+1:], true
}

// CorrectMedia corrects the types of all files in the request (form.MediaType). A PDF sent as an image
// becomes a file, and an image sent as a file an image.
func (r *Request) CorrectMedia() {
	for i := range r.Turns {
		correctMedia(r.Turns[i].Parts)
	}
}

func correctMedia(parts []Part) {
	for i := range parts {
		p := &parts[i]
		if p.Result != nil {
			correctMedia(p.Result.Parts)
		}
		if p.Media == nil || p.Media.Generated || !rawjson.IsText(p.Media.Address) {
			continue
		}
		declared, data, ok := SplitData(p.Media.Address)
		if !ok || data == nil {
			continue
		}
		found := form.MediaType(declared, data)
		switch {
		case found == "application/pdf":
			p.Kind = File
		case strings.HasPrefix(found, "image/"):
			p.Kind = Image
		default:
			continue
		}
		if head := `"data:` + found + ";base64,"; !bytes.HasPrefix(p.Media.Address, []byte(head)) {
			p.Media.Address = append(append(append(make([]byte, 0, len(data)+64), head...), data...), '"')
		}
	}
}

// ObjectWriter holds the members of a JSON object being written.
type ObjectWriter []byte

// Add adds a member. Its value is the concatenation of value.
func (m *ObjectWriter) Add(name string, value ...string) {
	if len(*m) > 0 {
		*m = append(*m, ',')
	}
	*m = rawjson.Put(*m, `"`, name, `":`)
	for _, text := range value {
		*m = append(*m, text...)
	}
}

// Object returns the object.
func (m ObjectWriter) Object() []byte {
	return rawjson.Put(make([]byte, 0, len(m)+2), "{", m, "}")
}

// List returns elements, each with a comma before it, as an array, or nil.
func List(elements []byte) []byte {
	if len(elements) == 0 {
		return nil
	}
	return rawjson.Put(make([]byte, 0, len(elements)+1), "[", elements[1:], "]")
}

// isContents reports whether text is the contents of a JSON string.
func isContents(text []byte) bool { return rawjson.IsString(Quoted(text)) }

// contentsOf returns text as the contents of a JSON string.
func contentsOf(text string) []byte { return rawjson.Contents(rawjson.Quote(text)) }

// unescaped returns the text of the contents of a JSON string.
func unescaped(contents []byte) []byte {
	if bytes.IndexByte(contents, '\\') < 0 {
		return contents
	}
	return rawjson.AppendUnquoted(nil, contents)
}

// trim returns data without white space around it.
func trim(data []byte) []byte { return bytes.TrimSpace(data) }

// object returns the object of an event, or nil. Some errors and answers come as an array of one
// object.
func object(data []byte) []byte {
	if data[0] == '[' {
		for _, first := range rawjson.Elements(data) {
			data = first
			break
		}
	}
	if data[0] != '{' {
		return nil
	}
	return data
}

// wholeObject returns the object of a whole answer, or nil if raw is not JSON.
func wholeObject(raw []byte) []byte {
	raw = trim(raw)
	if len(raw) == 0 || !rawjson.IsValid(raw) {
		return nil
	}
	return object(raw)
}

// appendLogprobLists appends the elements of a list of logprobs to a list without brackets.
func appendLogprobLists(dst, list []byte) []byte {
	if len(list) <= 2 || list[0] != '[' || !rawjson.IsValid(list) {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, list[1:len(list)-1]...)
}
