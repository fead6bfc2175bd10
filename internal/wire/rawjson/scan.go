package rawjson

import (
	"encoding/binary"
	"math/bits"
)

const (
	// maxDepth is the nesting limit of JSON. Real documents are far below it, and recursive readers
	// run out of stack only far above it.
	maxDepth = 1_000
	// maxRequestDepth is the nesting limit of a request. A provider may repeat parts of the request
	// in its answer (tools in /responses) with further levels around them, and the gateway must be
	// able to read the answer.
	maxRequestDepth = 900
)

// scanner checks JSON strictly (RFC 8259) in one pass over valid UTF-8. Its methods take the index
// of the expected element and return the index after it, or invalid.
type scanner struct {
	src  []byte
	fail int       // index of the syntax error
	deep bool      // the error is nesting beyond maxDepth
	open []byte    // closing brackets of the open containers of value
	seen *openKeys // nil if keys may repeat

	prefixes [2]string // to find at the start of strings other than keys; may be empty
	has      [2]bool   // the prefixes found
}

const invalid = -1

// bad records a syntax error at index i and returns invalid.
func (s *scanner) bad(i int) int {
	s.fail = min(i, len(s.src))
	return invalid
}

func (s *scanner) space(i int) int {
	for i < len(s.src) && (s.src[i] == ' ' || s.src[i] == '\n' || s.src[i] == '\t' || s.src[i] == '\r') {
		i++
	}
	return i
}

// value reads any value at nesting level depth.
func (s *scanner) value(i, depth int) int {
	src := s.src
	s.open = s.open[:0]
	for {
		if i >= len(src) {
			return s.bad(i)
		}
		switch c := src[i]; c {
		case '"':
			for p, prefix := range &s.prefixes {
				if prefix != "" && len(src)-i > len(prefix) && string(src[i+1:i+1+len(prefix)]) == prefix {
					s.has[p] = true
				}
			}
			i = s.text(i)
		case '{', '[':
			if depth+len(s.open) >= maxDepth {
				s.deep = true
				return s.bad(i)
			}
			end := c + 2 // in ASCII, `}` and `]` are two after their opening brackets
			i = s.space(i + 1)
			if i < len(src) && src[i] == end {
				i++
				break
			}
			s.open = append(s.open, end)
			if c == '{' {
				if s.seen != nil {
					s.seen.enter()
				}
				if i = s.key(i); i == invalid {
					return invalid
				}
			}
			continue
		case 't':
			i = s.literal(i, "true")
		case 'f':
			i = s.literal(i, "false")
		case 'n':
			i = s.literal(i, "null")
		default:
			i = s.number(i)
		}
		if i == invalid {
			return invalid
		}
		if i = s.close(i); i == invalid || len(s.open) == 0 {
			return i
		}
	}
}

// close reads the closing brackets after a value, up to a comma and, in an object, the next key. It
// returns the index of the next value, or of the end of the outermost value.
func (s *scanner) close(i int) int {
	for len(s.open) > 0 {
		i = s.space(i)
		if i >= len(s.src) {
			return s.bad(i)
		}
		end := s.open[len(s.open)-1]
		switch {
		case s.src[i] == end:
			s.open = s.open[:len(s.open)-1]
			if end == '}' && s.seen != nil {
				s.seen.leave()
			}
			i++
		case s.src[i] != ',':
			return s.bad(i)
		case end == '}':
			return s.key(s.space(i + 1))
		default:
			return s.space(i + 1)
		}
	}
	return i
}

// key reads a member's name and the colon.
func (s *scanner) key(i int) int {
	if i >= len(s.src) || s.src[i] != '"' {
		return s.bad(i)
	}
	from := i
	if i = s.text(i); i == invalid {
		return invalid
	}
	if s.seen != nil && !s.seen.visit(s.src, from, i) {
		s.seen = nil
	}
	i = s.space(i)
	if i >= len(s.src) || s.src[i] != ':' {
		return s.bad(i)
	}
	return s.space(i + 1)
}

func (s *scanner) literal(i int, word string) int {
	if len(s.src)-i < len(word) || string(s.src[i:i+len(word)]) != word {
		return s.bad(i)
	}
	return i + len(word)
}

func (s *scanner) number(i int) int {
	src := s.src
	if i < len(src) && src[i] == '-' {
		i++
	}
	switch {
	case i < len(src) && src[i] == '0':
		i++
	default:
		if i = s.digits(i); i == invalid {
			return invalid
		}
	}
	if i < len(src) && src[i] == '.' {
		if i = s.digits(i + 1); i == invalid {
			return invalid
		}
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		return s.digits(i)
	}
	return i
}

// digits reads one or more digits.
func (s *scanner) digits(i int) int {
	from := i
	for i < len(s.src) && '0' <= s.src[i] && s.src[i] <= '9' {
		i++
	}
	if i == from {
		return s.bad(i)
	}
	return i
}

// text reads a string.
func (s *scanner) text(i int) int {
	src := s.src
	for i++; ; {
		i += Plain(src[i:])
		if i >= len(src) {
			return s.bad(i)
		}
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			if i+1 >= len(src) {
				return s.bad(i + 1)
			}
			switch src[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				for k := i + 2; k < i+6; k++ {
					if k >= len(src) || !isHex(src[k]) {
						return s.bad(k)
					}
				}
				i += 6
			default:
				return s.bad(i + 1)
			}
		default: // a control character
			return s.bad(i)
		}
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// Plain returns the number of bytes before the first quote, backslash or control character. It tests eight
// bytes at a time: a byte of mark has its high bit set if the same byte of word is a quote, a backslash or a
// control character. A borrow can also set bits above the lowest of these bytes, but only the lowest bit of
// mark is used.
func Plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(b); n += 8 {
		word := binary.LittleEndian.Uint64(b[n:])
		quote := word ^ ones*'"'
		slash := word ^ ones*'\\'
		mark := ((word-ones*0x20)&^word | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if mark != 0 {
			return n + bits.TrailingZeros64(mark)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return n
}
