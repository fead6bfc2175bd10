package importer

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// wordKind is what a piece of SQL is.
type wordKind int

const (
	aMark  wordKind = iota // a single character
	aWord                  // a keyword, a number or a bare name
	aName                  // a name in backticks
	aValue                 // a text in quotes, or bytes
)

// word is a piece of SQL.
type word struct {
	kind wordKind
	text string
}

func (w word) is(mark string) bool     { return w.kind == aMark && w.text == mark }
func (w word) isWord(text string) bool { return w.kind == aWord && strings.EqualFold(w.text, text) }

// shown is a word in an error: a value is a stranger's, and may be a secret.
func (w word) shown() string {
	if w.kind == aValue {
		return "a value"
	}
	return shown(w.text)
}

// maxValue bounds a value in bytes: far above what the tables hold that are read.
const maxValue = 16 << 20

// words are the pieces of a dump, read one after the other in the memory of one.
type words struct {
	in   *bufio.Reader
	line int // that was read last, from 1
}

func newWords(in io.Reader) *words { return &words{in: bufio.NewReaderSize(in, 64<<10), line: 1} }

// next returns the next piece. Error: io.EOF at the end.
func (s *words) next() (word, error) { return s.read(true) }

// pass is next where only marks matter: values are not kept.
func (s *words) pass() (word, error) { return s.read(false) }

func (s *words) read(keep bool) (word, error) {
	for {
		c, err := s.byte()
		if err != nil {
			return word{}, err
		}
		switch {
		case c <= ' ':
		case c == '#':
			err = s.rest()
		case c == '-' && s.ahead() == '-':
			err = s.rest()
		case c == '/' && s.ahead() == '*':
			err = s.comment()
		case c == '\'' || c == '"':
			text, err := s.quoted(c, true, keep)
			return word{aValue, text}, err
		case c == '`':
			text, err := s.quoted(c, false, keep)
			return word{aName, text}, err
		case isBare(c) || c == '-' || c == '+':
			return s.bare(c)
		default:
			return word{aMark, string(c)}, nil
		}
		if err != nil {
			return word{}, err
		}
	}
}

// byte returns the next byte.
func (s *words) byte() (byte, error) {
	c, err := s.in.ReadByte()
	if c == '\n' && err == nil {
		s.line++
	}
	return c, err
}

// ahead returns the byte that follows, and leaves it there; 0: none does.
func (s *words) ahead() byte {
	next, err := s.in.Peek(1)
	if err != nil {
		return 0
	}
	return next[0]
}

// rest passes over the rest of a line.
func (s *words) rest() error {
	for {
		if c, err := s.byte(); err != nil || c == '\n' {
			return err
		}
	}
}

// comment passes over a comment, whose first character was read.
func (s *words) comment() error {
	if _, err := s.byte(); err != nil {
		return err
	}
	var before byte
	for {
		c, err := s.byte()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("a comment has no end: the dump is not whole")
		case err != nil:
			return err
		case before == '*' && c == '/':
			return nil
		}
		before = c
	}
}

// quoted reads a text behind its quote; a doubled quote stands for one.
func (s *words) quoted(quote byte, escapes, keep bool) (string, error) {
	var text strings.Builder
	for {
		c, err := s.byte()
		if errors.Is(err, io.EOF) {
			return "", errors.New("a text has no end: the dump is not whole")
		}
		if err != nil {
			return "", err
		}
		switch {
		case c == '\\' && escapes:
			if c, err = s.byte(); err != nil {
				return "", errors.New("a text has no end: the dump is not whole")
			}
			c = unescaped(c)
		case c == quote && s.ahead() == quote:
			_, _ = s.byte() // that was looked at
		case c == quote:
			return text.String(), nil
		}
		if keep {
			text.WriteByte(c)
		}
		if text.Len() > maxValue {
			return "", fmt.Errorf("a value is larger than %d MiB", maxValue>>20)
		}
	}
}

// unescaped is what a character behind a backslash stands for.
func unescaped(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 0x1a
	}
	return c
}

// isBare tells whether a character is one of a keyword, a number or a bare name.
func isBare(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// bare reads a keyword, a number, a bare name, or bytes in hexadecimal.
func (s *words) bare(first byte) (word, error) {
	text := []byte{first}
	number := first == '-' || first == '+' || '0' <= first && first <= '9'
	for {
		c := s.ahead()
		exponent := number && (c == '-' || c == '+') && (text[len(text)-1] == 'e' || text[len(text)-1] == 'E')
		if !isBare(c) && !(number && c == '.') && !exponent {
			break
		}
		if _, err := s.byte(); err != nil {
			return word{}, err
		}
		if text = append(text, c); len(text) > maxValue {
			return word{}, fmt.Errorf("a value is larger than %d MiB", maxValue>>20)
		}
	}
	found := string(text)
	if digits, ok := strings.CutPrefix(strings.ToLower(found), "0x"); ok {
		return bytesOf(digits)
	}
	if strings.EqualFold(found, "x") && s.ahead() == '\'' {
		_, _ = s.byte() // that was looked at
		digits, err := s.quoted('\'', false, true)
		if err != nil {
			return word{}, err
		}
		return bytesOf(digits)
	}
	return word{aWord, found}, nil
}

// bytesOf reads bytes in hexadecimal.
func bytesOf(digits string) (word, error) {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return word{}, errors.New("bytes are not written in hexadecimal")
	}
	return word{aValue, string(raw)}, nil
}
