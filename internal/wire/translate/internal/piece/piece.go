// Package piece owns what translators share whatever their forms are: they build
// JSON from pieces of the JSON that they read, give calls of tools ids that the
// other form takes, and read the content blocks of messages.
//
// Invariants: texts and numbers are copied as they stand, never decoded and
// encoded again, so that equal requests give equal bytes (which prompt caches live
// on) and large numbers keep every digit; whatever the bytes, what is appended is
// JSON.
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

// Cannot refuses what a line of another form has no word for.
func Cannot(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, format, args...)
}

// IsBlank tells whether a JSON string holds white space alone, or nothing.
func IsBlank(raw []byte) bool {
	in := rawjson.Contents(raw)
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == ' ':
		case c == '\\' && i+1 < len(in) && (in[i+1] == 'n' || in[i+1] == 't' || in[i+1] == 'r'):
			i++
		case c == '\\' || c >= utf8.RuneSelf: // white space of other kinds
			return strings.TrimSpace(rawjson.Unquote(raw)) == ""
		default:
			return false
		}
	}
	return true
}

// deepestArguments is how deep the arguments of a tool call may nest: further
// in than that lies no argument, and the request around them must stay within
// the limit of JSON readers.
const deepestArguments = 800

// AppendObject appends the JSON object that raw holds, which is either an
// object or, as in the chat form, a string with the text of one. Nothing is an
// empty object; other text goes into the member `_raw`, so that nothing is
// lost of what a model said.
func AppendObject(dst, raw []byte) []byte {
	text := raw
	if rawjson.IsText(raw) {
		text = []byte(rawjson.Unquote(raw))
	}
	from := rawjson.SkipSpace(text, 0)
	if from == len(text) || string(text) == "null" {
		return append(dst, "{}"...)
	}
	if text[from] != '{' || !utf8.Valid(text) || !rawjson.IsWithin(text[from:], deepestArguments) {
		return append(AppendAsText(append(dst, `{"_raw":`...), text), '}')
	}
	return append(dst, bytes.TrimRight(text[from:], " \n\t\r")...)
}

// ToolID returns the id of a tool call as the messages form allows it: letters,
// digits, `_` and `-`. Other ids get a suffix that tells them apart.
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

// HashOf is a short hash of an id, the same on every node.
func HashOf(id string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id)) // never fails
	return sum.Sum32()
}

// Untranslated refuses what no translation keeps: a hosted tool, or a value
// that changes the price. Without the refusal the client would pay for something
// that it did not get. Marks of the prompt cache are kept where the other form
// has them.
func Untranslated(a *wire.Parameters) error {
	if len(a.Tools) > 0 {
		return Cannot(a.Tools[0].Param, "`{param}`: the tool `%s` is not offered for this model. Leave it out.", a.Tools[0].Name)
	}
	for _, o := range a.Options {
		if o.Option == "" {
			return Cannot(o.Param, "`{param}` is not offered for this model. Leave it out.")
		}
	}
	return nil
}

// AppendEscaped appends text, as it would stand between the quotes of a JSON
// string. What is no UTF-8 is replaced.
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

// AppendAsText appends bytes as a JSON string.
func AppendAsText(dst, text []byte) []byte {
	return append(AppendEscaped(append(dst, '"'), text), '"')
}

// AppendInside appends the inside of a provider's JSON string as it stands, or
// what can be saved of it when it is none. Other values count as their text.
func AppendInside(dst, raw []byte) []byte {
	switch {
	case rawjson.IsString(raw):
		return append(dst, raw[1:len(raw)-1]...)
	case rawjson.IsText(raw):
		return AppendEscaped(dst, rawjson.AppendUnquoted(nil, raw[1:len(raw)-1]))
	}
	return AppendEscaped(dst, raw)
}
