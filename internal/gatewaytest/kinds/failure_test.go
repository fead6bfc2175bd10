package kinds

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestKilledAndLeft sends a request of each kind and breaks all of them off while the provider answers:
// first the clients disconnect, then the process is killed. A whole answer is not charged, a streamed one
// for what the client got. No hold is left, and the audit finds no difference.
func TestKilledAndLeft(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		var answering atomic.Bool // false while the providers stall
		n := scene.NewNode(t, scene.Binary(t), database, map[string]string{"node_lease": "1s"})
		var calls []*brokenCall
		var models, lines []map[string]any
		streams := 0
		for _, k := range append(wholeCalls(t), streamedCalls(t)...) {
			c := &brokenCall{kindCall: k, node: n}
			c.account, c.key = n.Account(1, nil)
			v := newRawVendor(t, c.reply(&answering))
			calls, models, lines = append(calls, c), append(models, k.model), append(lines, scene.ChatLine(k.name, v.URL, nil, k.name))
			if k.start != "" {
				streams++
			}
		}
		n.SetCatalog(models, lines)
		ended := func(how string, charged func(*brokenCall) money.Amount) {
			t.Helper()
			for _, c := range calls {
				scene.Eventually(t, c.name+": the hold is ended", func() bool { return n.FundsOf(c.account).Held == 0 })
				if got, want := money.USD-n.FundsOf(c.account).Balance, charged(c); got != want {
					t.Errorf("%s, %s: %s USD are charged in all, want %s", c.name, how, got, want)
				}
			}
		}

		end := begin(t, calls)
		end()
		ended("the client left", func(c *brokenCall) money.Amount { return c.delivered })

		end = begin(t, calls)
		db := scene.OpenDatabase(t, database)
		scene.Eventually(t, "the progress of each stream is recorded", func() bool {
			reported := 0
			if err := db.QueryRow("SELECT COUNT(*) FROM ledger_hold WHERE cost_nano > 0").Scan(&reported); err != nil {
				t.Fatal(err)
			}
			return reported == streams
		})
		n.Kill()
		end()
		n.Restart()
		ended("the process was killed", func(c *brokenCall) money.Amount { return 2 * c.delivered })

		answering.Store(true)
		for _, c := range calls {
			if status, cut := c.send(t.Context(), nil); status != http.StatusOK || cut {
				t.Errorf("%s: after the restart: status %d, cut %t, want a whole answer", c.name, status, cut)
			}
		}
		ended("the restarted process answered", func(c *brokenCall) money.Amount { return 2*c.delivered + c.charged })
		n.CheckStop(t)
		scene.CheckBooks(t, n.Binary, n.Settings)
	})
}

// kindCall is a request of a kind with the answer of its provider, its hold and its charges.
type kindCall struct {
	name               string // also of the model
	model              map[string]any
	path, body         string
	contentType        string // of the body
	answerType         string
	start              string       // of a streamed answer
	got                int          // bytes that the client gets of start
	answer             string       // or its rest, after start
	held               money.Amount // while the provider answers
	delivered, charged money.Amount // for start, and for the whole answer
	probe              string       // part of the probe's body
}

// wholeCalls returns a request of each kind, with a whole answer.
func wholeCalls(t *testing.T) []kindCall {
	_, vector := vectors(1, `{"prompt_tokens":4}`)
	whole := func(name, path, body, answer string, held, charged money.Amount, probe string, model map[string]any) kindCall {
		model["id"], model["kind"] = name, name
		return kindCall{name: name, model: model, path: path, body: body, contentType: "application/json", answerType: "application/json",
			answer: answer, held: held, charged: charged, probe: probe}
	}
	speech := whole("speech", "/v1/audio/speech", `{"model":"speech","voice":"v","input":"hello"}`, "sound", 5*15_000, 5*15_000,
		`"model":"vendor-speech"`, map[string]any{"price": map[string]any{"characters": 15}})
	speech.answerType = "audio/mpeg"
	transcription := whole("transcription", "/v1/audio/transcriptions", "", `{"text":"hi","usage":{"seconds":2}}`, 3_000_000, 2_000_000,
		"\r\n\r\nvendor-transcription\r\n", map[string]any{"price": map[string]any{"minutes": 0.06}})
	transcription.body, transcription.contentType = formBody(t, formPart{"model", "transcription"}, formPart{"file", wavFile(20_000)})
	return []kindCall{
		whole("embedding", "/v1/embeddings", `{"model":"embedding","input":"hello"}`, vector, 13*tokenPrice, 4*tokenPrice,
			`{"model":"vendor-embedding","input":"ping"}`, inputModel("", nil)),
		whole("rerank", "/v2/rerank", `{"model":"rerank","query":"q","documents":["a","b"]}`, "{"+ranked+"}", 2_000_000, 2_000_000,
			`{"model":"vendor-rerank","query":"ping","documents":["ping"]}`, map[string]any{"price": map[string]any{"searches": 2}}),
		whole("moderation", "/v1/moderations", `{"model":"moderation","input":"hello"}`, "{"+judged+"}", 500_000, 500_000,
			`{"model":"vendor-moderation","input":"ping"}`, moderationModel("", nil)),
		speech, transcription,
	}
}

// streamedCalls returns a request for each sort of streamed answer.
func streamedCalls(t *testing.T) []kindCall {
	const second = 1_000_000 // nano-dollars
	sound := strings.Repeat("s", 40_000)
	stream := func(name, kind, answerType, start, answer string, price map[string]any, more map[string]any) kindCall {
		model := map[string]any{"id": name, "kind": kind, "price": price}
		maps.Copy(model, more)
		return kindCall{name: name, model: model, path: "/v1/audio/speech", contentType: "application/json", answerType: answerType, start: start,
			got: len(start), answer: answer, body: `{"model":"` + name + `","voice":"v","input":"` + spokenText + `"`}
	}
	file := stream("sound", "speech", "audio/mpeg", sound[:16_001], sound, map[string]any{"characters": 15}, nil)
	file.got = 16_000 // the last byte is held back
	file.body += "}"
	file.held, file.delivered, file.charged = 40*15_000, 16*15_000, 40*15_000

	events := stream("sound-events", "speech", "text/event-stream", soundEvents("", sound), soundEvents(`{"input_tokens":1}`),
		map[string]any{"minutes": 0.06}, map[string]any{"max_seconds": 9})
	events.body += `,"stream_format":"sse"}`
	events.held, events.delivered, events.charged = 9*second, 3*second, 3*second

	decoded := stream("sound-of-events", "speech", "text/event-stream", soundEvents("", sound),
		soundEvents(`{"input_tokens":9,"output_tokens":70}`, "s"), map[string]any{"input": 1, "output_audio": 10},
		map[string]any{"max_output_tokens": 1000})
	decoded.got = len(sound)
	decoded.body += "}"
	decoded.held, decoded.delivered, decoded.charged = 48*1000+1000*10_000, 14*1000+3*32*10_000, 9*1000+70*10_000

	const delta = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"hi\"}\n\n"
	heard := func(name, usage string, price, more map[string]any) kindCall {
		c := stream(name, "transcription", "text/event-stream", delta,
			"data: {\"type\":\"transcript.text.done\",\"text\":\"hi\",\"usage\":"+usage+"}\n\n", price, more)
		c.path = "/v1/audio/transcriptions"
		c.body, c.contentType = formBody(t, formPart{"model", name}, formPart{"stream", "true"}, formPart{"file", wavFile(20_000)})
		return c
	}
	minutes := heard("text-events", `{"seconds":2}`, map[string]any{"minutes": 0.06}, nil)
	minutes.held, minutes.delivered, minutes.charged = 3*second, 3*second, 2*second
	tokens := heard("text-tokens", `{"input_tokens":50,"output_tokens":7}`, map[string]any{"input_audio": 2, "output": 10},
		map[string]any{"max_output_tokens": 100})
	tokens.held, tokens.delivered, tokens.charged = (3*32+8)*2000+100*10_000, 3*32*2000+1*10_000, 50*2000+7*10_000
	return []kindCall{file, events, decoded, minutes, tokens}
}

// brokenCall sends a request that breaks off.
type brokenCall struct {
	kindCall
	node         *scene.Node
	account, key string
	stalled      atomic.Bool // the provider has stalled
}

// reply returns the provider's answer. It stops after start until answering is true.
func (c *brokenCall) reply(answering *atomic.Bool) func(int, http.ResponseWriter, *http.Request, string) {
	return func(_ int, w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", c.answerType)
		_, _ = io.WriteString(w, c.start)
		if !answering.Load() {
			if c.start != "" {
				_ = http.NewResponseController(w).Flush()
			}
			c.stalled.Store(true)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, c.answer)
	}
}

// send sends the request and reads the answer to its end. It returns the status, or 0 without an answer,
// and whether the answer broke off. It calls began after the bytes of start.
func (c *brokenCall) send(ctx context.Context, began func()) (status int, cut bool) {
	answer, err := scene.Do(ctx, c.node.Client, "POST", c.node.URL+c.path, c.body,
		"Authorization", "Bearer "+c.key, "Content-Type", c.contentType)
	if err != nil {
		return 0, true
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, int64(c.got)) // an error comes again
	if began != nil {
		began()
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err != nil
}

// begin sends all requests and waits until their providers stall and the clients of streams have the
// start. end disconnects the clients and waits for their ends.
func begin(t *testing.T, calls []*brokenCall) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var began sync.WaitGroup
	for _, c := range calls {
		var hasBegun func()
		if c.start != "" {
			began.Add(1)
			hasBegun = sync.OnceFunc(began.Done)
		}
		group.Go(func() {
			if hasBegun != nil {
				defer hasBegun()
			}
			if status, cut := c.send(ctx, hasBegun); status != 0 && c.start == "" || !cut {
				t.Errorf("%s: status %d, cut %t, want an answer that breaks off", c.name, status, cut)
			}
		})
	}
	for _, c := range calls {
		scene.Eventually(t, c.name+": the provider is asked", func() bool { return c.stalled.CompareAndSwap(true, false) })
		if f := c.node.FundsOf(c.account); f.Held != c.held {
			t.Errorf("%s: %s USD are held, want the bound, %s", c.name, f.Held, c.held)
		}
	}
	began.Wait()
	return func() {
		cancel()
		group.Wait()
	}
}

// TestProbe checks the probe of a failing line: a call of the model's kind. The model is then
// out on the line until the operator resumes it.
func TestProbe(t *testing.T) {
	t.Parallel()
	for _, k := range wholeCalls(t) {
		t.Run(k.name, func(t *testing.T) { probed(t, k) })
	}
}

func probed(t *testing.T, k kindCall) {
	t.Parallel()
	repaired := make(chan struct{})
	v := newRawVendor(t, func(n int, w http.ResponseWriter, r *http.Request, body string) {
		select {
		case <-repaired:
			sends(k.answerType, k.answer)(n, w, r, body)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"error":{"message":"The model does not exist.","type":"invalid_request_error","code":"model_not_found"}}`)
		}
	})
	g := scene.Open(t, scene.Binary(t), storetest.SQLite(t), nil)
	g.SetCatalog([]map[string]any{k.model}, []map[string]any{scene.ChatLine("main", v.URL, nil, k.name)})
	c := newClient(t, g)
	post := func() scene.FormAnswer { return c.Post(k.path, k.body, "Content-Type", k.contentType) }
	if a := post(); a.Status != http.StatusBadGateway {
		t.Errorf("while the provider lacks the model: %d %s, want 502", a.Status, a.Raw)
	}
	scene.Eventually(t, "the line is probed with a request of the kind", func() bool {
		return slices.ContainsFunc(v.asked()[1:], func(body string) bool { return strings.Contains(body, k.probe) })
	})
	scene.Eventually(t, "the model is out on the line", func() bool {
		var lines struct{ Data []scene.LineState }
		g.Process.Admin("GET", "/lines", nil, &lines)
		out := lines.Data[0].ModelsOut
		return len(out) == 1 && out[0].Model == k.name
	})
	close(repaired)
	g.Process.Admin("POST", "/lines/main/resume", map[string]any{}, nil)
	a := post()
	if a.Status != http.StatusOK {
		t.Errorf("after the resumption: %d %s, want 200", a.Status, a.Raw)
	}
	c.CheckCharge(a, k.charged)
}
