package wire

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// maxMembers is how many members a body may have.
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
// unescaping) in any object of it. Other readers may take another of two equal
// keys than we do, so a repeated key could pass one thing by our checks and
// another to the provider.
func open(body []byte) (*document, error) {
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidEncoding, "The request body is not valid UTF-8. Send JSON encoded in UTF-8, not compressed.")
	}
	seen := openKeys{keys: make([]openKey, 0, 16), objects: make([]int, 0, 8), seed: maphash.MakeSeed()}
	g := gate{scanner: scanner{src: body, seen: &seen}}
	from := g.space(0)
	object := from < len(body) && body[from] == '{'
	if object {
		g.members = make([]member, 0, 16)
		from = g.top(from)
	} else {
		from = g.value(from, 0)
	}
	if from != invalid {
		if from = g.space(from); from < len(body) {
			from = g.bad(from)
		}
	}
	switch {
	case from == invalid && len(bytes.TrimSpace(body)) == 0:
		return nil, fault.New(fault.InvalidJSON, "The request body is empty. Send a JSON object.")
	case from == invalid && g.fail >= len(body):
		return nil, fault.New(fault.InvalidJSON, "The request body is not valid JSON: it ends too early.")
	case from == invalid:
		return nil, fault.New(fault.InvalidJSON, "The request body is not valid JSON: unexpected character at byte %d.", g.fail)
	case !object:
		return nil, fault.New(fault.InvalidRequest, "The request body must be a JSON object.")
	case seen.repeated > 0:
		return nil, fault.New(fault.InvalidJSON, "The request body has the key `%s` more than once. Send each key once.", pathTo(body, seen.repeated))
	case len(g.members) > maxMembers:
		return nil, fault.New(fault.InvalidRequest, "The request has more than %d keys.", maxMembers)
	case seen.tooMany:
		return nil, fault.New(fault.InvalidRequest, "An object of the request has more than %d keys, with those of the objects around it.", maxOpenKeys)
	}
	return &document{body: body, members: g.members, from: g.space(0)}, nil
}

// gate is the scanner with what it finds on its way.
type gate struct {
	scanner
	members []member // no more than one too many
}

// top reads the top-level object at i.
func (g *gate) top(i int) int {
	g.seen.enter()
	if i = g.space(i + 1); i < len(g.src) && g.src[i] == '}' {
		return i + 1
	}
	for {
		name := i
		if i = g.key(i); i == invalid {
			return invalid
		}
		from := i
		if i = g.value(from, 1); i == invalid {
			return invalid
		}
		if len(g.members) <= maxMembers {
			g.members = append(g.members, member{unquoteKey(g.src, name), from, i})
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
