package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

// table is a JSON object. Its members keep the order of the document.
type table []member

type member struct {
	name  string
	value any // table, []any, string, a number, bool or nil
}

var (
	errNoTable = errors.New("not an object")
	errTwice   = errors.New("stands there twice")
)

// fromYAML converts the output of the YAML reader to tables.
func fromYAML(v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		t := make(table, 0, len(v))
		for _, item := range v {
			t = t.set(fmt.Sprint(item.Key), fromYAML(item.Value))
		}
		return t
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = fromYAML(item)
		}
		return list
	}
	return v
}

// set sets a member and returns the table. An existing member keeps its place. Members after a merge key (`<<`)
// override the merged members.
func (t table) set(name string, value any) table {
	for i := range t {
		if t[i].name == name {
			t[i].value = value
			return t
		}
	}
	return append(t, member{name, value})
}

// get returns the value at a path of names, or nil if there is no value.
func (t table) get(names ...string) any {
	for i, name := range names {
		value, ok := t.find(name)
		if !ok {
			return nil
		}
		if i == len(names)-1 {
			return value
		}
		if t, ok = value.(table); !ok {
			return nil
		}
	}
	return nil
}

func (t table) find(name string) (any, bool) {
	for _, m := range t {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// table, list and text return the value at a path. They return the zero value if the value has another type.
func (t table) table(names ...string) table { v, _ := t.get(names...).(table); return v }

func (t table) list(names ...string) []any { v, _ := t.get(names...).([]any); return v }

func (t table) text(names ...string) string { v, _ := t.get(names...).(string); return v }

// without returns a copy of the table without a member.
func (t table) without(name string) table {
	out := make(table, 0, len(t))
	for _, m := range t {
		if m.name != name {
			out = append(out, m)
		}
	}
	return out
}

// join adds the members of another part. It joins objects by member, and appends lists. Any other value must be
// in one part only.
func (t table) join(more table) (table, error) {
	for _, m := range more {
		existing, found := t.find(m.name)
		if !found {
			t = append(t, m)
			continue
		}
		switch v := m.value.(type) {
		case table:
			old, ok := existing.(table)
			if !ok {
				return nil, fmt.Errorf("%s: %w", m.name, errTwice)
			}
			joined, err := old.join(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			t = t.set(m.name, joined)
		case []any:
			old, _ := existing.([]any)
			t = t.set(m.name, append(old, v...))
		default:
			return nil, fmt.Errorf("%s: %w", m.name, errTwice)
		}
	}
	return t, nil
}

// MarshalJSON implements json.Marshaler.
func (t table) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range t {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(encode(m.name))
		out.WriteByte(':')
		out.Write(encode(m.value))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encode returns v as JSON. It does not escape `<` and `&`, because people read the JSON.
func encode(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("contract: a value that is not JSON: " + err.Error()) // the YAML reader returns no such value
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
