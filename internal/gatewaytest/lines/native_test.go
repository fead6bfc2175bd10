package lines

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// nativeScenes check the errors of /native if all lines are busy, and without a line.
func nativeScenes(t testing.TB) []scene.Scenario {
	open := make(chan struct{})
	slow := fakeprovider.NativeAnswer("all is well", 1000, 500)
	slow.Wait = open
	p := newProvider(t, slow)
	line := scene.ChatLine("native", p.URL(), map[string]any{"max_concurrent": 1, "provider": "anthropic"}, "native")
	model := scene.ChatModel("native", map[string]any{"forms": []string{"messages"}})
	return []scene.Scenario{{Name: "full, then out", Models: []map[string]any{model}, Lines: []map[string]any{line},
		Play: func(t *testing.T, f *scene.Gateway) {
			c := newClient(t, f)
			c.in = scene.Messages
			var group sync.WaitGroup
			group.Go(func() { c.waitForSlot("native") })
			p.Arrived()
			c.refusedNative(429, "overloaded_error")
			p.checkRequests(t, 1)
			p.setReply(fakeprovider.Error(401, "", "invalid_api_key", "no"))
			close(open)
			group.Wait()
			scene.Eventually(t, "the slot is free, and the credential refused", func() bool { return c.native().Status == 502 })
			f.Lines.Becomes(t, "native", "credentials_out")
			c.refusedNative(503, "overloaded_error")
			p.checkRequests(t, 2)
			c.settled(1)
		}}}
}

func (c client) native() scene.Answer {
	c.t.Helper()
	a, err := scene.SendChat(c.t.Context(), c.f.Client, c.f.Process.URL+c.in.Path(), c.key, c.hello("native"))
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// refusedNative sends a request and checks its rejection without a usable line.
func (c client) refusedNative(status int, kind string) {
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
