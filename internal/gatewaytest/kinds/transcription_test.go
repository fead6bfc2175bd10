package kinds

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// wavFile returns a WAV file of 8,000 bytes a second.
func wavFile(bytesOfSound int) string {
	var out bytes.Buffer
	out.WriteString("RIFF")
	for _, part := range []any{uint32(36 + bytesOfSound), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000),
		uint16(1), uint16(8), []byte("data"), uint32(bytesOfSound), make([]byte, bytesOfSound)} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a bytes.Buffer never fails
	}
	return out.String()
}

// lyingFile returns a WAV file whose header says another number of bytes of sound.
func lyingFile(bytesOfSound int, says uint32) string {
	file := []byte(wavFile(bytesOfSound))
	binary.LittleEndian.PutUint32(file[40:], says)
	return string(file)
}

// formPart is a text field, or the file if name is "file".
type formPart struct{ name, value string }

// formBody returns a form and its content type.
func formBody(t *testing.T, parts ...formPart) (body, contentType string) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, p := range parts {
		head := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q`, p.name)}}
		if p.name == "file" {
			head = textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="dir/talk.wav"`}, "Content-Type": {"audio/wav"}}
		}
		part, err := w.CreatePart(head)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, p.value) // a bytes.Buffer never fails
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), w.FormDataContentType()
}

// transcriptionCase is an answer of a line and what the client gets and pays.
type transcriptionCase struct {
	name   string
	model  map[string]any
	file   string
	fields []formPart
	path   string // default /v1/audio/transcriptions
	reply  func(int, http.ResponseWriter, *http.Request, string)
	status int
	want   string // body, or part of an error
	cost   money.Amount
	source string
	line   map[string]any // of another vendor, instead of reply
}

func transcriptionCases() []transcriptionCase {
	byMinutes := map[string]any{"price": map[string]any{"minutes": 0.06}}
	byTokens := map[string]any{"price": map[string]any{"input_audio": 2, "output": 10}, "max_output_tokens": 100}
	const second = 1_000_000 // nano-dollars
	file := wavFile(20_000)  // 2.5 s
	answer := func(members string) func(int, http.ResponseWriter, *http.Request, string) {
		return sends("application/json", `{"text":"hi"`+members+`}`)
	}
	minutes := func(name, members string, cost money.Amount, source string) transcriptionCase {
		return transcriptionCase{name: name, model: byMinutes, file: file, reply: answer(members), status: 200,
			want: `{"text":"hi"` + members + `}`, cost: cost, source: source}
	}
	tokens := func(name, members string, cost money.Amount, source string) transcriptionCase {
		c := minutes(name, members, cost, source)
		c.model = byTokens
		return c
	}
	refused := func(name, want string, status int, file string, fields ...formPart) transcriptionCase {
		limited := map[string]any{"price": map[string]any{"minutes": 0.06}, "max_seconds": 10, "max_file_mb": 1}
		return transcriptionCase{name: name, model: limited, file: file,
			fields: fields, reply: answer(""), status: status, want: want}
	}
	const delta, done = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"hi\"}\n\n",
		"data: {\"type\":\"transcript.text.done\",\"text\":\"hi\",\"usage\":{\"seconds\":2}}\n\n"
	return []transcriptionCase{
		minutes("usage", `,"usage":{"type":"duration","seconds":2}`, 2*second, "provider"),
		minutes("duration", `,"duration":1.2`, 2*second, "provider"),
		minutes("duration in a string", `,"duration":"1.2"`, 2*second, "provider"),
		minutes("one second more", `,"usage":{"seconds":4}`, 3*second, "provider"),
		minutes("absurd", `,"usage":{"seconds":4.1}`, 3*second, "gateway"),
		minutes("zero", `,"usage":{"seconds":0}`, 3*second, "gateway"),
		minutes("negative", `,"usage":{"seconds":-2}`, 3*second, "gateway"),
		minutes("tokens for minutes", `,"usage":{"input_tokens":1,"output_tokens":1}`, 3*second, "gateway"),
		minutes("none", ``, 3*second, "gateway"),
		tokens("tokens", `,"usage":{"input_tokens":50,"output_tokens":7,"input_token_details":{"audio_tokens":40,"text_tokens":0}}`,
			40*2000+7*10_000, "provider"),
		tokens("tokens of sound alone", `,"usage":{"input_tokens":50,"output_tokens":0}`, 50*2000, "provider"),
		tokens("absurd tokens", `,"usage":{"input_tokens":97,"output_tokens":101}`, 96*2000+1*10_000, "both"),
		tokens("no tokens", ``, 96*2000+1*10_000, "gateway"),
		{name: "least", model: map[string]any{"price": map[string]any{"minutes": 0.06}, "min_seconds": 10}, file: file,
			reply: answer(`,"usage":{"seconds":2}`), status: 200, want: `"seconds":2`, cost: 10 * second, source: "provider"},
		{name: "a header of one second", model: byMinutes, file: lyingFile(80_000, 8000), reply: answer(`,"usage":{"seconds":11}`), status: 200,
			want: `"hi"`, cost: 10 * second, source: "provider"},
		{name: "a header of a thousand hours", model: byMinutes, file: lyingFile(20_000, math.MaxUint32-1), reply: answer(""), status: 200,
			want: `"hi"`, cost: 3 * second, source: "gateway"},
		{name: "unreadable headers", model: byMinutes, file: strings.Repeat("x", 16_001), reply: answer(""), status: 200, want: `"hi"`,
			cost: 3 * second, source: "gateway"},
		{name: "the last time", model: byMinutes, file: strings.Repeat("x", 16_001), fields: []formPart{{"response_format", "srt"}},
			reply: sends("text/plain", "1\n00:00:00,000 --> 00:00:07,500\nhi\n"), status: 200, want: "1\n00:00:00,000 --> 00:00:07,500\nhi\n",
			cost: 8 * second, source: "gateway"},
		{name: "events", model: byMinutes, file: file, fields: []formPart{{"stream", "true"}}, reply: sends("text/event-stream", delta, done),
			status: 200, want: delta + done, cost: 2 * second, source: "provider"},
		{name: "whole in place of events", model: byMinutes, file: file, fields: []formPart{{"stream", "true"}}, reply: answer(""),
			status: 200, want: `{"text":"hi"}`, cost: 3 * second, source: "gateway"},
		{name: "events without an end", model: byMinutes, file: file, fields: []formPart{{"stream", "true"}},
			reply: sends("text/event-stream", delta), status: 200, want: delta + `data: {"type":"error"`, cost: 3 * second, source: "gateway"},
		{name: "translation", model: map[string]any{"price": map[string]any{"minutes": 0.06}, "translations": true}, file: file,
			path: "/v1/audio/translations", reply: answer(""), status: 200, want: `"hi"`, cost: 3 * second, source: "gateway"},
		{name: "no translations", model: byMinutes, file: file, path: "/v1/audio/translations", reply: answer(""), status: 400,
			want: "model_not_found"},
		{name: "no text", model: byMinutes, file: file, reply: sends("application/json", `{"status":"busy"}`), status: 502,
			want: "upstream_unavailable"},
		{name: "rejected", model: byMinutes, file: file, reply: func(_ int, w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Invalid file format.","type":"invalid_request_error","param":"file","code":"bad_file"}}`)
		}, status: 400, want: "Invalid file format."},
		refused("too long", `"param":"file"`, 400, wavFile(90_000)),
		refused("too large", `"code":"request_too_large"`, 413, strings.Repeat("x", 1<<20+1)),
		refused("empty", `"param":"file"`, 400, ""),
		refused("an address", `"param":"url"`, 400, file, formPart{"url", "https://example.com/a.wav"}),
		refused("twice", `"param":"language"`, 400, file, formPart{"language", "en"}, formPart{"language", "de"}),
		refused("format", `"param":"response_format"`, 400, file, formPart{"response_format", "docx"}),
		refused("temperature", `"param":"temperature"`, 400, file, formPart{"temperature", "1.5"}),
		refused("stream", `"param":"stream"`, 400, file, formPart{"stream", "yes"}),
	}
}

func (c transcriptionCase) scenario(t *testing.T) scene.Scenario {
	v := newRawVendor(t, c.reply)
	id := "hear-" + strings.ReplaceAll(c.name, " ", "-")
	model := map[string]any{"id": id, "kind": "transcription"}
	for key, value := range c.model {
		model[key] = value
	}
	return scenario(c.name, model, func(t *testing.T, g *scene.Gateway) {
		account, key := g.Process.Account(1, nil)
		body, contentType := formBody(t, append([]formPart{{"model", id}, {"file", c.file}}, c.fields...)...)
		path := c.path
		if path == "" {
			path = "/v1/audio/transcriptions"
		}
		answer, err := scene.Do(t.Context(), http.DefaultClient, "POST", g.Process.URL+path, body,
			"Authorization", "Bearer "+key, "Content-Type", contentType)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if got := string(raw); err != nil || answer.StatusCode != c.status || !strings.Contains(got, c.want) {
			t.Errorf("got %d %.300s (%v), want %d %s", answer.StatusCode, got, err, c.status, c.want)
		}
		scene.Eventually(t, "the hold is ended", func() bool { return g.Process.FundsOf(account).Held == 0 })
		if f := g.Process.FundsOf(account); f.Balance != money.USD-c.cost {
			t.Errorf("the charge is %s, want %s", money.USD-f.Balance, c.cost)
		}
		if c.status != 200 {
			return
		}
		if r := receiptOf(t, g, account, answer.Header.Get("x-request-id")); r.Source != c.source || r.Endpoint != path {
			t.Errorf("receipt: got %+v, want a count by %q", r, c.source)
		}
	}, scene.ChatLine(id, v.URL, c.line, id))
}

// TestTranscriptions compares answers and charges of all sorts of files and answers, on both databases.
func TestTranscriptions(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, nil)
		var scenarios []scene.Scenario
		for _, c := range append(transcriptionCases(), vendorTranscriptions(t)...) {
			scenarios = append(scenarios, c.scenario(t))
		}
		scene.Play(t, g, append(scenarios, transcriptionFailover(t), brokenForms(t)))
	})
}

// transcriptionFailover checks that each line gets all fields and the whole file.
func transcriptionFailover(t *testing.T) scene.Scenario {
	type received struct {
		fields      map[string][]string
		name, kind  string
		file, model string
	}
	got := make(chan received, 2)
	read := func(r *http.Request, body string) received {
		r.Body = io.NopCloser(strings.NewReader(body))
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
			return received{}
		}
		f := r.MultipartForm.File["file"][0]
		opened, err := f.Open()
		if err != nil {
			t.Error(err)
			return received{}
		}
		file, _ := io.ReadAll(opened)
		return received{r.MultipartForm.Value, f.Filename, f.Header.Get("Content-Type"), string(file), r.FormValue("model")}
	}
	bad := newRawVendor(t, func(_ int, w http.ResponseWriter, r *http.Request, body string) {
		got <- read(r, body)
		w.WriteHeader(500)
	})
	good := newRawVendor(t, func(_ int, w http.ResponseWriter, r *http.Request, body string) {
		got <- read(r, body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"hi","usage":{"seconds":1}}`)
	})
	model := map[string]any{"id": "hear", "kind": "transcription", "price": map[string]any{"minutes": 0.06}}
	first, second := scene.ChatLine("hear", bad.URL, nil, "hear"), scene.ChatLine("hear-2", good.URL, nil, "hear")
	first["priority"], second["priority"] = 1, 2
	return scenario("each line gets the file", model, func(t *testing.T, g *scene.Gateway) {
		account, key := g.Process.Account(1, nil)
		file := wavFile(8000)
		body, contentType := formBody(t, formPart{"file", file}, formPart{"timestamp_granularities[]", "word"}, formPart{"language", "de"},
			formPart{"timestamp_granularities[]", "segment"}, formPart{"model", "hear"}, formPart{"unheard_of", "1"})
		a := scene.Call(t, g, "POST", "/v1/audio/transcriptions", body, "Authorization", "Bearer "+key, "Content-Type", contentType)
		if a.Status != 200 || a.Header.Get("x-tollgate-ignored") != "unheard_of" {
			t.Errorf("got %d %s, ignored %q", a.Status, a.Raw, a.Header.Get("x-tollgate-ignored"))
		}
		for range 2 {
			r := <-got
			fields := fmt.Sprint(r.fields)
			if r.file != file || r.name != "talk.wav" || r.kind != "audio/wav" || r.model != "vendor-hear" ||
				fields != "map[language:[de] model:[vendor-hear] timestamp_granularities[]:[word segment]]" {
				t.Errorf("the line got %s, a file %s of type %s with %d bytes", fields, r.name, r.kind, len(r.file))
			}
		}
		if f := g.Process.FundsOf(account); f.Balance != money.USD-1_000_000 {
			t.Errorf("the balance is %s, want a charge for one second", f.Balance)
		}
	}, first, second)
}

// brokenForms checks bodies other than a complete form.
func brokenForms(t *testing.T) scene.Scenario {
	v := newRawVendor(t, sends("application/json", `{"text":"hi"}`))
	model := map[string]any{"id": "forms", "kind": "transcription", "price": map[string]any{"minutes": 0.06}}
	return scenario("broken forms", model, func(t *testing.T, g *scene.Gateway) {
		_, key := g.Process.Account(1, nil)
		whole, contentType := formBody(t, formPart{"model", "forms"}, formPart{"file", wavFile(800)})
		without, otherType := formBody(t, formPart{"model", "forms"})
		for name, c := range map[string]struct{ body, contentType string }{
			"JSON":           {`{"model":"forms"}`, "application/json"},
			"no boundary":    {whole, "multipart/form-data"},
			"breaks off":     {whole[:len(whole)-60], contentType},
			"without a file": {without, otherType},
			"nothing":        {"", contentType},
		} {
			a := scene.Call(t, g, "POST", "/v1/audio/transcriptions", c.body, "Authorization", "Bearer "+key, "Content-Type", c.contentType)
			if a.Status != 400 || !strings.Contains(a.Raw, `"invalid_request"`) {
				t.Errorf("%s: got %d %s, want 400 invalid_request", name, a.Status, a.Raw)
			}
		}
		if asked := v.asked(); len(asked) != 0 {
			t.Errorf("the line got %d calls, want none", len(asked))
		}
	}, scene.ChatLine("forms", v.URL, nil, "forms"))
}
