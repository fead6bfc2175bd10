package kinds

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// newRawVendor starts a provider. reply answers call n, counted from 1.
func newRawVendor(t *testing.T, reply func(n int, w http.ResponseWriter, r *http.Request, body string)) *vendor {
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.bodies, v.paths = append(v.bodies, string(raw)), append(v.paths, r.URL.Path)
		n := len(v.bodies)
		v.mu.Unlock()
		reply(n, w, r, string(raw))
	}))
	t.Cleanup(v.Close)
	return v
}

// sends returns a reply in pieces, each sent at once. A piece "cut" breaks the connection.
func sends(contentType string, pieces ...string) func(int, http.ResponseWriter, *http.Request, string) {
	return func(_ int, w http.ResponseWriter, _ *http.Request, _ string) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for _, piece := range pieces {
			if piece == "cut" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// spokenText has 40 characters.
var spokenText = strings.Repeat("0123456789", 4)

// speechCase is an answer of a line and what the client gets and pays.
type speechCase struct {
	name    string
	price   map[string]any
	more    map[string]any // of the model
	request string         // further members
	reply   func(int, http.ResponseWriter, *http.Request, string)
	status  int
	want    string // body, or the code of an error
	cut     bool   // the answer breaks off
	cost    money.Amount
	source  string
	sent    string         // in the body to the line
	line    map[string]any // of another vendor, instead of reply
}

// soundEvents returns events with pieces of sound, and a last event with usage if usage is not empty.
func soundEvents(usage string, pieces ...string) string {
	var out strings.Builder
	for _, piece := range pieces {
		fmt.Fprintf(&out, "data: {\"type\":\"speech.audio.delta\",\"audio\":%q}\n\n", base64.StdEncoding.EncodeToString([]byte(piece)))
	}
	if usage != "" {
		fmt.Fprintf(&out, "data: {\"type\":\"speech.audio.done\",\"usage\":%s}\n\n", usage)
	}
	return out.String()
}

func speechCases() []speechCase {
	byCharacters, byMinutes := map[string]any{"characters": 15}, map[string]any{"minutes": 0.06}
	byTokens := map[string]any{"input": 1, "output_audio": 10}
	tokens := map[string]any{"max_output_tokens": 1000}
	const character, second = 15_000, 1_000_000 // nano-dollars
	sound := strings.Repeat("s", 40_000)
	return []speechCase{
		{name: "characters", price: byCharacters, request: `,"speed":2,"unheard_of":1`, reply: sends("audio/mpeg", "abc", "def"), status: 200,
			want: "abcdef", cost: 40 * character, source: "gateway", sent: `"voice":"alloy","input":"` + spokenText + `","speed":2}`},
		{name: "another type", price: byCharacters, reply: sends("application/octet-stream", "{not json"), status: 200, want: "{not json",
			cost: 40 * character, source: "gateway"},
		{name: "wide", price: byCharacters, more: map[string]any{"wide_characters": 2, "max_characters": 41}, request: `,"input":"中a"`,
			reply: sends("audio/mpeg", "a"), status: 200, want: "a", cost: 3 * character, source: "gateway"},
		{name: "broken off", price: byCharacters, reply: sends("audio/mpeg", sound[:16_001], "cut"), cut: true, status: 200, want: sound[:16_000],
			cost: 16 * character, source: "gateway"},
		{name: "minutes", price: byMinutes, more: map[string]any{"max_seconds": 9}, request: `,"response_format":"pcm"`,
			reply: sends("audio/pcm", sound, sound, sound), status: 200, want: sound + sound + sound, cost: 3 * second, source: "gateway"},
		{name: "more minutes than held", price: byMinutes, more: map[string]any{"max_seconds": 2}, reply: sends("audio/mpeg", sound),
			status: 200, want: sound, cost: 2 * second, source: "gateway"},
		{name: "tokens", price: byTokens, more: tokens,
			reply: sends("text/event-stream", soundEvents(`{"input_tokens":9,"output_tokens":70}`, "ab", "c")), status: 200,
			want: "abc", cost: 9*1000 + 70*10_000, source: "provider", sent: `"stream_format":"sse"}`},
		{name: "tokens without usage", price: byTokens, more: tokens, reply: sends("text/event-stream", soundEvents(`{}`, sound)),
			status: 200, want: sound, cost: 14*1000 + 3*32*10_000, source: "gateway"},
		{name: "absurd tokens", price: byTokens, more: tokens,
			reply:  sends("text/event-stream", soundEvents(`{"input_tokens":900,"output_tokens":1001}`, "a")),
			status: 200, want: "a", cost: 14*1000 + 32*10_000, source: "gateway"},
		{name: "events", price: byCharacters, request: `,"stream_format":"sse"`,
			reply:  sends("text/event-stream", soundEvents("", "ab"), soundEvents(`{"input_tokens":1}`)),
			status: 200, want: soundEvents(`{"input_tokens":1}`, "ab"), cost: 40 * character, source: "gateway"},
		{name: "events that break off", price: byCharacters, request: `,"stream_format":"sse"`,
			reply: sends("text/event-stream", soundEvents("", "ab"), "cut"), status: 200,
			want: soundEvents("", "ab") + `data: {"type":"error"`, cost: 16 * character, source: "gateway"},
		{name: "no byte", price: byCharacters, reply: sends("audio/mpeg"), status: 502, want: "empty_completion"},
		{name: "JSON", price: byCharacters, reply: sends("application/json", `{"result":1}`), status: 502, want: "upstream_unavailable"},
		{name: "JSON as sound", price: byCharacters, reply: sends("application/octet-stream", `{"error":{"message":"down"}}`), status: 502,
			want: "upstream"},
		{name: "a page", price: byCharacters, reply: sends("text/html", `<html>busy</html>`), status: 502, want: "upstream"},
		{name: "sound for events", price: byCharacters, request: `,"stream_format":"sse"`, reply: sends("audio/mpeg", "abc"), status: 502,
			want: "upstream_unavailable"},
	}
}

func (c speechCase) scenario(t *testing.T) scene.Scenario {
	v := newRawVendor(t, c.reply)
	id := "speech-" + strings.ReplaceAll(c.name, " ", "-")
	model := map[string]any{"id": id, "kind": "speech", "price": c.price}
	for key, value := range c.more {
		model[key] = value
	}
	return scenario(c.name, model, func(t *testing.T, g *scene.Gateway) {
		account, key := g.Process.Account(1, nil)
		input := `,"input":"` + spokenText + `"`
		if strings.Contains(c.request, `"input"`) {
			input = ""
		}
		answer, err := scene.Do(t.Context(), http.DefaultClient, "POST", g.Process.URL+"/v1/audio/speech",
			`{"model":"`+id+`","voice":"alloy"`+input+c.request+`}`, "Authorization", "Bearer "+key, "Content-Type", "application/json")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if (err != nil) != c.cut {
			t.Errorf("reading the answer returned %v, want an error: %v", err, c.cut)
		}
		got := string(raw)
		if answer.StatusCode != c.status || c.status == 200 && !strings.HasPrefix(got, c.want) || !strings.Contains(got, c.want) {
			t.Errorf("got %d %.200s, want %d %.200s", answer.StatusCode, got, c.status, c.want)
		}
		if answer.StatusCode == 200 && answer.ContentLength >= 0 {
			t.Errorf("Content-Length is %d, want none", answer.ContentLength)
		}
		if sent := v.asked(); c.line == nil && (len(sent) == 0 || !strings.Contains(sent[0], c.sent) || strings.Contains(sent[0], "unheard_of")) {
			t.Errorf("the line got %q, want %s in it", sent, c.sent)
		}
		scene.Eventually(t, "the hold is ended", func() bool { return g.Process.FundsOf(account).Held == 0 })
		if f := g.Process.FundsOf(account); f.Balance != money.USD-c.cost {
			t.Errorf("the charge is %s, want %s", money.USD-f.Balance, c.cost)
		}
		if r := receiptOf(t, g, account, answer.Header.Get("x-request-id")); r.Source != c.source || r.Endpoint != "/v1/audio/speech" {
			t.Errorf("receipt: got %+v, want a count by %q", r, c.source)
		}
	}, scene.ChatLine(id, v.URL, c.line, id))
}

// TestSpeech compares answers and charges of all sorts of answers, on both databases.
func TestSpeech(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, nil)
		var scenarios []scene.Scenario
		for _, c := range append(speechCases(), vendorSpeech(t)...) {
			scenarios = append(scenarios, c.scenario(t))
		}
		scene.Play(t, g, append(scenarios, speechFailover(t)))
	})
}

// speechFailover checks the next line's answer in place of one without sound.
func speechFailover(t *testing.T) scene.Scenario {
	bad := newRawVendor(t, sends("application/json", `{"status":"busy"}`))
	good := newRawVendor(t, sends("application/octet-stream", "some sound"))
	model := map[string]any{"id": "spare", "kind": "speech", "price": map[string]any{"characters": 15}}
	first, second := scene.ChatLine("spare", bad.URL, nil, "spare"), scene.ChatLine("spare-2", good.URL, nil, "spare")
	first["priority"], second["priority"] = 1, 2
	return scenario("failover", model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/audio/speech", `{"model":"spare","voice":"v","input":"hello","response_format":"opus"}`)
		if a.Status != 200 || a.Raw != "some sound" || a.Header.Get("Content-Type") != "audio/opus" {
			t.Errorf("got %d %q of type %q, want the second line's sound", a.Status, a.Raw, a.Header.Get("Content-Type"))
		}
		c.CheckCharge(a, 5*15_000)
	}, first, second)
}
