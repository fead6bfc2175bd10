package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
)

// readJSON builds the tree of a JSON text that is already known to be valid.
// Repeated keys are kept; the reader reports them.
func readJSON(raw []byte) (*node, error) {
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(raw))}
	r.dec.UseNumber()
	for i, c := range raw {
		if c == '\n' {
			r.lines = append(r.lines, i)
		}
	}
	return r.value(1)
}

type jsonReader struct {
	dec   *json.Decoder
	lines []int // offsets of line ends
}

// here is the position of what was read last.
func (r *jsonReader) here() position {
	offset := int(r.dec.InputOffset())
	line := sort.SearchInts(r.lines, offset)
	start := 0
	if line > 0 {
		start = r.lines[line-1] + 1
	}
	return position{line + 1, max(1, offset-start)}
}

func (r *jsonReader) value(depth int) (*node, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, unreadable(r.here(), "is not valid JSON: %v", err)
	}
	n := &node{at: r.here(), size: 1}
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
				key, err := r.dec.Token()
				if err != nil {
					return nil, unreadable(r.here(), "is not valid JSON: %v", err)
				}
				f.name, f.at = key.(string), r.here()
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
