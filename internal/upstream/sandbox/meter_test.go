package sandbox_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/sse"
)

// meter is the interface of the gateway's stream readers.
type meter interface {
	Read(sse.Event) (wire.Frame, error)
	Usage() (wire.Usage, bool)
	Complete() bool
}

// TestMetersReadTheSandbox checks that the gateway's meter and reader of each form find the usage,
// the tokens and the end of the sandbox's answers.
func TestMetersReadTheSandbox(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		for name, tt := range map[string]struct {
			options map[string]any
			tokens  bool // the stream has tokens
		}{
			"text":      {nil, true},
			"reasoning": {map[string]any{"reasoning": true}, true},
			"limit":     {map[string]any{"fail": "thinking_only"}, f.form != wire.FormResponses}, // the responses form does not show the reasoning
			"empty":     {map[string]any{"fail": "empty"}, false},
			"filter":    {map[string]any{"fail": "filter"}, false},
		} {
			body := strings.Replace(f.hello, "{", `{"stream_options":{"include_usage":true},`, 1)
			raw := readForm(t, f.form, tt.options, false, body)
			want := parseBody(t, f.form, raw)

			m, tokens := readMeter(t, f.form, readForm(t, f.form, tt.options, true, body))
			u, known := m.Usage()
			if !known || !m.Complete() || (tokens > 0) != tt.tokens {
				t.Errorf("%s, %s: known %t, complete %t, %d tokens", f.form, name, known, m.Complete(), tokens)
			}
			if u.Prompt != want.prompt || u.Completion != want.completion || u.Reasoning != want.thinking {
				t.Errorf("%s, %s: the meter read %+v, the answer has %+v", f.form, name, u, want)
			}
			plain, known := usageOf(t, f.form, raw)
			if !known || plain.Prompt != u.Prompt || plain.Completion != u.Completion || plain.Reasoning != u.Reasoning {
				t.Errorf("%s, %s: the reader read %+v (%t), the meter %+v", f.form, name, plain, known, u)
			}
		}
		m, _ := readMeter(t, f.form, readForm(t, f.form, map[string]any{"usage": false}, true, f.hello))
		if _, known := m.Usage(); known || !m.Complete() {
			t.Errorf("%s: the meter found a usage, or no end, without usage in the stream", f.form)
		}
	}
}

// readMeter passes a stream through the meter of its form and counts the tokens.
func readMeter(t *testing.T, form wire.Form, stream string) (m meter, tokens int) {
	t.Helper()
	switch form {
	case wire.FormResponses:
		m = responses.NewMeter()
	case wire.FormMessages:
		m = messages.NewMeter()
	default:
		m = completions.NewMeter(1)
	}
	r := sse.NewReader(strings.NewReader(stream), 1<<20)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return m, tokens
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Read(e)
		if err != nil || f.Err != nil {
			t.Fatalf("%s: %v, %v", e.Data, err, f.Err)
		}
		if f.Token {
			tokens++
		}
	}
}

// usageOf returns the usage of a plain answer.
func usageOf(t *testing.T, form wire.Form, body string) (u wire.Usage, known bool) {
	t.Helper()
	var err error
	var a interface{ Usage() (wire.Usage, bool) }
	switch form {
	case wire.FormResponses:
		a, err = responses.ReadAnswer([]byte(body))
	case wire.FormMessages:
		a, err = messages.ReadAnswer([]byte(body))
	default:
		a, err = completions.ReadAnswer([]byte(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.Usage()
}
