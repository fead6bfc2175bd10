package jobcall

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// fakeGenerator is a generator with a rule. It records the submitted task.
type fakeGenerator struct {
	Generator
	rule ParamRule
	got  *Task
}

func (g *fakeGenerator) ParamRule(Task) ParamRule { return g.rule }

func (g *fakeGenerator) Submit(_ context.Context, task Task) (*TaskStatus, error) {
	g.got = &task
	return &TaskStatus{Ticket: "t"}, nil
}

// TestSubmitChecksParams tests which params Submit passes on, and that Submit rejects a task with any
// other param before the generator is called.
func TestSubmitChecksParams(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule   ParamRule
		params string
		want   string // the object sent to the provider; empty if rejected
	}{
		"none":                    {AllParamsExcept(), ``, `{"model":"m"}`},
		"an empty object":         {OnlyParams(), `{}`, `{"model":"m"}`},
		"unchanged":               {AllParamsExcept("n"), `{"seed":1.50,"z":null}`, `{"model":"m","seed":1.50,"z":null}`},
		"an allowed one":          {OnlyParams("seed"), `{"seed":9007199254740993}`, `{"model":"m","seed":9007199254740993}`},
		"a forbidden one":         {AllParamsExcept("response_format"), `{"seed":1,"response_format":"url"}`, ``},
		"a field of the gateway":  {AllParamsExcept(), `{"model":"other"}`, ``},
		"the gateway's callback":  {AllParamsExcept(), `{"callback_url":"https://x.example"}`, ``},
		"one that is not allowed": {OnlyParams("seed"), `{"seed":1,"style":"noir"}`, ``},
		"an empty rule":           {ParamRule{}, `{"seed":1}`, ``},
		"the provider's own name": {AllParamsExcept().Rename("audio", "sound"), `{"audio":true}`, `{"model":"m","sound":true}`},
		"the same name":           {OnlyParams().Rename("audio", "audio"), `{"audio":false}`, `{"audio":false,"model":"m"}`},
		"both names":              {AllParamsExcept().Rename("audio", "sound"), `{"audio":true,"sound":false}`, ``},
		"a choice without a name": {AllParamsExcept(), `{"audio":true}`, ``},
		"a list":                  {AllParamsExcept(), `[1]`, ``},
		"null":                    {AllParamsExcept(), `null`, ``},
		"no JSON":                 {AllParamsExcept(), `{`, ``},
	} {
		for kind, job := range map[string]fault.Code{upstream.KindImage: fault.UpstreamError, upstream.KindVideo: fault.InvalidRequest} {
			g := &fakeGenerator{rule: tt.rule}
			_, err := Submit(t.Context(), g, Task{Kind: kind, Params: json.RawMessage(tt.params)})
			var failure *upstream.JobFailure
			switch {
			case tt.want == "" && (!errors.As(err, &failure) || failure.Job != job || failure.Health != upstream.HealthNone ||
				failure.Next != upstream.NextLine || g.got != nil):
				t.Errorf("%s: error %v, and the generator got %v; want a rejection", name, err, g.got)
			case tt.want != "" && err != nil:
				t.Errorf("%s: Submit returned error %v, want none", name, err)
			case tt.want != "":
				body := map[string]any{"model": "m"}
				g.got.AddExtraParams(body)
				if got, _ := json.Marshal(body); string(got) != tt.want {
					t.Errorf("%s: sent %s, want %s", name, got, tt.want)
				}
			}
		}
	}
}

// TestUncheckedParamsAreNotSent tests that a generator gets only checked params: Submit clears
// Params after the check, and a call that bypasses Submit has no further fields.
func TestUncheckedParamsAreNotSent(t *testing.T) {
	t.Parallel()
	g, task := &fakeGenerator{rule: AllParamsExcept()}, Task{Kind: upstream.KindImage, Params: json.RawMessage(`{"seed":1}`)}
	if _, err := Submit(t.Context(), g, task); err != nil || g.got.Params != nil || string(g.got.ExtraParams()["seed"]) != "1" {
		t.Errorf("%v: the generator got params %s and further fields %v", err, g.got.Params, g.got.ExtraParams())
	}
	if _, err := g.Submit(t.Context(), task); err != nil || g.got.ExtraParams() != nil {
		t.Errorf("%v: without the check, the generator got further fields %v", err, g.got.ExtraParams())
	}
}

// TestRefusalNamesTheField tests that the error about a param has the names of the param, cut to 80
// bytes, and of the allowed params.
func TestRefusalNamesTheField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for params, want := range map[string]string{`{"n":1}`: `"n"`, `{"` + long + `":1}`: long[:80]} {
		_, err := Submit(t.Context(), &fakeGenerator{rule: OnlyParams("seed")}, Task{Kind: upstream.KindImage, Params: json.RawMessage(params)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "seed") || len(err.Error()) > 300 {
			t.Errorf("error %v, want one of at most 300 bytes with %s and seed", err, want)
		}
	}
}

// TestUnsupportedRoles tests that a reference with a role unknown to the provider is rejected, and
// not sent without its role.
func TestUnsupportedRoles(t *testing.T) {
	t.Parallel()
	task := Task{Kind: upstream.KindVideo, References: []Reference{{Role: "first_frame"}, {Role: "last_frame"}}}
	for name, tt := range map[string]struct {
		rule ParamRule
		ok   bool
	}{"none": {AllParamsExcept(), false}, "one": {AllParamsExcept().Roles("first_frame"), false},
		"both": {OnlyParams().Roles("last_frame", "first_frame"), true}} {
		g := &fakeGenerator{rule: tt.rule}
		if _, err := Submit(t.Context(), g, task); (err == nil) != tt.ok || (g.got != nil) != tt.ok {
			t.Errorf("%s: error %v, and the generator got %v; accepted should be %t", name, err, g.got, tt.ok)
		}
	}
	first, last, rest := task.SplitFrames()
	if first != &task.References[0] || last != &task.References[1] || rest != nil || !task.HasRoles() {
		t.Errorf("SplitFrames = %v, %v, %v, want the two frames", first, last, rest)
	}
}
