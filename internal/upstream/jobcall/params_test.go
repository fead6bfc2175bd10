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

// ruled is a generator with a rule. It records the submitted task.
type ruled struct {
	Generator
	rule ParamRule
	got  *Task
}

func (r *ruled) ParamRule(Task) ParamRule { return r.rule }

func (r *ruled) Submit(_ context.Context, w Task) (*TaskStatus, error) {
	r.got = &w
	return &TaskStatus{Ticket: "t"}, nil
}

func TestSubmitChecksParams(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule   ParamRule
		params string
		want   string // the object sent to the provider; empty if rejected
	}{
		"none":                     {AllBut(), ``, `{"model":"m"}`},
		"an empty object":          {Only(), `{}`, `{"model":"m"}`},
		"as they were sent":        {AllBut("n"), `{"seed":1.50,"z":null}`, `{"model":"m","seed":1.50,"z":null}`},
		"one that has a place":     {Only("seed"), `{"seed":9007199254740993}`, `{"model":"m","seed":9007199254740993}`},
		"one of the provider's":    {AllBut("response_format"), `{"seed":1,"response_format":"url"}`, ``},
		"one of the gateway's":     {AllBut(), `{"model":"other"}`, ``},
		"the gateway's callback":   {AllBut(), `{"callback_url":"https://x.example"}`, ``},
		"one without a place":      {Only("seed"), `{"seed":1,"style":"noir"}`, ``},
		"a rule that says nothing": {ParamRule{}, `{"seed":1}`, ``},
		"in the provider's word":   {AllBut().As("audio", "sound"), `{"audio":true}`, `{"model":"m","sound":true}`},
		"in its own word":          {Only().As("audio", "audio"), `{"audio":false}`, `{"audio":false,"model":"m"}`},
		"in both words":            {AllBut().As("audio", "sound"), `{"audio":true,"sound":false}`, ``},
		"a word without a place":   {AllBut(), `{"audio":true}`, ``},
		"a list":                   {AllBut(), `[1]`, ``},
		"null":                     {AllBut(), `null`, ``},
		"no JSON":                  {AllBut(), `{`, ``},
	} {
		for kind, job := range map[string]fault.Code{upstream.KindImage: fault.UpstreamError, upstream.KindVideo: fault.InvalidRequest} {
			g := &ruled{rule: tt.rule}
			_, err := Submit(t.Context(), g, Task{Kind: kind, Params: json.RawMessage(tt.params)})
			var failure *upstream.JobFailure
			switch {
			case tt.want == "" && (!errors.As(err, &failure) || failure.Job != job || failure.Health != upstream.HealthNone ||
				failure.Next != upstream.NextLine || g.got != nil):
				t.Errorf("%s: %v, and the generator got %v", name, err, g.got)
			case tt.want != "" && err != nil:
				t.Errorf("%s: %v", name, err)
			case tt.want != "":
				to := map[string]any{"model": "m"}
				g.got.AddFurther(to)
				if got, _ := json.Marshal(to); string(got) != tt.want {
					t.Errorf("%s: %s", name, got)
				}
			}
		}
	}
}

// TestParamsReachNobodyUnchecked tests that a generator sends no params if called without the
// check, and sees no unchecked Params after the check.
func TestParamsReachNobodyUnchecked(t *testing.T) {
	t.Parallel()
	g, w := &ruled{rule: AllBut()}, Task{Kind: upstream.KindImage, Params: json.RawMessage(`{"seed":1}`)}
	if _, err := Submit(t.Context(), g, w); err != nil || g.got.Params != nil || string(g.got.Further()["seed"]) != "1" {
		t.Errorf("%v: the generator sees %s and %v", err, g.got.Params, g.got.Further())
	}
	if _, err := g.Submit(t.Context(), w); err != nil || g.got.Further() != nil {
		t.Errorf("%v: past the check it sees %v", err, g.got.Further())
	}
}

func TestRefusalNamesTheField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for params, want := range map[string]string{`{"n":1}`: `"n"`, `{"` + long + `":1}`: long[:80]} {
		_, err := Submit(t.Context(), &ruled{rule: Only("seed")}, Task{Kind: upstream.KindImage, Params: json.RawMessage(params)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "seed") || len(err.Error()) > 300 {
			t.Errorf("%v", err)
		}
	}
}

// TestRolesNeedAPlace tests that a reference with a role unknown to the provider is rejected, not
// sent without its role.
func TestRolesNeedAPlace(t *testing.T) {
	t.Parallel()
	framed := Task{Kind: upstream.KindVideo, References: []Reference{{Role: "first_frame"}, {Role: "last_frame"}}}
	for name, tt := range map[string]struct {
		rule ParamRule
		ok   bool
	}{"none": {AllBut(), false}, "one": {AllBut().Roles("first_frame"), false}, "both": {Only().Roles("last_frame", "first_frame"), true}} {
		g := &ruled{rule: tt.rule}
		if _, err := Submit(t.Context(), g, framed); (err == nil) != tt.ok || (g.got != nil) != tt.ok {
			t.Errorf("%s: %v, and the generator got %v", name, err, g.got)
		}
	}
	first, last, rest := framed.Framed()
	if first != &framed.References[0] || last != &framed.References[1] || rest != nil || !framed.HasRoles() {
		t.Errorf("%v, %v, %v", first, last, rest)
	}
}
