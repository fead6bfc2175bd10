package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// maxMembers is how many members an object that the gateway reads may have.
const maxMembers = 4096

// member is one member of an object: its name without escapes, and where its
// value stands in the body.
type member struct {
	name     []byte
	from, to int
}

// document is a JSON object that passed the gate.
type document struct {
	body    []byte
	members []member
	from    int // the opening brace
}

// raw returns the value of a top-level member, nil when it is absent or null
// (null means absent).
func (d *document) raw(name string) []byte {
	if m := d.find(name); m != nil && d.body[m.from] != 'n' {
		return d.body[m.from:m.to]
	}
	return nil
}

// find returns a top-level member, also one that is null.
func (d *document) find(name string) *member {
	for i := range d.members {
		if string(d.members[i].name) == name {
			return &d.members[i]
		}
	}
	return nil
}

// open is the gate: it reads a request body in one pass and refuses what is
// not UTF-8, not strict JSON, not an object, or repeats a key (after
// unescaping) where the gateway reads: at the top level, and in the object, or
// the objects of the array, that a member named by reads holds. Other readers
// may take another of two equal keys than we do, so a repeated key could pass
// one thing by our checks and another to the provider.
func open(body []byte, reads ...string) (*document, error) {
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidEncoding, "The request body is not valid UTF-8. Send JSON encoded in UTF-8, not compressed.")
	}
	g := gate{scanner: scanner{src: body}, reads: reads}
	from := g.space(0)
	if from < len(body) && body[from] == '{' {
		g.members = make([]member, 0, 16)
		from = g.top(from)
	} else {
		from = g.value(from, 0)
		g.stranger = true
	}
	if from != invalid {
		if from = g.space(from); from < len(body) {
			from = g.bad(from)
		}
	}
	switch {
	case from == invalid && g.fail >= len(body):
		return nil, fault.New(fault.InvalidJSON, "The request body is not valid JSON: it ends too early.")
	case from == invalid:
		return nil, fault.New(fault.InvalidJSON, "The request body is not valid JSON: unexpected character at byte %d.", g.fail)
	case g.stranger:
		return nil, fault.New(fault.InvalidRequest, "The request body must be a JSON object.")
	case g.repeats:
		return nil, fault.New(fault.InvalidJSON, "The request body has the key %q more than once. Send each key once.", g.repeated)
	case g.tooMany:
		return nil, fault.New(fault.InvalidRequest, "An object of the request has more than %d keys.", maxMembers)
	}
	return &document{body: body, members: g.members, from: g.space(0)}, nil
}

// gate is the scanner with what it finds on its way.
type gate struct {
	scanner
	reads    []string
	members  []member
	names    [2]names // of the object at the top and of the one inside it
	repeats  bool     // a key was found twice
	repeated string   // the first such key
	tooMany  bool
	stranger bool // the body is no object
}

// top reads the top-level object at i.
func (g *gate) top(i int) int {
	return g.object(i, 0, func(name []byte, from int) int {
		to := invalid
		if g.isRead(name) && from < len(g.src) {
			to = g.inner(from)
		} else {
			to = g.value(from, 1)
		}
		if to != invalid && len(g.members) < maxMembers {
			g.members = append(g.members, member{name, from, to})
		}
		return to
	})
}

func (g *gate) isRead(name []byte) bool {
	for _, read := range g.reads {
		if string(name) == read {
			return true
		}
	}
	return false
}

// inner reads the value of a member that the gateway reads into.
func (g *gate) inner(i int) int {
	skip := func(depth int) func([]byte, int) int {
		return func(_ []byte, from int) int { return g.value(from, depth) }
	}
	switch g.src[i] {
	case '{':
		return g.object(i, 1, skip(2))
	case '[':
		element := skip(3)
		if i = g.space(i + 1); i < len(g.src) && g.src[i] == ']' {
			return i + 1
		}
		for {
			if i < len(g.src) && g.src[i] == '{' {
				i = g.object(i, 1, element)
			} else {
				i = g.value(i, 2)
			}
			if i == invalid {
				return invalid
			}
			if i = g.space(i); i >= len(g.src) || g.src[i] != ',' {
				break
			}
			i = g.space(i + 1)
		}
		if i >= len(g.src) || g.src[i] != ']' {
			return g.bad(i)
		}
		return i + 1
	}
	return g.value(i, 1)
}

// object reads the object at i and notes repeated keys. level says which set
// of names it uses; value reads the value of a member.
func (g *gate) object(i, level int, value func(name []byte, from int) int) int {
	seen := &g.names[level]
	seen.reset()
	if i = g.space(i + 1); i < len(g.src) && g.src[i] == '}' {
		return i + 1
	}
	for {
		from := i
		if i = g.key(i); i == invalid {
			return invalid
		}
		name := unquoteKey(g.src, from)
		switch {
		case !seen.add(name):
			if !g.repeats {
				g.repeats, g.repeated = true, string(name[:min(len(name), 64)])
			}
		case seen.size() > maxMembers:
			g.tooMany = true
		}
		if i = value(name, i); i == invalid {
			return invalid
		}
		if i = g.space(i); i >= len(g.src) || g.src[i] != ',' {
			break
		}
		i = g.space(i + 1)
	}
	if i >= len(g.src) || g.src[i] != '}' {
		return g.bad(i)
	}
	return i + 1
}

// unquoteKey returns the string that begins at from in src without its
// escapes. It has passed the scanner.
func unquoteKey(src []byte, from int) []byte {
	end := skipText(src, from)
	raw := src[from:end]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return []byte(unquote(raw))
}

// unquote returns the text of a JSON string that is given with its quotes.
func unquote(raw []byte) string {
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

// names is a set of keys: a short list, and a map once it is long. It never
// grows past maxMembers+1.
type names struct {
	few  [][]byte
	many map[string]struct{}
}

func (n *names) reset() {
	n.few = n.few[:0]
	if len(n.many) > 0 {
		n.many = nil
	}
}

func (n *names) size() int { return max(len(n.few), len(n.many)) }

// add returns false when the name was there already.
func (n *names) add(name []byte) bool {
	const few = 24
	if len(n.many) == 0 {
		for _, other := range n.few {
			if bytes.Equal(other, name) {
				return false
			}
		}
		if len(n.few) < few {
			n.few = append(n.few, name)
			return true
		}
		n.many = make(map[string]struct{}, 2*few)
		for _, other := range n.few {
			n.many[string(other)] = struct{}{}
		}
	}
	if _, ok := n.many[string(name)]; ok {
		return false
	}
	if len(n.many) <= maxMembers {
		n.many[string(name)] = struct{}{}
	}
	return true
}
