package lines

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestNodesShareFindings runs two nodes on one database. The second node learns that a line fails, or
// works again, without a request to the provider. Each change sends one alert.
func TestNodesShareFindings(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	var mu sync.Mutex
	alerts := map[string]int{} // by line and state
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var alert struct{ Line, State string }
		if err := json.NewDecoder(r.Body).Decode(&alert); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		alerts[alert.Line+" "+alert.State]++
	}))
	t.Cleanup(receiver.Close)
	more := map[string]string{"media": "file:" + t.TempDir(), "alert_url": receiver.URL}
	database := storetest.PostgreSQL(t)
	one := scene.Open(t, binary, database, more)
	two := scene.Open(t, binary, database, more)
	good := fakeprovider.New(t)
	good.Always(func(fakeprovider.Request) fakeprovider.Reply { return working() })
	in := func(state string) func(scene.LineState) bool {
		return func(s scene.LineState) bool { return s.State == state }
	}
	cases := []struct {
		line   string
		reply  fakeprovider.Reply
		shows  func(scene.LineState) bool
		alert  string // the state in the alert
		server *fakeprovider.Server
		works  atomic.Bool
	}{
		{line: "broken", reply: fakeprovider.Error(500, "server_error", "", "x"), shows: in("circuit_open"), alert: "circuit_open"},
		{line: "page", reply: fakeprovider.Page(502), shows: in("circuit_open"), alert: "circuit_open"},
		{line: "reset", reply: fakeprovider.Reply{Before: fakeprovider.Reset}, shows: in("circuit_open"), alert: "circuit_open"},
		{line: "key", reply: fakeprovider.Error(401, "", "invalid_api_key", "x"), shows: in("credentials_out"), alert: "credentials_out"},
		{line: "gone", reply: fakeprovider.Error(404, "invalid_request_error", "model_not_found", "The model does not exist"),
			shows: func(s scene.LineState) bool { return len(s.ModelsOut) == 1 }, alert: "model_out"},
		{line: "busy", reply: fakeprovider.Busy(60), shows: in("cooling")},
	}
	var models, lines []map[string]any
	for i := range cases {
		c := &cases[i]
		c.server = fakeprovider.New(t)
		c.server.Always(func(fakeprovider.Request) fakeprovider.Reply {
			if c.works.Load() {
				return working()
			}
			return c.reply
		})
		models = append(models, scene.ChatModel("m-"+c.line, nil))
		lines = append(lines, scene.ChatLine(c.line, c.server.URL(), map[string]any{"priority": 1}, "m-"+c.line),
			scene.ChatLine(c.line+"-spare", good.URL(), map[string]any{"priority": 2}, "m-"+c.line))
	}
	one.SetCatalog(models, lines)
	scene.Eventually(t, "both nodes have the catalog", func() bool {
		var list json.RawMessage
		two.Process.Admin("GET", "/lines", nil, &list)
		return bytes.Contains(list, []byte(`"busy-spare"`))
	})
	first, second := newClient(t, one), newClient(t, two)
	for i := range cases {
		c, model := &cases[i], "m-"+cases[i].line
		scene.Eventually(t, "the first node takes "+c.line+" out of service", func() bool {
			first.expect(model, "")
			return c.shows(one.Lines.Of(t, c.line))
		})
		scene.Eventually(t, "the second node learns of "+c.line, func() bool { return c.shows(two.Lines.Of(t, c.line)) })
		before := clientRequests(c.server)
		for range 5 {
			second.expect(model, "")
		}
		if n := clientRequests(c.server) - before; n != 0 {
			t.Errorf("%s: the second node sent %d requests; want 0", c.line, n)
		}
		if n := before; n > 10 {
			t.Errorf("%s: the first node sent %d requests; want at most 10", c.line, n)
		}
		// The operator resumes the line on one node, and the other node follows.
		c.works.Store(true)
		two.Process.Admin("POST", "/lines/"+c.line+"/resume", struct{}{}, nil)
		scene.Eventually(t, "the first node uses "+c.line+" again", func() bool {
			before := clientRequests(c.server)
			first.expect(model, "")
			return clientRequests(c.server) > before
		})
	}
	sent := func(alert string) int {
		mu.Lock()
		defer mu.Unlock()
		return alerts[alert]
	}
	for i := range cases {
		if c := &cases[i]; c.alert != "" {
			scene.Eventually(t, c.alert+" of "+c.line+" is sent", func() bool { return sent(c.line+" "+c.alert) > 0 })
			if n := sent(c.line + " " + c.alert); n != 1 {
				t.Errorf("%s: %d alerts; want 1: %v", c.line, n, alerts)
			}
		}
	}
	one.Audit(t)
}
