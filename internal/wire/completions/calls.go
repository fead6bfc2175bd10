package completions

import (
	"bytes"
	"errors"

	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// call is a tool call. Its arguments wait until its name has arrived.
type call struct {
	output    *conversation.Output
	key       int64
	id        string // the provider's, may be empty
	arguments argumentScanner
	waiting   []byte
	// placeholder is set if the first delta held whole arguments. If they are `{}`, the real arguments may
	// follow.
	placeholder bool
	started     bool
	ended       bool
}

// hasPlaceholder reports whether a call has no arguments except for `{}` at its start.
func (c *call) hasPlaceholder() bool { return c.placeholder && c.arguments.state() == bare }

// delta is the start of a call, or a piece of its arguments.
type delta struct {
	// key is the index, or the position among the calls of the message if hasIndex is false.
	key      int64
	hasIndex bool
	together bool // the message has several calls
	rawID    []byte
	id       string
	// name and arguments are the contents of JSON strings.
	name, arguments []byte
	signature       conversation.Signature
}

// The errors of arguments whose call is not certain.
var (
	errAmbiguous = errors.New("arguments without an id may belong to several tool calls")
	errLate      = errors.New("arguments came after the end of their tool call")
)

// find returns the call of a delta, or nil if the delta starts one. Some vendors number every call 0,
// some send no index, and some begin with `{}` before the arguments. It returns errAmbiguous if two
// calls wait for arguments and the delta does not name its call.
func (d *delta) find(calls []*call) (*call, error) {
	var memory [4]*call
	same := memory[:0] // the calls with the delta's number, the newest first
	for i := len(calls) - 1; i >= 0; i-- {
		c := calls[i]
		if d.id != "" && c.id == d.id && (!d.hasIndex && !d.together || c.key == d.key) {
			return c, nil
		}
		if d.numbers(c) {
			same = append(same, c)
		}
	}
	switch {
	case len(same) == 0 && (d.name != nil || d.id != "" || d.hasIndex || len(calls) == 0):
		return nil, nil
	case len(same) == 0:
		same = calls[len(calls)-1:]
	}
	switch {
	case d.name != nil && same[0].output.Name != nil:
		if d.starts(same[0]) {
			return nil, nil
		}
		return same[0], nil
	case d.id != "" || len(same) == 1 || conversation.IsBlank(d.arguments):
		return same[0], nil
	}
	return d.continues(same)
}

// numbers reports whether a delta has the number of a call.
func (d *delta) numbers(c *call) bool {
	if d.hasIndex || d.together || d.key < 0 {
		return c.key == d.key
	}
	return c.key >= 0
}

// starts reports whether a delta with a name starts a new call. newest is the newest call with the delta's
// number.
func (d *delta) starts(newest *call) bool {
	state := newest.arguments.state()
	switch {
	case !bytes.Equal(d.name, newest.output.Name), d.id != "" && newest.id != "":
		return true
	case d.hasIndex && d.id == "":
		return state == complete && !conversation.IsBlank(d.arguments)
	}
	return newest.arguments.isWhole()
}

// continues returns the call for a delta without a name. same are the calls with the delta's number, the
// newest first. It returns errAmbiguous if several calls are possible.
func (d *delta) continues(same []*call) (*call, error) {
	newest, state := same[0], same[0].arguments.state()
	var open *call
	for _, c := range same {
		switch before := c.arguments.state(); {
		case before == begun && open != nil, before == bare && state == complete:
			return nil, errAmbiguous
		case before == begun:
			open = c
		}
	}
	switch text := bytes.TrimSpace(rawjson.AppendUnquoted(nil, d.arguments)); {
	case open == nil || open == newest:
		return newest, nil
	case state == bare && text[0] == '{':
		return nil, errAmbiguous
	}
	return open, nil
}

// argumentScanner reads a call's arguments piece by piece to find their end.
type argumentScanner struct {
	size    int // in bytes, without white space
	depth   int
	started bool
	quoted  bool // inside a string
	escaped bool // after a backslash in a string
	scratch []byte
}

// argumentState is the progress of a call's arguments.
type argumentState int

const (
	bare     argumentState = iota // none, or `{}`, which may be a placeholder
	begun                         // not whole
	complete                      // a whole object
)

// add adds a piece, the contents of a JSON string.
func (a *argumentScanner) add(raw []byte) {
	text := raw
	if bytes.IndexByte(raw, '\\') >= 0 {
		a.scratch = rawjson.AppendUnquoted(a.scratch[:0], raw)
		text = a.scratch
	}
	for _, c := range text {
		switch {
		case a.escaped:
			a.escaped = false
		case a.quoted:
			a.escaped = c == '\\'
			a.quoted = c != '"'
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			continue
		case c == '"':
			a.quoted = true
		case c == '{' || c == '[':
			a.depth++
			a.started = true
		case c == '}' || c == ']':
			a.depth--
		}
		a.size++
	}
}

// isWhole reports whether an object has started and ended.
func (a *argumentScanner) isWhole() bool { return a.started && a.depth <= 0 && !a.quoted }

func (a *argumentScanner) state() argumentState {
	switch whole := a.isWhole(); {
	case a.size == 0, whole && a.size == len("{}"):
		return bare
	case whole:
		return complete
	}
	return begun
}
