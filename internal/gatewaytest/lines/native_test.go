package lines

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// nativeScenes: how /native says that all lines are full, and that there is
// none.
func nativeScenes(t testing.TB) []scene.Scenario {
	open := make(chan struct{})
	slow := fakeprovider.NativeAnswer("all is well", 1000, 500)
	slow.Wait = open
	p := newMoody(t, slow)
	line := scene.ChatLine("native", p.URL(), map[string]any{"max_concurrent": 1, "provider": "anthropic"}, "native")
	model := scene.ChatModel("native", map[string]any{"forms": []string{"messages"}})
	return []scene.Scenario{{Name: "full, then out", Models: []map[string]any{model}, Lines: []map[string]any{line},
		Play: func(t *testing.T, f *scene.Gateway) {
			c := newCaller(t, f)
			c.in = scene.Messages
			var group sync.WaitGroup
			group.Go(func() { c.patiently("native") })
			p.Arrived()
			c.refusedNative(429, "overloaded_error")
			p.asked(t, 1)
			p.turn(fakeprovider.Error(401, "", "invalid_api_key", "no"))
			close(open)
			group.Wait()
			scene.Eventually(t, "the slot is free, and the credential refused", func() bool { return c.native().Status == 502 })
			f.Lines.Becomes(t, "native", "credentials_out")
			c.refusedNative(503, "overloaded_error")
			p.asked(t, 2)
			c.settled(1)
		}}}
}

// native sends a request once.
func (c caller) native() scene.Answer {
	c.t.Helper()
	a, err := scene.SendChat(c.t.Context(), c.f.Client, c.f.Process.URL+c.in.Path(), c.key, c.hello("native"))
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// refusedNative sends a request that no line can take.
func (c caller) refusedNative(status int, kind string) {
	c.t.Helper()
	a := c.native()
	var members map[string]any
	if err := json.Unmarshal([]byte(a.Raw), &members); err != nil {
		c.t.Fatal(err)
	}
	delete(members, "type")
	delete(members, "error")
	if a.Status != status || a.Err.Type != kind || a.Err.Message == "" || a.RetryAfter != "" || len(members) > 0 ||
		strings.Contains(a.Raw, "attempts") {
		c.t.Errorf("the client got %d %s, Retry-After %q; want %d %s and nothing else", a.Status, a.Raw, a.RetryAfter, status, kind)
	}
}
