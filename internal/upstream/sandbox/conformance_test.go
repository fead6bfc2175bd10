package sandbox_test

import (
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/sandbox"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// TestConformance simulates failures by options of the sandbox, which does not use HTTP.
func TestConformance(t *testing.T) {
	t.Parallel()
	fail := func(kind string) map[string]any { return map[string]any{"fail": kind, "poll_wait": "1ms"} }
	calls := map[conformance.Behaviour]map[string]any{
		conformance.Stalls: fail("timeout"), conformance.Resets: fail("connection"), conformance.Breaks: {"break_after": 2},
		conformance.Busy: fail("busy"), conformance.Unauthorized: fail("credential"), conformance.Missing: fail("model"),
		conformance.Broken: fail("unavailable"), conformance.Page: fail("page"),
	}
	conformance.Chat(t, conformance.ChatProvider{
		Provider: sandbox.Provider,
		Call: func(form wire.Form) chatcall.Call {
			body := `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`
			if form == wire.FormResponses {
				body = `{"model":"m","input":"hello"}`
			}
			return chatcall.Call{Body: rawjson.Pieces{[]byte(body)}, IdempotencyKey: "att_1"}
		},
		SimulatorOptions: calls,
	})
	conformance.Kinds(t, conformance.KindsProvider{Provider: sandbox.Provider, SimulatorOptions: calls})
	picture, clip := newTask(upstream.KindImage), newTask(upstream.KindVideo)
	picture.Count = 2
	conformance.Media(t, conformance.MediaProvider{
		Provider: sandbox.Provider,
		Tasks:    map[string]jobcall.Task{"pictures": picture, "clip": clip},
		Ticket:   func(jobcall.Task) string { return "sandbox.1.well.000000000000" },
		Params:   `{"seed":41417}`,
		SimulatorOptions: map[conformance.Behaviour]map[string]any{
			conformance.Resets: fail("connection"), conformance.LosesAnswer: fail("connection"), conformance.Busy: fail("busy"),
			conformance.Unauthorized: fail("credential"), conformance.Broken: fail("unavailable"), conformance.Page: fail("page"),
			conformance.BreaksPolls: fail("polls_break"), conformance.Forgets: fail("upstream_unstable"),
			conformance.RefusesLink: {"fail": "bad_link_once", "poll_wait": "1h"}, // which is how long links are bad
			conformance.CutsLink:    fail("result_fetch_failed"),
		},
	})
}
