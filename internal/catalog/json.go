package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// readJSON builds the tree of a JSON text that is already known to be valid.
// Repeated keys are kept; the reader reports them.
func readJSON(raw []byte) (*node, error) {
	r := jsonReader{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
	r.dec.UseNumber()
	for i, c := range raw {
		if c == '\n' {
			r.lines = append(r.lines, i)
		}
	}
	return r.value(1)
}

type jsonReader struct {
	raw   []byte
	dec   *json.Decoder
	lines []int // offsets of line ends
}

// here is the position of the next token.
func (r *jsonReader) here() position {
	offset := int(r.dec.InputOffset())
	for offset < len(r.raw) && strings.IndexByte(" \t\r\n:,", r.raw[offset]) >= 0 {
		offset++
	}
	line := sort.SearchInts(r.lines, offset)
	start := 0
	if line > 0 {
		start = r.lines[line-1] + 1
	}
	return position{line + 1, offset - start + 1}
}

func (r *jsonReader) value(depth int) (*node, error) {
	n := &node{at: r.here(), size: 1}
	token, err := r.dec.Token()
	if err != nil {
		return nil, unreadable(n.at, "is not valid JSON: %v", err)
	}
	if depth > maxDepth {
		return nil, unreadable(n.at, "is nested deeper than %d levels", maxDepth)
	}
	switch v := token.(type) {
	case nil:
	case string:
		n.kind, n.text = quotedNode, v
	case json.Delim:
		n.kind = listNode
		if v == '{' {
			n.kind = tableNode
		}
		for r.dec.More() {
			var f field
			if n.kind == tableNode {
				f.at = r.here()
				key, err := r.dec.Token()
				if err != nil {
					return nil, unreadable(f.at, "is not valid JSON: %v", err)
				}
				f.name = key.(string)
			}
			if f.value, err = r.value(depth + 1); err != nil {
				return nil, err
			}
			n.size += f.value.size
			if n.kind == tableNode {
				n.fields = append(n.fields, f)
			} else {
				n.items = append(n.items, f.value)
			}
		}
		if _, err := r.dec.Token(); err != nil {
			return nil, unreadable(r.here(), "is not valid JSON: %v", err)
		}
	default: // json.Number, bool
		n.kind, n.text = plainNode, fmt.Sprint(v)
	}
	return n, nil
}
