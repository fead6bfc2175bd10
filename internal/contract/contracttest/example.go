package contracttest

import (
	"encoding/json"
	"strings"
)

// Examples checks every JSON example of the contracts and returns the faults by place.
func Examples() (map[string]error, error) {
	c, err := New()
	if err != nil {
		return nil, err
	}
	found, done := map[string]error{}, map[string]bool{}
	for _, o := range c.operations {
		if !done[o.document] {
			done[o.document] = true
			c.examples(o.document+"#", o.top, found)
		}
	}
	return found, nil
}

func (c *Checker) examples(at string, v any, found map[string]error) {
	switch v := v.(type) {
	case map[string]any:
		if example, ok := v["example"]; ok && v["schema"] != nil {
			found[at] = c.example(at, example)
		}
		for name, value := range v {
			if name != "example" {
				c.examples(at+"/"+escape(name), value, found)
			}
		}
	case []any: // lists of schemas and parameters: the latter's examples are checked where they are named
		return
	}
}

// example checks one example; streams are checked by event.
func (c *Checker) example(at string, example any) error {
	if text, ok := example.(string); ok && strings.HasSuffix(at, "text~1event-stream") {
		return c.stream(at+"/x-event-schema", Answer{Body: []byte(text)})
	}
	raw, err := json.Marshal(example)
	if err != nil {
		return err
	}
	return c.validate(at+"/schema", raw)
}
