package contracttest

import (
	"encoding/json"
	"strings"
)

// Examples checks every JSON example of the contracts. It returns the result of each example by its place in a
// contract; a valid example has a nil error.
func Examples() (map[string]error, error) {
	c, err := New()
	if err != nil {
		return nil, err
	}
	results, done := map[string]error{}, map[string]bool{}
	for _, o := range c.operations {
		if !done[o.document] {
			done[o.document] = true
			c.examples(o.document+"#", o.top, results)
		}
	}
	return results, nil
}

// examples checks the examples in v and its members.
func (c *Checker) examples(path string, v any, results map[string]error) {
	switch v := v.(type) {
	case map[string]any:
		if example, ok := v["example"]; ok && v["schema"] != nil {
			results[path] = c.example(path, example)
		}
		for name, value := range v {
			if name != "example" {
				c.examples(path+"/"+escape(name), value, results)
			}
		}
	case []any: // lists have schemas and parameters; a parameter's example is checked at its definition
		return
	}
}

// example checks one example. Each event of a stream is checked.
func (c *Checker) example(path string, example any) error {
	if text, ok := example.(string); ok && strings.HasSuffix(path, "text~1event-stream") {
		return c.stream(path+"/x-event-schema", Answer{Body: []byte(text)})
	}
	raw, err := json.Marshal(example)
	if err != nil {
		return err
	}
	return c.validate(path+"/schema", raw)
}
