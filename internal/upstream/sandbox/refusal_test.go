package sandbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[string]struct {
		code   fault.Code
		health upstream.Health
	}{
		"busy":          {fault.UpstreamBusy, upstream.HealthCool},
		"overloaded":    {fault.UpstreamBusy, upstream.HealthCool},
		"unavailable":   {fault.UpstreamUnavailable, upstream.HealthFail},
		"credential":    {fault.UpstreamUnavailable, upstream.HealthCredential},
		"quota":         {fault.UpstreamUnavailable, upstream.HealthCredential},
		"model":         {fault.UpstreamUnavailable, upstream.HealthModel},
		"prompt_filter": {fault.UpstreamPromptFilter, upstream.HealthNone},
		"rejection":     {"context_length_exceeded", upstream.HealthNone},
		"page":          {fault.UpstreamUnavailable, upstream.HealthFail},
		"connection":    {fault.UpstreamConnectionError, upstream.HealthFail},
	} {
		for _, form := range forms {
			for _, stream := range []bool{false, true} {
				_, err := call(t.Context(), open(t, map[string]any{"fail": kind}), form.form, stream, form.hello)
				checkRefusal(t, kind, form.form, err, tt.code, tt.health)
			}
		}
		count := chatcall.Call{Form: wire.FormMessages, Body: rawjson.Pieces{[]byte(hello)}}
		_, err := open(t, map[string]any{"fail": kind}).CountTokens(t.Context(), count)
		checkRefusal(t, kind, wire.FormMessages, err, tt.code, tt.health)
	}
}

func checkRefusal(t *testing.T, kind string, form wire.Form, err error, code fault.Code, health upstream.Health) {
	t.Helper()
	param := map[wire.Form]string{wire.FormChat: "messages", wire.FormResponses: "input"}[form]
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Code != code || f.Health != health {
		t.Errorf("%s, %s: %v", form, kind, err)
	} else if kind == "busy" && f.RetryAfter != time.Second {
		t.Errorf("%s, busy: wait %s", form, f.RetryAfter)
	} else if kind == "rejection" && (f.Rejection == nil || f.Rejection.Param != param ||
		f.Rejection.Rejection.Type != "invalid_request_error") {
		t.Errorf("%s, rejection: %+v", form, f.Rejection)
	}
}

// TestRequestsThatProvidersReject checks that the sandbox rejects invalid requests that the gateway
// passes on unchecked.
func TestRequestsThatProvidersReject(t *testing.T) {
	t.Parallel()
	const oneMessage = `"messages":[{"role":"user","content":"x"}]`
	for _, tt := range []struct {
		form        wire.Form
		body, param string
	}{
		{wire.FormChat, `{"messages":[]}`, "messages"},
		{wire.FormChat, `{` + oneMessage + `,"temperature":3}`, "temperature"},
		{wire.FormChat, `{` + oneMessage + `,"temperature":"a"}`, "temperature"},
		{wire.FormChat, `{`, ""},
		{wire.FormResponses, `{"input":[]}`, "input"},
		{wire.FormResponses, `{"messages":[]}`, "input"},
		{wire.FormResponses, `{"input":"x","temperature":3}`, "temperature"},
		{wire.FormResponses, `[`, ""},
		{wire.FormMessages, `{"max_tokens":1,"messages":[]}`, ""},
		{wire.FormMessages, `{` + oneMessage + `}`, ""},
		{wire.FormMessages, `{"max_tokens":0,` + oneMessage + `}`, ""},
		{wire.FormMessages, `{"max_tokens":1,"temperature":1.5,` + oneMessage + `}`, ""},
		{wire.FormMessages, `{"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":2000},` + oneMessage + `}`, ""},
		{wire.FormMessages, `{"max_tokens":2000,"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"},` + oneMessage + `}`, ""},
		{wire.FormMessages, `{"max_tokens":1,"messages":[{"role":"user","content":[` +
			strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 4) +
			`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`, ""},
		{wire.FormMessages, ``, ""},
	} {
		_, err := call(t.Context(), open(t, nil), tt.form, false, tt.body)
		var f *upstream.Failure
		if !errors.As(err, &f) || f.Rejection == nil || f.Rejection.Status() != 400 || f.Rejection.Param != tt.param ||
			f.Rejection.Message() == "" {
			t.Errorf("%s: %s: %v", tt.form, tt.body, err)
		}
	}
	_, err := call(t.Context(), open(t, nil), "gemini", false, hello)
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Code != fault.UpstreamUnavailable {
		t.Errorf("unknown form: %v", err)
	}
}
