package responses

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// previousField names the response that a request continues.
const previousField = "previous_response_id"

// Previous returns the id of the response that the request continues, or "".
func (r *Request) Previous() (string, error) {
	switch raw := r.Doc.Raw(previousField); {
	case raw == nil:
		return "", nil
	case !rawjson.IsText(raw) || len(raw) == 2:
		return "", fault.At(fault.InvalidRequest, previousField, "`{param}` must be the id of a response, as a string.")
	default:
		return rawjson.Unquote(raw), nil
	}
}

// AsksStore reports whether the client wants the answer to be stored: `store` is true or absent.
func (r *Request) AsksStore() bool {
	store := r.Doc.Raw("store")
	return store == nil || string(store) == "true"
}

// Continue returns the request with the items of earlier turns (JSON, without brackets) before its
// own, and without `previous_response_id`. An absent input has no items of its own.
func (r *Request) Continue(previous string, items []byte) (*Request, error) {
	own, err := r.OwnItems()
	if err != nil {
		return nil, err
	}
	all := append(make([]byte, 0, len(items)+len(own)+3), '[')
	all = append(all, items...)
	if len(items) > 0 && len(own) > 0 {
		all = append(all, ',')
	}
	all = append(append(all, own...), ']')
	edits := rawjson.Edits{Doc: r.Doc}
	edits.Drop(previousField)
	edits.Set("input", all)
	out, err := Open(edits.Body().Bytes())
	if err != nil {
		return nil, err
	}
	out.previous, out.text = previous, rawjson.IsText(r.Doc.Raw("input"))
	for range rawjson.Elements(append(append([]byte{'['}, items...), ']')) {
		out.earlier++
	}
	return out, nil
}

// OwnItems returns the items that the client sent as `input`, in JSON without brackets: a string is a
// message of the user.
func (r *Request) OwnItems() ([]byte, error) {
	switch input := r.Doc.Raw("input"); {
	case input == nil:
		return nil, nil
	case input[0] == '"':
		return rawjson.Put(nil, `{"type":"message","role":"user","content":`, input, "}"), nil
	case input[0] == '[':
		return bytes.TrimSpace(input[1 : len(input)-1]), nil
	}
	return nil, inputError()
}

// inputError returns the error for an `input` of a wrong type.
func inputError() error {
	return fault.At(fault.InvalidRequest, "input", "`input` must be a string or an array of items.")
}

// previousJSON returns the echo of `previous_response_id`.
func (r *Request) previousJSON() []byte {
	if r.previous == "" {
		return []byte("null")
	}
	return rawjson.Quote(r.previous)
}

// ClientParam returns the client's path of a field of a request made by Continue: items of earlier
// turns came by `previous_response_id`, and the client's own are numbered from 0.
func (r *Request) ClientParam(param string) string {
	rest, ok := strings.CutPrefix(param, "input[")
	if !ok || r.previous == "" {
		return param
	}
	number, rest, _ := strings.Cut(rest, "]")
	switch n, err := strconv.Atoi(number); {
	case err != nil:
		return param
	case n < r.earlier:
		return previousField
	case r.text:
		return "input"
	default:
		return fmt.Sprintf("input[%d]%s", n-r.earlier, rest)
	}
}

// SplitAnswer splits a response of the form into the object with an empty `output`, and its items
// without brackets. ok is false if answer is not a JSON object.
func SplitAnswer(answer []byte) (object, output []byte, ok bool) {
	answer = rawjson.Object(answer)
	if answer == nil {
		return nil, nil, false
	}
	for m := range rawjson.Spans(answer) {
		if value := answer[m.From:m.To]; string(m.Name) == "output" && value[0] == '[' {
			object = rawjson.Replace(answer, []rawjson.Splice{{From: m.From, To: m.To, Text: []byte("[]")}})
			return object, bytes.TrimSpace(value[1 : len(value)-1]), true
		}
	}
	return answer, nil, true
}

// JoinAnswer is the inverse of SplitAnswer.
func JoinAnswer(object, output []byte) rawjson.Pieces {
	for m := range rawjson.Spans(object) {
		if string(m.Name) == "output" && object[m.From] == '[' {
			return rawjson.Pieces{object[:m.From+1], output, object[m.To-1:]}
		}
	}
	return rawjson.Pieces{object}
}

// ListedItem is an input item of a stored response.
type ListedItem struct {
	ID   string
	JSON []byte
}

// ListedItems returns the items of turns, in JSON without brackets, as a list of input items shows them: with
// a type and an id, and the content of messages as parts. No two ids are equal. turns yields groups of items
// in order. The name of each group must be unique, because ids are derived from it.
func ListedItems(turns func(yield func(name string, items []byte) bool)) []ListedItem {
	var list []ListedItem
	seen := map[string]bool{}
	turns(func(name string, items []byte) bool {
		n := 0
		for _, item := range rawjson.Elements(append(append([]byte{'['}, items...), ']')) {
			n++
			read := readItem(item)
			id := rawjson.Unquote(read.id)
			if id == "" || seen[id] {
				id = itemPrefix(rawjson.Unquote(read.kind)) + strings.TrimPrefix(name, "resp_") + strconv.Itoa(n)
			}
			seen[id] = true
			list = append(list, ListedItem{id, listed(item, read, id)})
		}
		return true
	})
	return list
}

// itemPrefix returns the prefix of ids of a type of items.
func itemPrefix(kind string) string {
	switch kind {
	case "", "message":
		return "msg_"
	case "function_call":
		return "fc_"
	case "reasoning":
		return "rs_"
	case "custom_tool_call":
		return "ctc_"
	}
	return "item_"
}

// listed returns an item as a list of input items shows it.
func listed(item []byte, read inputItem, id string) []byte {
	out := rawjson.Put(nil, `{"id":`, rawjson.Quote(id), "")
	message := read.kind == nil
	if message {
		out = append(out, `,"type":"message"`...)
	}
	message = message || rawjson.Unquote(read.kind) == "message"
	status := false
	for name, value := range rawjson.Members(item) {
		switch string(name) {
		case "id":
			continue
		case "status":
			status = true
		case "type":
			if read.kind == nil {
				continue
			}
		case "content":
			if message && rawjson.IsText(value) {
				part := `[{"type":"input_text","text":`
				if rawjson.Unquote(read.role) == "assistant" {
					part = `[{"type":"output_text","annotations":[],"text":`
				}
				value = rawjson.Put(nil, part, value, "}]")
			}
		}
		out = append(append(append(out, ','), rawjson.Quote(string(name))...), ':')
		out = append(out, value...)
	}
	if !status {
		out = append(out, `,"status":"completed"`...)
	}
	return append(out, '}')
}
