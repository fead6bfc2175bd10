package chat

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
)

// asking is a request with more members.
func asking(members string) string { return strings.Replace(ask, "{", "{"+members+",", 1) }

// TestUnknownFieldsGoToNoLine checks that answer and attempt name the unknown fields.
func TestUnknownFieldsGoToNoLine(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"frobnicate":{"x":[1,2.50]}`:          "frobnicate",
		`"new_knob":null,"temperature":0.5`:    "new_knob",
		`"a\nb":1,"x,y":2,"\u00fcber":3`:       "a?b, x?y, ?ber",
		`"top_k":5,"min_p":0.1,"zzz":1`:        "zzz",
		`"web-search":true,"searchTheWeb":1`:   "web-search, searchTheWeb",
		`"` + strings.Repeat("n", 200) + `":1`: strings.Repeat("n", 64),
	} {
		tr := newTrial(t, pieces(whole1))
		tr.mustRun(asking(members))
		if got := tr.client.header.Get("x-tollgate-ignored"); got != want {
			t.Errorf("%s: the header says %q, want %q", members, got, want)
		}
		if got := tr.attempts()[0].Ignored; got != want {
			t.Errorf("%s: the attempt says %q", members, got)
		}
		sent := string(tr.provider.calls[0].Body.Bytes())
		for _, name := range []string{"frobnicate", "new_knob", "zzz", "web-search", "searchTheWeb", "nnn", "über"} {
			if strings.Contains(sent, name) {
				t.Errorf("%s: sent %s", members, sent)
			}
		}
		if strings.Contains(members, "top_k") && !strings.Contains(sent, `"top_k":5,"min_p":0.1`) {
			t.Errorf("what vendors document is not sent to a host that nobody knows: %s", sent)
		}
	}
}

// TestUnknownFieldsRefused checks the refusal before admission, if configured.
func TestUnknownFieldsRefused(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.opts.RefuseUnknown = true
	out := tr.run(asking(`"top_k":1,"frobnicate":1`))
	if f := fault.Of(out.err); f.Code != fault.InvalidRequest || f.Param != "frobnicate" || len(tr.books.amounts) != 0 {
		t.Errorf("%v, %d admissions", out.err, len(tr.books.amounts))
	}
	tr = newTrial(t, pieces(whole1))
	tr.opts.RefuseUnknown = true
	tr.mustRun(asking(`"top_k":1`)) // a documented field
}

// TestCostlyFieldsAreRefused checks the refusal of costly fields before admission on a model
// without a price for them.
func TestCostlyFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"compound_custom", "enable_code_interpreter", "connectors", "data_sources",
		"extra_body", "cached_content", "context_id", "assistant_id", "tool_resources", "agent_reference", "candidate_count",
		"num_return_sequences", "kv_transfer_params", "bootstrap_host", "lora_request", "chat_template", "deferred", "n_cmpl", "nvext",
		"agent_count", "id_slot", "guardrails", "deferred_tools", "vl_high_resolution_images", "thread_id", "multi_agent", "adapter_id",
	} {
		for _, spelling := range []string{name, strings.ToUpper(name)} {
			tr := newTrial(t)
			body := asking(`"` + spelling + `":true`)
			_, err := open(wire.FormChat, body)
			if err == nil {
				err = tr.run(body).err
			}
			if f := fault.Of(err); f.Code != fault.InvalidRequest || f.Param != spelling || len(tr.books.amounts) != 0 {
				t.Errorf("%s: %v, %d admissions", spelling, err, len(tr.books.amounts))
			}
		}
	}
}
