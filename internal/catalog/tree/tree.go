// Package tree owns the text of catalogs. It parses documents in YAML or JSON into a tree of
// values, and prints a tree. Package catalog owns the meaning of the keys.
//
// Invariants:
//   - Uploads are bounded in depth and number of values before any costly work, and no defect of a
//     parser crashes the gateway.
//   - A printed tree reads back as the same tree.
//   - Every value has its position in the text.
package tree

import (
	"fmt"
	"strconv"
)

// Value is a part of a document, the same for YAML and JSON. Scalars keep their text, so prices are
// read exactly. A tree is immutable once built, because aliases share values.
type Value struct {
	Kind   Kind
	Text   string   // of a plain or quoted scalar
	Items  []*Value // of a list
	Fields []Field  // of a table, in the order of the text
	Pos    Position
	Flow   bool // print on one line
	size   int  // values in this tree; an alias counts each time it is used
}

// Field is one key of a table.
type Field struct {
	Name  string
	Pos   Position
	Value *Value
}

// Position is a place in a text. Lines and columns start at 1. The zero value stands for the whole
// text.
type Position struct{ Line, Column int }

// String returns the position in the format of a fault's path.
func (p Position) String() string {
	if p == (Position{}) {
		return "document"
	}
	return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
}

// SyntaxError reports a text that is not valid YAML or JSON, or has features that catalogs do not
// support.
type SyntaxError struct {
	Pos     Position
	Message string
}

// Error implements error.
func (e *SyntaxError) Error() string { return e.Pos.String() + ": " + e.Message }

// syntaxError returns a *SyntaxError.
func syntaxError(pos Position, format string, args ...any) error {
	return &SyntaxError{Pos: pos, Message: fmt.Sprintf(format, args...)}
}

// Kind is the kind of a value.
type Kind uint8

// The kinds of values.
const (
	NullKind   Kind = iota
	PlainKind       // a scalar without quotes: number, boolean or text
	QuotedKind      // a scalar, always text
	ListKind
	TableKind
)

// String returns the kind for error messages.
func (k Kind) String() string {
	switch k {
	case NullKind:
		return "nothing"
	case ListKind:
		return "a list"
	case TableKind:
		return "a mapping"
	}
	return "a single value"
}

// Get returns the value of a key, or nil if the key is absent or its value null.
func (v *Value) Get(name string) *Value {
	for _, f := range v.Fields {
		if f.Name == name && f.Value.Kind != NullKind {
			return f.Value
		}
	}
	return nil
}

// Plain returns a scalar printed without quotes.
func Plain(text string) *Value { return &Value{Kind: PlainKind, Text: text} }

// Text returns a scalar printed in quotes.
func Text(text string) *Value { return &Value{Kind: QuotedKind, Text: text} }

// Number returns a scalar for a whole number.
func Number(n int64) *Value { return Plain(strconv.FormatInt(n, 10)) }

// List returns a list, printed with one entry per line.
func List(items ...*Value) *Value { return &Value{Kind: ListKind, Items: items} }

// Table returns an empty mapping.
func Table() *Value { return &Value{Kind: TableKind} }

// Set appends a key.
func (v *Value) Set(name string, value *Value) {
	v.Fields = append(v.Fields, Field{Name: name, Value: value})
}

// Inline marks n to be printed on one line, and returns n.
func (v *Value) Inline() *Value {
	v.Flow = true
	return v
}
