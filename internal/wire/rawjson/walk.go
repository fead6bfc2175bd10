package rawjson

import (
	"bytes"
	"iter"
)

// The functions below expect valid JSON. For other bytes they stop early; they never panic or read
// past the end.

// shortText is the number of bytes SkipText looks at one by one. Most keys and many values are
// shorter, and a call of IndexByte costs more than a few bytes.
const shortText = 24

// SkipText returns the index after the string with its opening quote at i.
func SkipText(src []byte, i int) int {
	i++
	for near := min(i+shortText, len(src)); i < near; i++ {
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	from := i
	for i < len(src) {
		n := bytes.IndexByte(src[i:], '"')
		if n < 0 {
			break
		}
		i += n
		slashes := 0
		for i-1-slashes >= from && src[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
	return len(src)
}

// skipValue returns the index after the value at i.
func skipValue(src []byte, i int) int {
	if i >= len(src) {
		return len(src)
	}
	switch src[i] {
	case '"':
		return SkipText(src, i)
	case '{', '[':
		for depth := 0; i < len(src); {
			switch src[i] {
			case '"':
				i = SkipText(src, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
		return len(src)
	}
	for i < len(src) && !isEnd(src[i]) {
		i++
	}
	return i
}

// isEnd reports whether c ends a number or a literal.
func isEnd(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\n', '\r', '\t', ':', '"':
		return true
	}
	return false
}

// SkipSpace returns the index of the first byte from i on except white space.
func SkipSpace(src []byte, i int) int {
	s := scanner{src: src}
	return s.space(i)
}

// Members yields the members of an object: names without escapes, and raw values.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for m := range Spans(object) {
			if !yield(m.Name, object[m.From:m.To:m.To]) {
				return
			}
		}
	}
}

// Spans yields the members of an object with the bounds of their values.
func Spans(object []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if len(object) == 0 || object[0] != '{' {
			return
		}
		for i := SkipSpace(object, 1); i < len(object) && object[i] == '"'; {
			name, end := i, SkipText(object, i)
			i = SkipSpace(object, end)
			if i >= len(object) || object[i] != ':' {
				return
			}
			from := SkipSpace(object, i+1)
			to := skipValue(object, from)
			if to <= from || !yield(Member{keyText(object[name:end]), from, to}) {
				return
			}
			if i = SkipSpace(object, to); i >= len(object) || object[i] != ',' {
				return
			}
			i = SkipSpace(object, i+1)
		}
	}
}

// Elements yields the elements of an array.
func Elements(array []byte) iter.Seq2[int, []byte] {
	return func(yield func(index int, value []byte) bool) {
		n := 0
		for from, to := range ElementSpans(array) {
			if !yield(n, array[from:to:to]) {
				return
			}
			n++
		}
	}
}

// ElementSpans yields the bounds of the elements of an array.
func ElementSpans(array []byte) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		for i := SkipSpace(array, 1); i < len(array) && array[i] != ']'; {
			from := i
			to := skipValue(array, from)
			if to <= from || !yield(from, to) {
				return
			}
			if i = SkipSpace(array, to); i >= len(array) || array[i] != ',' {
				return
			}
			i = SkipSpace(array, i+1)
		}
	}
}

// Field returns a member's value, or nil if the member is absent or null.
func Field(object []byte, name string) []byte {
	for key, value := range Members(object) {
		if string(key) == name {
			return NonNull(value)
		}
	}
	return nil
}

// NonNull returns nil for null, and any other value unchanged.
func NonNull(value []byte) []byte {
	if isNull(value) {
		return nil
	}
	return value
}

// isNull reports whether a value is null or absent.
func isNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// IsText reports whether a value is a string.
func IsText(value []byte) bool { return len(value) > 1 && value[0] == '"' }
