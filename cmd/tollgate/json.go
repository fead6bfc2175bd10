package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// object is a JSON object with its members in the order of the text. Values are nil,
// bool, string, json.Number, object, or []any with such values.
type object []member

type member struct {
	name  string
	value any
}

// get returns the value of a member, or nil if there is no such member.
func (o object) get(name string) any {
	if i := slices.IndexFunc(o, func(m member) bool { return m.name == name }); i >= 0 {
		return o[i].value
	}
	return nil
}

func parseJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readValue(d)
	if err != nil {
		return nil, fmt.Errorf("the answer of the operator API is not JSON: %w", err)
	}
	return v, nil
}

func readValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return readObject(d)
	case json.Delim('['):
		return readList(d)
	}
	return token, nil
}

func readObject(d *json.Decoder) (object, error) {
	o := object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := readValue(d)
		if err != nil {
			return nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, errors.New("a member without a name")
		}
		o = append(o, member{text, value})
	}
	return o, readEnd(d)
}

func readList(d *json.Decoder) ([]any, error) {
	list := []any{}
	for d.More() {
		value, err := readValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, readEnd(d)
}

// readEnd reads the closing bracket.
func readEnd(d *json.Decoder) error {
	_, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// rowsOf returns the elements of v as objects. It returns false unless v is a list of at
// least one object, and of objects only.
func rowsOf(v any) ([]object, bool) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	rows := make([]object, len(list))
	for i := range list {
		if rows[i], ok = list[i].(object); !ok {
			return nil, false
		}
	}
	return rows, true
}

// membersOf returns the names in order, followed by the names of all other members of rows.
func membersOf(rows []object, order []string) []string {
	names := slices.Clone(order)
	for _, row := range rows {
		for _, m := range row {
			if !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
		}
	}
	return names
}
