package wire

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// TestEveryGateLooksIntoAllObjects: each body that can go to a provider.
func TestEveryGateLooksIntoAllObjects(t *testing.T) {
	t.Parallel()
	gates := map[string]func([]byte) error{
		"chat":      func(b []byte) error { _, err := OpenChat(b); return err },
		"responses": func(b []byte) error { _, err := OpenResponses(b); return err },
		"messages":  func(b []byte) error { _, err := OpenMessages(b); return err },
		"images":    func(b []byte) error { _, err := OpenImage(b); return err },
		"videos":    func(b []byte) error { _, err := OpenVideo(b); return err },
	}
	for path, body := range map[string]string{
		"input[0].content[1].type": `{"input":[{"content":[{"type":"input_text"},{"type":"input_text","text":"x","typ\u0065":"input_file","file_id":"f"}]}]}`,
		"tools[0].type":            `{"tools":[{"type":"function","name":"f","type":"web_search"}]}`,
		"tools[0].tools[1].type":   `{"tools":[{"type":"namespace","tools":[1,{"type":"function","type":"web_search"}]}]}`,
		"search_parameters.mode":   `{"search_parameters":{"mode":"off","mode":"on"}}`,
		"source.type":              `{"source":{"type":"text","data":"{},[]:","type":"file"}}`,
		"x.a.b":                    `{"x":{"a":{"c":[1,2,{"b":1}],"b":1,"b":2}}}`,
		"x.":                       `{"x":{"":1,"":2}}`,
		"model":                    `{"model":"a","model":"b"}`,
	} {
		for form, open := range gates {
			err := open([]byte(body))
			if code, _ := codeOf(t, err); code != fault.InvalidJSON || !strings.Contains(err.Error(), "`"+path+"`") {
				t.Errorf("%s, %s: %v, want the path %s", form, body, err, path)
			}
		}
	}
}

// checks are the checks of all bodies, each on a good one with one more member.
func checks() map[string]func(member string) error {
	with := func(body, member string) []byte { return []byte(strings.Replace(body, "{", "{"+member+",", 1)) }
	return map[string]func(string) error{
		"chat": func(m string) error {
			r, err := OpenChat(with(`{"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"responses": func(m string) error {
			r, err := OpenResponses(with(`{"input":"x"}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"messages": func(m string) error {
			r, err := OpenMessages(with(`{"max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"a count": func(m string) error {
			r, err := OpenMessages(with(`{"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.CheckCount()
			}
			return err
		},
		"images": func(m string) error {
			r, err := OpenImage(with(`{"prompt":"x"}`, m))
			if err == nil {
				err = r.Check(false)
			}
			return err
		},
		"videos": func(m string) error {
			r, err := OpenVideo(with(`{"prompt":"x"}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
	}
}
