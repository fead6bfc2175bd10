package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of a JSON string, or "" if raw is not a string.
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

// unquoteKey returns the text of the JSON string at src[from], which must be valid.
func unquoteKey(src []byte, from int) []byte { return keyText(src[from:SkipText(src, from)]) }

// keyText returns the text of a JSON string, which must be valid.
func keyText(raw []byte) []byte {
	for _, c := range raw[:min(len(raw), shortText)] {
		if c == '\\' {
			return []byte(Unquote(raw))
		}
	}
	if len(raw) > shortText && bytes.IndexByte(raw, '\\') >= 0 {
		return []byte(Unquote(raw))
	}
	return slices.Clip(raw[1 : len(raw)-1])
}

// UnquoteBytes returns the text of a JSON string, or nil if raw is not a string.
func UnquoteBytes(raw []byte) []byte {
	if !IsText(raw) {
		return nil
	}
	return keyText(raw)
}

// Contents returns the bytes between the quotes of a JSON string, escapes included. Appending to them does
// not overwrite the rest of the text.
func Contents(raw []byte) []byte {
	if !IsText(raw) {
		return nil
	}
	return slices.Clip(raw[1 : len(raw)-1])
}

// Quote returns text as a JSON string, without HTML escapes.
func Quote(text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // cannot fail for a string
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// IsString reports whether raw is exactly one valid JSON string. Check strings from a stream with
// IsString before copying, because a meter may check only the brackets of a frame.
func IsString(raw []byte) bool {
	if !IsText(raw) {
		return false
	}
	s := scanner{src: raw}
	return s.text(0) == len(raw) && utf8.Valid(raw)
}

// AppendUnquoted appends the contents of a JSON string without its escapes. Invalid escapes are
// appended unchanged.
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

// AppendLine appends a JSON value and replaces each line end by a space, because a line end would
// end the data line of an event. In valid JSON, line ends are only white space between tokens.
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

// AppendOr appends a value on one line. If value is nil, AppendOr appends fallback.
func AppendOr(dst, value []byte, fallback string) []byte {
	if value == nil {
		return append(dst, fallback...)
	}
	return AppendLine(dst, value)
}

// AppendMember appends a comma, a member's name, a colon and the value. If value is empty, the
// caller appends the member's value afterwards.
func AppendMember[V ~string | ~[]byte](dst []byte, name string, value V) []byte {
	return append(Put(dst, `,"`, name, `":`), value...)
}
