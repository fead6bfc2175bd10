package gatewaytest_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// scene is a story of some models and lines that nobody else uses. Many play
// on one process.
type scene struct {
	name          string
	models, lines []map[string]any
	play          func(t *testing.T, f *fixture)
}

// eachScene plays scenes on both databases. They are made anew for each.
func eachScene(t *testing.T, binary string, in form, make func(t testing.TB) []scene) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		f := newFixture(t, binary, database, in)
		scenes := make(t)
		var models, lines []map[string]any
		for _, s := range scenes {
			models, lines = append(models, s.models...), append(lines, s.lines...)
		}
		f.process.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
		var group sync.WaitGroup
		for _, s := range scenes {
			group.Go(func() { t.Run(s.name, func(t *testing.T) { s.play(t, f) }) })
		}
		group.Wait()
		f.audit(t)
	})
}

// TestLines plays what happens with several lines, and to lines over time.
func TestLines(t *testing.T) {
	t.Parallel()
	binary := gatewaytest.Binary(t)
	t.Run("verdicts", func(t *testing.T) { eachScene(t, binary, chatForm(), verdictScenes) })
	t.Run("prompt filters", func(t *testing.T) { eachScene(t, binary, chatForm(), otherProviderScenes) })
	t.Run("native", func(t *testing.T) { eachScene(t, binary, nativeForm(), nativeScenes) })
	t.Run("lives", func(t *testing.T) { eachScene(t, binary, chatForm(), lineScenes) })
}

// hello is a request for a model.
func hello(model string, stream bool) string {
	return entry{stream: stream}.body(model)
}

// caller is an account with a key that sends requests.
type caller struct {
	t            *testing.T
	f            *fixture
	account, key string
}

func (f *fixture) caller(t *testing.T) caller {
	t.Helper()
	account, key := f.process.Account(10, nil)
	return caller{t, f, account, key}
}

// wants sends a request and checks how it ends; an empty code is an answer.
func (c caller) wants(model string, code string) answer {
	c.t.Helper()
	a := c.f.send(c.t, c.key, hello(model, false))
	if a.err.Code != code || (a.status == 200) != (code == "") {
		c.t.Errorf("%s: the client got %d %s; want %q", model, a.status, a.err, code)
	}
	return a
}

// settled checks that the account was charged for so many good answers, and
// that nothing is held.
func (c caller) settled(answers int) {
	c.t.Helper()
	var state struct {
		Balance money.Amount `json:"balance_usd"`
		Held    money.Amount `json:"held_usd"`
	}
	want := 10*money.USD - money.Amount(answers)*healthyCost
	eventually(c.t, fmt.Sprintf("%d answers are charged and nothing is held", answers), func() bool {
		c.f.process.Admin("GET", "/accounts/"+c.account, nil, &state)
		return state.Held == 0 && state.Balance == want
	})
}

// verdictScenes are walks over three lines that fail in different ways
// (interface.md, Errors: what the client is told).
func verdictScenes(t testing.TB) []scene {
	var (
		rejected = fakeprovider.Error(400, "invalid_request_error", "context_length_exceeded", "too long")
		withheld = *completion(`{"role":"assistant","content":""}`, `"content_filter"`)
		stopped  = fakeprovider.Error(400, "", "content_policy_violation", "x")
		busy     = fakeprovider.Busy(0)
		down     = fakeprovider.Error(500, "server_error", "", "x")
		key      = fakeprovider.Error(401, "", "invalid_api_key", "x")
		reset    = fakeprovider.Reply{Before: fakeprovider.Reset}
		empty    = *completion(`{"role":"assistant","content":""}`, `"stop"`)
		used     = *completion(`{"role":"assistant","content":"","reasoning_content":"hm"}`, `"length"`)
	)
	var scenes []scene
	for i, tt := range []struct {
		name  string
		lines [3]fakeprovider.Reply
		code  string
		asked string
	}{
		{"a rejection stops the walk", [3]fakeprovider.Reply{down, rejected, busy}, "context_length_exceeded", "1 1 0"},
		{"a rejection after a prompt filter", [3]fakeprovider.Reply{stopped, rejected, down}, "context_length_exceeded", "1 1 0"},
		{"a withheld answer stops the walk", [3]fakeprovider.Reply{stopped, withheld, down}, "content_filter", "1 1 0"},
		{"a used up limit stops the walk", [3]fakeprovider.Reply{busy, used, down}, "max_tokens_too_small", "1 1 0"},
		{"prompt filter first", [3]fakeprovider.Reply{stopped, down, reset}, "upstream_prompt_filter", "1 1 1"},
		{"prompt filter in the middle", [3]fakeprovider.Reply{down, stopped, busy}, "upstream_prompt_filter", "1 1 1"},
		{"prompt filter last", [3]fakeprovider.Reply{down, busy, stopped}, "upstream_prompt_filter", "1 1 1"},
		{"the last failure, a connection", [3]fakeprovider.Reply{busy, down, reset}, "upstream_connection_error", "1 1 1"},
		{"the last failure, an empty answer", [3]fakeprovider.Reply{key, reset, empty}, "empty_completion", "1 1 1"},
		{"the last failure, our key", [3]fakeprovider.Reply{reset, empty, key}, "upstream_unavailable", "1 1 1"},
		{"the last failure, a rate limit", [3]fakeprovider.Reply{down, reset, busy}, "upstream_busy", "1 1 1"},
		{"all are busy", [3]fakeprovider.Reply{busy, busy, busy}, "upstream_busy", "1 1 1"},
		{"two are busy", [3]fakeprovider.Reply{busy, busy, down}, "upstream_unavailable", "1 1 1"},
	} {
		model := fmt.Sprintf("verdict-%d", i)
		s := scene{name: tt.name, models: []map[string]any{chatModel(model, nil)}}
		var providers []*fakeprovider.Server
		for n, reply := range tt.lines {
			p := fakeprovider.New(t, reply)
			providers = append(providers, p)
			s.lines = append(s.lines, chatLine(fmt.Sprintf("%s-%d", model, n), p.URL(), map[string]any{"priority": n + 1}, model))
		}
		s.play = func(t *testing.T, f *fixture) {
			c := f.caller(t)
			a := c.wants(model, tt.code)
			var got []string
			for _, p := range providers {
				got = append(got, fmt.Sprint(len(p.Requests())))
			}
			if n := strings.Join(got, " "); n != tt.asked {
				t.Errorf("the lines were asked %s times, want %s", n, tt.asked)
			}
			if r := f.receipt(t, c.account, a.id); r.Code != tt.code || len(r.Attempts) != strings.Count(tt.asked, "1") {
				t.Errorf("receipt %+v", r)
			}
			c.settled(0)
		}
		scenes = append(scenes, s)
	}
	return scenes
}

// otherProviderScenes: a prompt that a provider's check stopped goes to another
// provider first, and to every other line in the end.
func otherProviderScenes(t testing.TB) []scene {
	stopped := fakeprovider.Error(400, "", "content_policy_violation", "x")
	good := fakeprovider.Answer("fine", 1000, 500)
	var scenes []scene
	for i, tt := range []struct {
		name string
		// what the provider with two lines says to the second of them, and
		// what the other provider says
		again, other fakeprovider.Reply
		code         string
		order        string // of the lines asked
	}{
		{"another provider takes it", good, good, "", "one-a other"},
		{"every other line is asked", good, stopped, "", "one-a other one-b"},
		{"all stop it", stopped, stopped, "upstream_prompt_filter", "one-a other one-b"},
		{"another failure on the way", good, fakeprovider.Error(500, "", "", "x"), "", "one-a other one-b"},
	} {
		model := fmt.Sprintf("filter-%d", i)
		line := func(name string) string { return model + "-" + name }
		one, other := fakeprovider.New(t), fakeprovider.New(t, tt.other)
		one.Always(func(q fakeprovider.Request) fakeprovider.Reply {
			if bytes.Contains(q.Body, []byte(`"vendor-a"`)) {
				return stopped
			}
			return tt.again
		})
		s := scene{name: tt.name, models: []map[string]any{chatModel(model, nil)}}
		for priority, l := range []struct{ name, url, vendor string }{
			{"one-a", one.URL(), "vendor-a"}, {"one-b", one.URL(), "vendor-b"}, {"other", other.URL(), "vendor-c"},
		} {
			s.lines = append(s.lines, chatLine(line(l.name), l.url,
				map[string]any{"priority": priority + 1, "models": map[string]string{model: l.vendor}}))
		}
		s.play = func(t *testing.T, f *fixture) {
			c := f.caller(t)
			a := c.wants(model, tt.code)
			var asked []string
			for _, attempt := range f.receipt(t, c.account, a.id).Attempts {
				asked = append(asked, strings.TrimPrefix(attempt.Line, model+"-"))
			}
			if got := strings.Join(asked, " "); got != tt.order {
				t.Errorf("the lines asked were %s; want %s", got, tt.order)
			}
			for _, name := range []string{"one-a", "one-b", "other"} {
				if s := f.lines.of(t, line(name)); s.State != "in_service" {
					t.Errorf("line %s: %s", name, s)
				}
			}
		}
		scenes = append(scenes, s)
	}
	return scenes
}
