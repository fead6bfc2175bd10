// Package rawjson owns JSON as raw bytes: the gate that checks a body in one
// pass and notes where its members lie, the walkers that read values where they
// stand, the edits that replace single members in place, and the texts and
// pieces of which new JSON is written. It knows no form: which members mean what
// is for its users to say.
//
// Invariants: what passed the gate is strict JSON in UTF-8 with no key repeated
// in any object; walkers and edits never panic and never read past the end,
// whatever bytes they are given; nothing is decoded and encoded again, so that
// what nobody edits stays as it came; every reader of strangers' bytes has a
// limit.
package rawjson

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// maxMembers is how many members a body may have.
const maxMembers = 4096

// around is how many levels a provider may put around what it repeats of a request.
const around = maxDepth - maxRequestDepth

// Member is one member of an object: its name without escapes, and where its
// value stands in the body.
type Member struct {
	Name     []byte
	From, To int
}

// RequestBody is a JSON object that passed the gate.
type RequestBody struct {
	Body    []byte
	Members []Member
	from    int // the opening brace
	noted   []int
	alike   *Alike
}

// Raw returns the value of a top-level member, nil when it is absent or null
// (null means absent).
func (d *RequestBody) Raw(name string) []byte {
	if m := d.Find(name); m != nil && d.Body[m.From] != 'n' {
		return d.Body[m.From:m.To]
	}
	return nil
}

// Find returns a top-level member, also one that is null.
func (d *RequestBody) Find(name string) *Member {
	for i := range d.Members {
		if string(d.Members[i].Name) == name {
			return &d.Members[i]
		}
	}
	return nil
}

// Open is the gate: it reads a request body in one pass and refuses what is
// not UTF-8, not strict JSON, not an object, or repeats a key (after
// unescaping) in any object of it. Other readers may take another of two equal
// keys than we do, so a repeated key could pass one thing by our checks and
// another to the provider.
func Open(body []byte) (*RequestBody, error) { return open(body, nil) }

// OpenWatching is Open that also looks for the keys of rules.
func OpenWatching(body []byte, rules KeyRules) (*RequestBody, error) {
	return open(body, &watched{KeyRules: rules})
}

func open(body []byte, found *watched) (*RequestBody, error) {
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidEncoding, "The request body is not valid UTF-8. Send JSON encoded in UTF-8, not compressed.")
	}
	seen := openKeys{keys: make([]openKey, 0, 16), objects: make([]int, 0, 8), seed: maphash.MakeSeed(), watched: found}
	g := gate{scanner: scanner{src: body, seen: &seen}}
	from := g.space(0)
	object := from < len(body) && body[from] == '{'
	if object {
		g.members = make([]Member, 0, 16)
		from = g.top(from)
	} else {
		from = g.value(from, around)
	}
	if from != invalid {
		if from = g.space(from); from < len(body) {
			from = g.bad(from)
		}
	}
	switch {
	case from == invalid && len(bytes.TrimSpace(body)) == 0:
		return nil, fault.New(fault.InvalidJSON, "The request body is empty. Send a JSON object.")
	case g.deep:
		return nil, fault.New(fault.InvalidJSON, "The request body nests deeper than %d levels, at byte %d.", maxRequestDepth, g.fail)
	case from == invalid && g.fail >= len(body):
		return nil, fault.New(fault.InvalidJSON, "The request body is not valid JSON: it ends too early.")
	case from == invalid:
		return nil, fault.New(fault.InvalidJSON, "The request body is not valid JSON: unexpected character at byte %d.", g.fail)
	case !object:
		return nil, fault.New(fault.InvalidRequest, "The request body must be a JSON object.")
	case seen.repeated > 0:
		return nil, fault.New(fault.InvalidJSON, "The request body has the key `%s` more than once. Send each key once.",
			pathTo(body, seen.repeated))
	case len(g.members) > maxMembers:
		return nil, fault.New(fault.InvalidRequest, "The request has more than %d keys.", maxMembers)
	case seen.tooMany:
		return nil, fault.New(fault.InvalidRequest,
			"An object of the request has more than %d keys, with those of the objects around it.", maxOpenKeys)
	case found != nil && found.tooMany:
		return nil, fault.New(fault.InvalidRequest,
			"The request has more than %d addresses, or an object of it more than %d keys with capital letters.", maxNoted, maxCapitals)
	}
	d := &RequestBody{Body: body, Members: g.members, from: g.space(0)}
	if found != nil {
		d.noted, d.alike = found.noted, found.alike
	}
	return d, nil
}

// gate is the scanner with what it finds on its way.
type gate struct {
	scanner
	members []Member // no more than one too many
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
		if i = g.value(from, around+1); i == invalid {
			return invalid
		}
		if len(g.members) <= maxMembers {
			g.members = append(g.members, Member{unquoteKey(g.src, name), from, i})
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
