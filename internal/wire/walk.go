package wire

import (
	"bytes"
	"iter"
)

// The walkers below read JSON that is known to be valid. On other bytes they
// stop early; they never panic and never read past the end.

// skipText returns the index after the string whose opening quote stands at i.
func skipText(src []byte, i int) int {
	from := i + 1
	for i = from; i < len(src); {
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

// skipValue returns the index after the value that begins at i.
func skipValue(src []byte, i int) int {
	if i >= len(src) {
		return len(src)
	}
	switch src[i] {
	case '"':
		return skipText(src, i)
	case '{', '[':
		for depth := 0; i < len(src); {
			switch src[i] {
			case '"':
				i = skipText(src, i)
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

// isEnd tells whether c ends a number or a literal.
func isEnd(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\n', '\r', '\t', ':', '"':
		return true
	}
	return false
}

func skipSpace(src []byte, i int) int {
	s := scanner{src: src}
	return s.space(i)
}

// members walks an object: names without escapes, values as they stand.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for m := range memberSpans(object) {
			if !yield(m.name, object[m.from:m.to]) {
				return
			}
		}
	}
}

// memberSpans is members with the places of the values in object.
func memberSpans(object []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		if len(object) == 0 || object[0] != '{' {
			return
		}
		for i := skipSpace(object, 1); i < len(object) && object[i] == '"'; {
			name := i
			i = skipSpace(object, skipText(object, i))
			if i >= len(object) || object[i] != ':' {
				return
			}
			from := skipSpace(object, i+1)
			to := skipValue(object, from)
			if to <= from || !yield(member{unquoteKey(object, name), from, to}) {
				return
			}
			if i = skipSpace(object, to); i >= len(object) || object[i] != ',' {
				return
			}
			i = skipSpace(object, i+1)
		}
	}
}

// elements walks an array.
func elements(array []byte) iter.Seq2[int, []byte] {
	return func(yield func(index int, value []byte) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		for i, n := skipSpace(array, 1), 0; i < len(array) && array[i] != ']'; n++ {
			from := i
			to := skipValue(array, from)
			if to <= from || !yield(n, array[from:to]) {
				return
			}
			if i = skipSpace(array, to); i >= len(array) || array[i] != ',' {
				return
			}
			i = skipSpace(array, i+1)
		}
	}
}

// field returns a member's value; nil when it is absent or null.
func field(object []byte, name string) []byte {
	for key, value := range members(object) {
		if string(key) == name {
			return present(value)
		}
	}
	return nil
}

// present returns nil for null.
func present(value []byte) []byte {
	if isNull(value) {
		return nil
	}
	return value
}

func isNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

func isText(value []byte) bool { return len(value) > 1 && value[0] == '"' }
