// Package rawjson owns JSON as raw bytes: the check of a body in one pass, with a list of its
// members, iterators over values in place, edits of single members in place, and the writing of new
// JSON in pieces. The meaning of members is left to its users.
//
// Invariants: a body accepted by Open is strict JSON in UTF-8 without repeated keys; iterators
// and edits never panic or read past the end, whatever the bytes; nothing is decoded and encoded
// again, so unedited bytes are unchanged; every reader of a stranger's bytes has a limit.
package rawjson

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// maxMembers is the largest number of members of a body.
const maxMembers = 4096

// providerDepth is the number of levels a provider may add around parts of a request.
const providerDepth = maxDepth - maxRequestDepth

// Member is one member of an object: its name without escapes, and the bounds of its value.
type Member struct {
	Name     []byte
	From, To int
}

// RequestBody is a JSON object accepted by Open.
type RequestBody struct {
	Body    []byte
	Members []Member
	from    int // of the opening brace
	matches []int
	similar *KeyConflict

	hasPrefix    bool
	mayHaveFiles bool
}

// Raw returns the value of a top-level member, or nil if it is absent or null.
func (d *RequestBody) Raw(name string) []byte {
	if m := d.Find(name); m != nil && d.Body[m.From] != 'n' {
		return d.Body[m.From:m.To]
	}
	return nil
}

// Find returns a top-level member, even if it is null.
func (d *RequestBody) Find(name string) *Member {
	for i := range d.Members {
		if string(d.Members[i].Name) == name {
			return &d.Members[i]
		}
	}
	return nil
}

// Open checks a request body in one pass. It returns an error unless the body is UTF-8 and strict
// JSON, and an object, and no object in it has a key twice (after unescaping). Readers differ in
// the choice between two equal keys, so a repeated key could pass one value through our checks and
// give the provider another.
func Open(body []byte) (*RequestBody, error) { return open(body, nil) }

// OpenWatching is like Open, and also looks for the keys of rules.
func OpenWatching(body []byte, rules KeyRules) (*RequestBody, error) {
	return open(body, &keyWatch{KeyRules: rules})
}

func open(body []byte, watch *keyWatch) (*RequestBody, error) {
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidEncoding, "The request body is not valid UTF-8. Send JSON encoded in UTF-8, not compressed.")
	}
	seen := openKeys{keys: make([]openKey, 0, 16), objects: make([]int, 0, 8), seed: maphash.MakeSeed(), watch: watch}
	g := gate{scanner: scanner{src: body, seen: &seen}}
	if watch != nil {
		g.prefixes = [2]string{watch.Prefix, watch.FilePrefix}
	}
	from := g.space(0)
	object := from < len(body) && body[from] == '{'
	if object {
		g.members = make([]Member, 0, 16)
		from = g.top(from)
	} else {
		from = g.value(from, providerDepth)
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
	case watch != nil && watch.tooMany:
		return nil, fault.New(fault.InvalidRequest,
			"The request has more than %d addresses, or an object of it more than %d keys with capital letters.", maxMatches, maxCapitals)
	}
	d := &RequestBody{Body: body, Members: g.members, from: g.space(0), hasPrefix: g.has[0]}
	if watch != nil {
		d.matches, d.similar, d.mayHaveFiles = watch.matches, watch.similar, watch.fileKey || g.has[1]
	}
	return d, nil
}

// gate is a scanner that collects the members of the body.
type gate struct {
	scanner
	members []Member // at most maxMembers+1
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
		if i = g.value(from, providerDepth+1); i == invalid {
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
