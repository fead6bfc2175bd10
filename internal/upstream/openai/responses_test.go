package openai_test

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// TestForms tests the path of each form, and that other forms are not sent.
func TestForms(t *testing.T) {
	t.Parallel()
	paths := map[wire.Form]string{wire.FormChat: "/v1/chat/completions", wire.FormResponses: "/v1/responses"}
	if got := openai.Info().Forms; len(got) != len(paths) {
		t.Errorf("forms %v", got)
	}
	for _, form := range openai.Info().Forms {
		p := fakeprovider.New(t, fakeprovider.Reply{Body: `{"status":"completed"}`})
		answer, err := open(t, p).Chat(t.Context(), chatcall.Call{Form: form, Body: rawjson.Pieces{[]byte(`{}`)}})
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := p.Requests()[0]; got.Path != paths[form] || string(got.Body) != "{}" {
			t.Errorf("form %s was sent to %s with %q", form, got.Path, got.Body)
		}
	}
	p := fakeprovider.New(t)
	_, err := open(t, p).Chat(t.Context(), chatcall.Call{Form: wire.FormMessages, Body: rawjson.Pieces{[]byte(`{}`)}})
	if f := conformance.ChatFailure(t, err); f.Code != fault.UpstreamUnavailable || len(p.Requests()) > 0 {
		t.Errorf("%v after %d requests", f, len(p.Requests()))
	}
}

// TestResponsesKeepTheConnection tests a reader stopping at the terminal event: the next call uses
// the same connection.
func TestResponsesKeepTheConnection(t *testing.T) {
	t.Parallel()
	const last = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n"
	reply := fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{last}}
	p := fakeprovider.New(t, reply, reply)
	a := open(t, p)
	for range 2 {
		answer, err := a.Chat(t.Context(), chatcall.Call{Form: wire.FormResponses, Stream: true, Body: rawjson.Pieces{[]byte(`{}`)}})
		if err != nil {
			t.Fatal(err)
		}
		var read strings.Builder
		for read.Len() < len(last) {
			buffer := make([]byte, 16)
			n, err := answer.Body.Read(buffer)
			read.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		answer.Body.Close()
		if read.String() != last {
			t.Errorf("read %q", read.String())
		}
	}
	if r := p.Requests(); r[0].From != r[1].From {
		t.Error("the second call came on another connection")
	}
}
