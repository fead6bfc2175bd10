// Package piece owns the code shared by all translators: building JSON from pieces of other JSON,
// ids of tool calls for another form, and the content blocks of messages.
//
// Invariants: texts and numbers are copied unchanged, never decoded and encoded again, so that
// equal requests give equal bytes (for prompt caches) and large numbers keep every digit; the
// appended bytes are JSON, whatever the input.
package piece

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Unsupported returns the error for a value unknown to the line's form.
func Unsupported(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, format, args...)
}

// IsBlank reports whether a JSON string is empty or only white space.
func IsBlank(raw []byte) bool {
	contents := rawjson.Contents(raw)
	for i := 0; i < len(contents); i++ {
		switch c := contents[i]; {
		case c == ' ':
		case c == '\\' && i+1 < len(contents) && (contents[i+1] == 'n' || contents[i+1] == 't' || contents[i+1] == 'r'):
			i++
		case c == '\\' || c >= utf8.RuneSelf: // other white space
			return strings.TrimSpace(rawjson.Unquote(raw)) == ""
		default:
			return false
		}
	}
	return true
}

// maxArgumentDepth is the nesting limit of a tool call's arguments. Real arguments are never so
// deep, and the request around them must stay within the limit of JSON readers.
const maxArgumentDepth = 800

// AppendObject appends the JSON object in raw. raw is the object or, as in the chat form, a string that
// contains the object's JSON. An empty string becomes an empty object. Any other text becomes the
// member `_raw` of an object, so that no output of a model is lost.
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

// ToolID returns the id of a tool call in the alphabet of the messages form: letters, digits, `_`
// and `-`. A changed id ends in a hash.
func ToolID(id string) string {
	changed := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if changed == id {
		return id
	}
	return fmt.Sprintf("%s_%08x", changed, HashOf(id))
}

// HashOf returns a short hash of an id, the same on every node.
func HashOf(id string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id))
	return sum.Sum32()
}

// CheckTranslatable rejects hosted tools and values with a price of their own. Translations drop them,
// so the client would pay for something it did not get. Cache marks are accepted: translations keep
// them if the other form has them.
func CheckTranslatable(a *wire.Parameters) error {
	if len(a.Tools) > 0 {
		return Unsupported(a.Tools[0].Param, "`{param}`: the tool `%s` is not offered for this model. Leave it out.", a.Tools[0].Name)
	}
	for _, o := range a.Options {
		if o.Option == "" {
			return Unsupported(o.Param, "`{param}` is not offered for this model. Leave it out.")
		}
	}
	return nil
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

// AppendContents appends the contents of a provider's JSON string unchanged. If the string is invalid,
// AppendContents repairs it. If raw is another value, AppendContents appends its JSON as text.
func AppendContents(dst, raw []byte) []byte {
	switch {
	case rawjson.IsString(raw):
		return append(dst, raw[1:len(raw)-1]...)
	case rawjson.IsText(raw):
		return AppendEscaped(dst, rawjson.AppendUnquoted(nil, raw[1:len(raw)-1]))
	}
	return AppendEscaped(dst, raw)
}
