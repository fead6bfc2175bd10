package chat

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
)

// fieldsDocument lists every known field and its handling. TestEveryField writes it with -update.
const fieldsDocument = "../../docs/fields.md"

// shapes has a JSON value of each type that a field may have.
var shapes = []string{`true`, `"on"`, `7`, `{"on":true}`, `[{"on":true}]`}

// How the gateway handles a field on a model without prices for options and tools.
const (
	forwarded = "forwarded"
	owned     = "read by the gateway"
	refused   = "refused"
)

// TestEveryField sends every known field, in its own and in other cases, to a model without prices
// for options. A field that can cost more must be refused, and any other field must be forwarded.
// The results must match the document.
func TestEveryField(t *testing.T) {
	t.Parallel()
	x := chatRequest{Conductor: New(call.New(call.Options{}), Options{}), AcceptedRequest: chatCall(t, snapshot(t), ask)}
	bare := *x.Model
	bare.Price.Options, bare.Price.Tools = nil, nil
	x.Model = &bare
	got := map[string]string{} // by form and field
	for _, form := range field.Forms() {
		table := field.Form(form)
		for _, name := range table.Names() {
			rule := table.Find([]byte(name))
			got[form+" "+name] = handlingOf(t, x, form, rule)
			wrong := otherCases(name)
			for _, inner := range rule.Inner {
				got[form+" "+inner.Name] = handlingOf(t, x, form, inner)
				for _, spelling := range otherCases(strings.TrimPrefix(inner.Name, name+".")) {
					wrong = append(wrong, name+"."+spelling)
				}
			}
			for _, spelling := range wrong {
				err := checkField(x, form, spelling, `true`)
				if f := fault.Of(err); err == nil || f.Code != fault.InvalidRequest || f.Param != spelling {
					t.Errorf("%s: %s in place of a field of %s: got %v, want invalid_request for %s", form, spelling, name, err, spelling)
				}
			}
		}
		if err := checkField(x, form, "frobnicate", `true`); err != nil {
			t.Errorf("%s: an unknown field is refused: %v", form, err)
		}
	}
	document := describeFields(got)
	if *update {
		if err := os.WriteFile(fieldsDocument, document, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if current, err := os.ReadFile(fieldsDocument); err != nil || !bytes.Equal(current, document) {
		t.Errorf("docs/fields.md differs from the field tables: run the test with -update (%v)", err)
	}
}

// TestSwitchesOfHostedTools checks that only a documented switch turns a hosted tool off. Any other
// value of a field of class tool requests the tool.
func TestSwitchesOfHostedTools(t *testing.T) {
	t.Parallel()
	x := chatRequest{Conductor: New(call.New(call.Options{}), Options{}), AcceptedRequest: chatCall(t, snapshot(t), ask)}
	bare := *x.Model
	bare.Price.Tools = nil
	x.Model = &bare
	modeOff := []string{`{"mode":"off"}`, `{"enable":true,"mode":"off"}`, `{"mode":"off","sources":[{"type":"web"}]}`}
	switches := append([]string{`{"enabled":false}`, `{"enable":false}`, `{"disabled":true}`, `{"enabled":"false"}`,
		`{"type":"off"}`, `[]`, `{}`, `0`, `""`, `"off"`, `"false"`, `"mode=off"`,
		`{"sources":[],"x":{"mode":"off"}}`, `{"mode":false}`}, modeOff...)
	for _, form := range field.Forms() {
		table := field.Form(form)
		for _, name := range table.Names() {
			rule := table.Find([]byte(name))
			if rule.Class != field.Tool {
				continue
			}
			for _, value := range switches {
				documented := name == "search_parameters" && slices.Contains(modeOff, value)
				err := checkField(x, form, name, value)
				if f := fault.Of(err); documented != (err == nil) || err != nil && (f.Code != fault.InvalidRequest || f.Param != name) {
					t.Errorf("%s: %s: %s: got %v, want the tool on: %v", form, name, value, err, !documented)
				}
			}
		}
	}
}

// otherCases returns spellings of a name in other cases.
func otherCases(name string) []string {
	all := []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], strings.ToLower(name), strings.Replace(name, "s", "ſ", 1)}
	return slices.DeleteFunc(all, func(spelling string) bool { return spelling == name })
}

// handlingOf returns how the gateway handles a field. It fails the test if the handling does not
// match the class of the field.
func handlingOf(t *testing.T, x chatRequest, form string, rule *field.FieldRule) string {
	t.Helper()
	accepted := 0
	for _, value := range shapes {
		if err := checkField(x, form, rule.Name, value); err == nil {
			accepted++
		} else if f := fault.Of(err); f.Status() != 400 {
			t.Errorf("%s: %s: %s: %v", form, rule.Name, value, err)
		}
	}
	outer, _, nested := strings.Cut(rule.Name, ".")
	if table := field.Form(form); nested && table.Find([]byte(outer)).Class == field.Tool {
		return refused // with the tool
	}
	for _, free := range rule.FreeValues {
		value := free
		if member, text, nested := strings.Cut(free, "="); nested {
			value = fmt.Sprintf(`{"%s":"%s"}`, member, text)
		} else if free != "false" {
			value = `"` + free + `"`
		}
		if err := checkField(x, form, rule.Name, value); err != nil {
			t.Errorf("%s: %s: the free value %s is refused: %v", form, rule.Name, value, err)
		}
	}
	switch rule.Class {
	case field.Owned:
		return owned
	case field.Free, field.Effort:
		if accepted == 0 || rule.Class == field.Free && accepted != len(shapes) {
			t.Errorf("%s: %s costs nothing, but only %d of %d values are accepted", form, rule.Name, accepted, len(shapes))
		}
		return forwarded
	}
	if accepted > 0 {
		t.Errorf("%s: %s can cost more, but %d of %d values are accepted", form, rule.Name, accepted, len(shapes))
	}
	return refused
}

// checkField returns the error for a request with a field, up to the checks before admission.
func checkField(x chatRequest, form, name, value string) error {
	member := fmt.Sprintf(`"%s":%s`, name, value)
	if outer, inner, nested := strings.Cut(name, "."); nested {
		member = fmt.Sprintf(`"%s":{"%s":%s}`, outer, inner, value)
	}
	rest := map[string]string{
		"chat":      `"model":"swift-1","messages":[{"role":"user","content":"x"}]`,
		"responses": `"model":"swift-1","input":"x"`,
		"messages":  `"model":"swift-1","max_tokens":5,"messages":[{"role":"user","content":"x"}]`,
	}[form]
	if strings.Contains(rest, `"`+name+`":`) {
		return nil // the request has this required field already
	}
	request, err := open(wire.Form(form), "{"+rest+","+member+"}")
	if err != nil {
		return err
	}
	x.Form, x.params = wire.Form(form), request.Params()
	x.choice, x.routing = x.Model.PricingOf(x.params, 0)
	return x.checkRouting()
}

// fieldsIntroduction is the beginning of the document.
const fieldsIntroduction = `# Fields of chat requests

These tables list every top-level field that a reference documents, and what the gateway does
with it on a model without prices for options and hosted tools. A test sends each field, as it
is and in wrong case, and writes the tables. [operator.md](operator.md#catalog) says which
fields a line gets.

- **forwarded**: the field is sent to the provider and costs nothing. A vendor's field is sent
  to lines of that vendor and to hosts of unknown vendors.
- **read by the gateway**: the gateway checks, limits or replaces the field or a part of it.
- **refused**: the request gets 400 invalid_request. The class says what allows the field:
  - option: a price under the model's "options"
  - costs: a price under "options", or "pass" on the line
  - tool: a price for the hosted tool on the model
  - later, stored: nothing; no line gets the field. The gateway itself continues a stored response by
    previous_response_id of the responses form

A field of class effort is forwarded, and a model may have prices for its values. A field in
another case is refused. A field in no table is left out, and the answer's header
x-tollgate-ignored names it.
`

// describeFields returns the document for the handling of fields, keyed by form and field.
func describeFields(handling map[string]string) []byte {
	var out bytes.Buffer
	out.WriteString(fieldsIntroduction)
	for _, form := range field.Forms() {
		fmt.Fprintf(&out, "\n## Fields of the %s form\n\n", form)
		out.WriteString("| field | class | result | free values |\n|---|---|---|---|\n")
		table := field.Form(form)
		for _, name := range table.Names() {
			rule := table.Find([]byte(name))
			rules := append([]*field.FieldRule{rule}, rule.Inner...)
			for _, r := range rules {
				if r.Documented {
					fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", r.Name, className(r), handling[form+" "+r.Name], freeValues(r))
				}
			}
		}
	}
	out.WriteString("\n## Fields of vendors and engines\n\n| field | documented by | class | result | free values |\n|---|---|---|---|---|\n")
	by := map[string][]string{}
	for _, v := range field.Vendors() {
		for _, r := range v.Fields {
			by[r.Name] = append(by[r.Name], v.Name)
		}
	}
	table := field.Form("chat")
	for _, name := range table.Names() {
		rule := table.Find([]byte(name))
		for _, r := range append([]*field.FieldRule{rule}, rule.Inner...) {
			if !r.Documented && by[r.Name] != nil {
				fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", r.Name, strings.Join(by[r.Name], ", "), className(r),
					handling["chat "+r.Name], freeValues(r))
			}
		}
	}
	return out.Bytes()
}

func className(r *field.FieldRule) string {
	if r.Class == field.Tool {
		return "tool `" + r.Tool + "`"
	}
	return r.Class.String()
}

func freeValues(r *field.FieldRule) string {
	out := make([]string, 0, len(r.FreeValues))
	for _, value := range r.FreeValues {
		out = append(out, "`"+value+"`")
	}
	return strings.Join(out, ", ")
}
