package gemini_test

import (
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/sse"
)

// TestGeminiReplies checks that the fake's replies are good answers, refusals and errors to the
// gateway.
func TestGeminiReplies(t *testing.T) {
	t.Parallel()
	read := func(body string) wire.Answer {
		a, err := gemini.ReadAnswer([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return a
	}
	a := read(fakeprovider.GeminiEvent("STOP", 3, 2, fakeprovider.GeminiThought("hm"), fakeprovider.GeminiText("hi"),
		fakeprovider.GeminiCall("f", `{"a":1}`)))
	if u, known := a.Usage(); !a.Summary().Content || !a.Summary().Reasoning || a.Summary().Err != nil || !known || u.Prompt != 3 ||
		u.Completion != 2 || string(a.Text()) != `hmhif{"a":1}` {
		t.Errorf("%+v, usage %+v, text %q", *a.Summary(), u, a.Text())
	}
	if a := read(fakeprovider.GeminiAnswer("hi", 3, 2).Body); !a.Summary().Content || a.Summary().Err != nil {
		t.Errorf("%+v", *a.Summary())
	}
	m := gemini.NewMeter(1)
	for _, data := range fakeprovider.GeminiStream(3, 2, "a", "b").Events {
		if _, err := m.Read(sse.Event{Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	if u, known := m.Usage(); !m.Complete() || !known || u.Completion != 2 || string(m.Text()) != "ab" {
		t.Errorf("complete %t, usage %+v, text %q", m.Complete(), u, m.Text())
	}
	for _, body := range []string{fakeprovider.GeminiBlocked("SAFETY", 3).Body, fakeprovider.GeminiErrorObject(500, "INTERNAL", "x")} {
		if a := read(body); a.Summary().Err == nil || upstream.Classify(200, "application/json", a.Summary().Err.Body, nil) == nil {
			t.Errorf("%s: %+v", body, *a.Summary())
		}
	}
}
