package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"

	"golang.org/x/tools/txtar"
)

// someAnswer returns the identity of the answers in all tests.
func someAnswer() wire.Identity {
	return wire.Identity{Request: "req_0001", Model: "swift-1", Created: 1700000000}
}

// TestGeminiScenarios tests the files of testdata: the line's request (sent), the client's answer
// (answer), and the meter's result (judged).
func TestGeminiScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/chatgemini/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given := map[string][]byte{}
			for _, f := range archive.Files {
				given[f.Name] = f.Data
			}
			got := playGemini(t, given)
			if *update {
				writeScenario(t, file, archive, got)
				return
			}
			for name, want := range given {
				if out, golden := got[name]; golden && out != string(want) {
					t.Errorf("%s:\n%s\nwant:\n%s", name, out, want)
				}
			}
			for name := range got {
				if _, there := given[name]; !there {
					t.Errorf("the scenario has no section %s: run with -update", name)
				}
			}
		})
	}
}

// writeScenario writes the golden sections after the given ones.
func writeScenario(t *testing.T, file string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	out := &txtar.Archive{Comment: archive.Comment}
	add := func(name string, data []byte) { out.Files = append(out.Files, txtar.File{Name: name, Data: data}) }
	for _, f := range archive.Files {
		if _, golden := got[f.Name]; !golden {
			add(f.Name, f.Data)
			if f.Name == "request" {
				add("sent", []byte(got["sent"]))
			}
		}
	}
	add("answer", []byte(got["answer"]))
	add("judged", []byte(got["judged"]))
	if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

// playGemini returns the results of one scenario.
func playGemini(t *testing.T, given map[string][]byte) map[string]string {
	t.Helper()
	r, err := completions.Open(bytes.TrimSpace(given["request"]))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	translation := wire.Translation{Edits: wire.Edits{Model: "gemini-3-flash"}}
	if raw := given["translation"]; raw != nil {
		if err := json.Unmarshal(raw, &translation); err != nil {
			t.Fatal(err)
		}
	}
	sent, err := pairtest.Body(New(r, wire.FormGemini, wire.Identity{}), translation)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(sent) {
		t.Errorf("sends no JSON: %s", sent)
	}
	got := map[string]string{"sent": string(sent) + "\n"}
	if r.Stream {
		got["answer"], got["judged"] = playGeminiStream(t, string(given["upstream"]), r)
	} else {
		got["answer"], got["judged"] = playGeminiWhole(t, given["upstream"], r)
	}
	return got
}

// failureOf returns the classification by package upstream of an error inside an answer.
func failureOf(e *wire.ProviderError) *upstream.Failure {
	if e.Body != nil {
		if f := upstream.Classify(200, "application/json", e.Body, nil); f != nil {
			return f
		}
	}
	return upstream.Fail(fault.UpstreamUnavailable, e)
}

func playGeminiStream(t *testing.T, stream string, r *completions.Request) (answer, judged string) {
	t.Helper()
	events, meter := sse.NewReader(strings.NewReader(stream), 1<<20), gemini.NewMeter(r.N)
	_, writer := New(r, wire.FormGemini, someAnswer()).Events()
	var out []byte
	var marks strings.Builder
	var failure *upstream.Failure
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := meter.Read(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&marks, "token %t finish %t finished %t usage %t\n", f.Token, f.Finish, f.Finished, f.Usage)
		if f.Err != nil {
			failure = failureOf(f.Err)
			break
		}
		out = writer.Append(out, e, f)
	}
	if failure == nil && !meter.Complete() {
		failure = upstream.Fail(fault.UpstreamConnectionError, errors.New("the stream ended early"))
	}
	u, known := meter.Usage()
	if failure != nil {
		out = writer.Fail(out, failure.FaultInStream())
		fmt.Fprintf(&marks, "failure %s, line %s, wait %s\n", failure.Code, failure.Health, failure.RetryAfter)
	} else {
		out = writer.End(out, u)
	}
	checkChatStream(t, out, failure == nil)
	fmt.Fprintf(&marks, "usage %t %s\ncomplete %t filtered %t limited %t\ntext %q\n",
		known, counts(u), meter.Complete(), meter.Filtered(), meter.Limited(), meter.Text())
	return strings.TrimRight(string(out), "\n") + "\n", marks.String()
}

// counts formats a usage. Gemini never reports its cost.
func counts(u wire.Usage) string {
	return strings.TrimSuffix(fmt.Sprintf("%+v", u), " CostNano:0 HasCost:false CacheSplit:false}") + "}"
}

func playGeminiWhole(t *testing.T, body []byte, r *completions.Request) (answer, summary string) {
	t.Helper()
	a, err := gemini.ReadAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	u, known := a.Usage()
	summary = fmt.Sprintf("content %t reasoning %t limited %t filtered %t\nusage %t %s\ntext %q\n",
		a.Summary().Content, a.Summary().Reasoning, a.Summary().Limited, a.Summary().Filtered, known, counts(u), a.Text())
	if a.Summary().Err != nil {
		f := failureOf(a.Summary().Err)
		return "\n", summary + fmt.Sprintf("failure %s, line %s, wait %s\n", f.Code, f.Health, f.RetryAfter)
	}
	pieces, err := New(r, wire.FormGemini, someAnswer()).Render(a, body, u)
	out := pieces[0]
	if err != nil {
		t.Fatal(err)
	}
	again, err := completions.ReadAnswer(out)
	if err != nil || !json.Valid(out) {
		t.Fatalf("%v: %s", err, out)
	}
	if again.Summary().Content != a.Summary().Content || again.Summary().Reasoning != a.Summary().Reasoning || again.Summary().Err != nil {
		t.Errorf("read back as %+v of %+v", *again.Summary(), *a.Summary())
	}
	if back, _ := again.Usage(); back.Prompt != u.Prompt || back.Completion != u.Completion || back.Cached != u.Cached ||
		back.Reasoning != u.Reasoning {
		t.Errorf("usage %+v read back as %+v", u, back)
	}
	return string(out) + "\n", summary
}

// chunk is a frame of a chat-completions stream as read by a strict client.
type chunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created *int64          `json:"created"`
	Model   string          `json:"model"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index int `json:"index"`
		Delta *struct {
			Role             string          `json:"role"`
			Content          *string         `json:"content"`
			ReasoningContent *string         `json:"reasoning_content"`
			Images           json.RawMessage `json:"images"`
			ToolCalls        []struct {
				Index    *int   `json:"index"`
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      *string `json:"name"`
					Arguments *string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

// checkChatStream checks a stream by the rules of the chat-completions form: one identity, roles
// first, calls whole and numbered from 0, nothing of a choice after its end, and [DONE] last if and
// only if it is complete.
func checkChatStream(t *testing.T, stream []byte, complete bool) {
	t.Helper()
	events := sse.NewReader(bytes.NewReader(stream), len(stream)+1)
	begun, ended, calls, ids := map[int]bool{}, map[int]bool{}, map[int]int{}, map[string]bool{}
	var done, failed bool
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		if e.Data == nil {
			continue
		}
		if done || failed {
			t.Fatalf("%q follows the end", e.Data)
		}
		if string(e.Data) == "[DONE]" {
			done = true
			continue
		}
		var c chunk
		if err := json.Unmarshal(e.Data, &c); err != nil {
			t.Fatalf("%v: %q", err, e.Data)
		}
		if c.Error != nil {
			failed = true
			continue
		}
		if c.ID != "chatcmpl-0001" || c.Object != "chat.completion.chunk" || c.Created == nil || c.Model != "swift-1" || c.Choices == nil {
			t.Fatalf("not the stream's identity: %s", e.Data)
		}
		for _, choice := range c.Choices {
			i := choice.Index
			if choice.Delta == nil || ended[i] || begun[i] != (choice.Delta.Role == "") {
				t.Fatalf("choice %d: begun %t, ended %t: %s", i, begun[i], ended[i], e.Data)
			}
			begun[i], ended[i] = true, choice.FinishReason != nil
			for _, call := range choice.Delta.ToolCalls {
				if call.Index == nil || *call.Index != calls[i] || call.ID == "" || ids[call.ID] || call.Type != "function" ||
					call.Function.Name == nil || call.Function.Arguments == nil || !json.Valid([]byte(*call.Function.Arguments)) {
					t.Fatalf("call %d of choice %d: %s", calls[i], i, e.Data)
				}
				ids[call.ID] = true
				calls[i]++
			}
			if ended[i] && (*choice.FinishReason == "tool_calls") != (calls[i] > 0) &&
				(*choice.FinishReason == "stop" || *choice.FinishReason == "tool_calls") {
				t.Fatalf("%d calls end with %s", calls[i], *choice.FinishReason)
			}
		}
	}
	if done != complete || failed == complete {
		t.Fatalf("complete %t, done %t, failed %t: %q", complete, done, failed, stream)
	}
	for i := range begun {
		if complete && !ended[i] {
			t.Fatalf("choice %d has no end: %q", i, stream)
		}
	}
}

// geminiWriter returns the writer of a chat stream from a Gemini line.
func geminiWriter(includeUsage bool) wire.Writer {
	r := &completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: includeUsage}}}
	_, w := New(r, wire.FormGemini, someAnswer()).Events()
	return w
}

// wholeOfGemini translates a whole answer of Gemini into a chat completion.
func wholeOfGemini(raw []byte, u wire.Usage) ([]byte, error) {
	pieces, err := New(&completions.Request{}, wire.FormGemini, someAnswer()).Render(nil, raw, u)
	return pieces[0], err
}
