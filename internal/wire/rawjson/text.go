package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of a JSON string that is given with its quotes.
func Unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// unquoteKey returns the string that begins at from in src without its
// escapes. It has passed the scanner.
func unquoteKey(src []byte, from int) []byte { return keyText(src[from:SkipText(src, from)]) }

// keyText returns a string, given with its quotes, without its escapes.
func keyText(raw []byte) []byte {
	for _, c := range raw[:min(len(raw), shortText)] {
		if c == '\\' {
			return []byte(Unquote(raw))
		}
	}
	if len(raw) > shortText && bytes.IndexByte(raw, '\\') >= 0 {
		return []byte(Unquote(raw))
	}
	return raw[1 : len(raw)-1]
}

// NameOf returns a JSON string's text; nil when it is no string.
func NameOf(raw []byte) []byte {
	switch {
	case !IsText(raw):
		return nil
	case bytes.IndexByte(raw, '\\') >= 0:
		return []byte(Unquote(raw))
	}
	return raw[1 : len(raw)-1]
}

// Inside returns what stands between the quotes of a JSON string.
func Inside(raw []byte) []byte {
	if !IsText(raw) {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// Quote writes text as a JSON string, without HTML escapes.
func Quote(text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string: cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// IsSound tells whether raw is one whole JSON string. Frames of a stream are
// looked at by their brackets alone, so what is copied out of them is not.
func IsSound(raw []byte) bool {
	if !IsText(raw) {
		return false
	}
	s := scanner{src: raw}
	return s.text(0) == len(raw) && utf8.Valid(raw)
}

// AppendUnquoted appends the inside of a JSON string without its escapes. What
// is no escape is appended as it stands.
func AppendUnquoted(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			r, size := hexRune(raw)
			raw = raw[size:]
			if utf16.IsSurrogate(r) && len(raw) > 2 && raw[0] == '\\' && raw[1] == 'u' {
				if low, size := hexRune(raw[2:]); utf16.DecodeRune(r, low) != utf8.RuneError {
					r, raw = utf16.DecodeRune(r, low), raw[2+size:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
}

// hexRune reads four hexadecimal digits.
func hexRune(raw []byte) (rune, int) {
	if len(raw) < 4 {
		return utf8.RuneError, len(raw)
	}
	n, err := strconv.ParseUint(string(raw[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError, 4
	}
	return rune(n), 4
}

// AppendLine writes a JSON value without line ends, which would end the line
// of an event. Between the tokens of JSON they are nothing but space, and
// inside a string they cannot stand.
func AppendLine(dst, value []byte) []byte {
	from := len(dst)
	dst = append(dst, value...)
	if bytes.ContainsAny(value, "\r\n") {
		for i := from; i < len(dst); i++ {
			if dst[i] == '\n' || dst[i] == '\r' {
				dst[i] = ' '
			}
		}
	}
	return dst
}

// AppendOr writes a value on one line, or otherwise where there is none.
func AppendOr(dst, value []byte, otherwise string) []byte {
	if value == nil {
		return append(dst, otherwise...)
	}
	return AppendLine(dst, value)
}

// AppendMember appends a further member of an object, behind a comma; with an
// empty value its beginning, up to the colon.
func AppendMember[V ~string | ~[]byte](dst []byte, name string, value V) []byte {
	return append(Put(dst, `,"`, name, `":`), value...)
}
