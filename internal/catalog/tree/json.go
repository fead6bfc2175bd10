package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// readJSON builds the tree of a valid JSON text. It keeps repeated keys, because package catalog
// reports them.
func readJSON(raw []byte) (*Value, error) {
	r := jsonReader{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
	r.dec.UseNumber()
	for i, c := range raw {
		if c == '\n' {
			r.lines = append(r.lines, i)
		}
	}
	return r.value(1)
}

// jsonReader converts JSON to values with positions.
type jsonReader struct {
	raw   []byte
	dec   *json.Decoder
	lines []int // offsets of line ends
}

// position returns the position of the next token.
func (r *jsonReader) position() Position {
	offset := int(r.dec.InputOffset())
	for offset < len(r.raw) && strings.IndexByte(" \t\r\n:,", r.raw[offset]) >= 0 {
		offset++
	}
	line := sort.SearchInts(r.lines, offset)
	start := 0
	if line > 0 {
		start = r.lines[line-1] + 1
	}
	return Position{line + 1, offset - start + 1}
}

func (r *jsonReader) value(depth int) (*Value, error) {
	n := &Value{Pos: r.position(), size: 1}
	token, err := r.dec.Token()
	if err != nil {
		return nil, syntaxError(n.Pos, "is not valid JSON: %v", err)
	}
	if depth > maxDepth {
		return nil, syntaxError(n.Pos, "is nested deeper than %d levels", maxDepth)
	}
	switch v := token.(type) {
	case nil:
	case string:
		n.Kind, n.Text = QuotedKind, v
	case json.Delim:
		n.Kind = ListKind
		if v == '{' {
			n.Kind = TableKind
		}
		for r.dec.More() {
			var f Field
			if n.Kind == TableKind {
				f.Pos = r.position()
				key, err := r.dec.Token()
				if err != nil {
					return nil, syntaxError(f.Pos, "is not valid JSON: %v", err)
				}
				f.Name = key.(string)
			}
			if f.Value, err = r.value(depth + 1); err != nil {
				return nil, err
			}
			n.size += f.Value.size
			if n.Kind == TableKind {
				n.Fields = append(n.Fields, f)
			} else {
				n.Items = append(n.Items, f.Value)
			}
		}
		if _, err := r.dec.Token(); err != nil {
			return nil, syntaxError(r.position(), "is not valid JSON: %v", err)
		}
	default: // json.Number, bool
		n.Kind, n.Text = PlainKind, fmt.Sprint(v)
	}
	return n, nil
}
