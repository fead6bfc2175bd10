// Package tree owns the text of catalogs: parsing and printing documents in YAML or JSON as a tree
// of nodes. Package catalog owns the meaning of the keys.
//
// Invariants:
//   - Uploads are bounded in depth and number of values before any costly work, and no defect of a
//     parser crashes the node.
//   - A printed tree reads back as the same tree.
//   - Every node knows its place in its text.
package tree

import (
	"fmt"
	"strconv"
)

// Value is a part of a document's text, the same for YAML and JSON. Scalars keep their text, so
// prices are read exactly. A tree is immutable once built, because aliases share nodes.
type Value struct {
	Kind   Kind
	Text   string   // of a plain or quoted scalar
	Items  []*Value // of a list
	Fields []Field  // of a table, in the order of the text
	Pos    Position
	Flow   bool // print on one line
	size   int  // nodes in this tree, aliases counted as often as they appear
}

// Field is one key of a table.
type Field struct {
	Name  string
	Pos   Position
	Value *Value
}

// Position is a place in a text, counted from 1. The zero value stands for the whole text.
type Position struct{ Line, Column int }

// String names the place as the path of a fault does.
func (p Position) String() string {
	if p == (Position{}) {
		return "document"
	}
	return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
}

// SyntaxError reports that a text cannot be read as YAML or JSON of a document.
type SyntaxError struct {
	Pos     Position
	Message string
}

// Error implements error.
func (e *SyntaxError) Error() string { return e.Pos.String() + ": " + e.Message }

// unreadable makes an Error.
func syntaxError(pos Position, format string, args ...any) error {
	return &SyntaxError{Pos: pos, Message: fmt.Sprintf(format, args...)}
}

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes.
const (
	NullKind   Kind = iota
	PlainKind       // a scalar without quotes: number, boolean or text
	QuotedKind      // a scalar, always text
	ListKind
	TableKind
)

// String names the kind for messages about a wrong kind.
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

// Get returns the value of a key, or nil if it is absent or null.
func (n *Value) Get(name string) *Value {
	for _, f := range n.Fields {
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
func (n *Value) Set(name string, value *Value) {
	n.Fields = append(n.Fields, Field{Name: name, Value: value})
}

// Inline marks a node to be printed on one line.
func (n *Value) Inline() *Value {
	n.Flow = true
	return n
}
