package chat

import (
	"errors"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
)

// TestOtherShapesAreNotPassedOn checks that values of unexpected shape are not sent, because the
// checks find nothing in them but a provider may.
func TestOtherShapesAreNotPassedOn(t *testing.T) {
	t.Parallel()
	rest := map[wire.Form]string{
		wire.FormChat:      `"messages":[{"role":"user","content":"x"}]`,
		wire.FormResponses: `"input":"x"`,
		wire.FormMessages:  `"max_tokens":5,"messages":[{"role":"user","content":"x"}]`,
	}
	refusal := func(form wire.Form, member string) (*fault.Error, error) {
		body := []byte("{" + rest[form] + "," + member + "}")
		var r interface {
			wire.Request
			Check() error
		}
		var err error
		switch form {
		case wire.FormChat:
			r, err = completions.Open(body)
		case wire.FormResponses:
			r, err = responses.Open(body)
		default:
			r, err = messages.Open(body)
		}
		if err == nil {
			err = r.Check()
		}
		if err == nil {
			m := &catalog.Model{ID: "m"}
			choice, _ := m.ChoiceOf(r.Params(), 0)
			err = m.CheckPriced(choice)
		}
		var f *fault.Error
		errors.As(err, &f)
		return f, err
	}
	for form := range rest {
		for member, param := range map[string]string{
			`"tools":{"type":"web_search"}`: "tools", `"tools":{"0":{"type":"web_search"}}`: "tools", `"tools":"web_search"`: "tools",
			`"tools":true`: "tools", `"\u0074ools":7`: "tools",
			`"modalities":"audio"`: "modalities", `"modalities":"image"`: "modalities", `"modalities":{"0":"image"}`: "modalities",
			`"modalities":["video"]`: "modalities", `"modalities":[" image"]`: "modalities", `"modalities":[["image"]]`: "modalities",
			`"modalities":["IMAGE"]`: "modalities", `"modalities":["text",null]`: "modalities",
		} {
			if f, err := refusal(form, member); f == nil || f.Code != fault.InvalidRequest || f.Param != param {
				t.Errorf("%s: %s: %v", form, member, err)
			}
		}
		for _, member := range []string{
			`"tools":[]`, `"tools":null`, `"modalities":["text"]`, `"modalities":["TEXT"]`, `"modalities":[]`, `"modalities":null`,
		} {
			if _, err := refusal(form, member); err != nil {
				t.Errorf("%s: %s: %v", form, member, err)
			}
		}
	}
	if _, err := refusal(wire.FormResponses, `"tools":[{"type":"namespace","name":"n","tools":{"type":"web_search"}}]`); err == nil {
		t.Error("tools of a namespace that are no list pass")
	}
}
