package gatewaytest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest"
	"tollgate/internal/money"
)

// answer is what a client saw of one request.
type answer struct {
	id          string // x-request-id
	status      int
	contentType string
	retryAfter  string
	header      string // all of it, as text
	raw         string // the body
	text        string // what the model said
	finish      string // the last finish_reason
	complete    bool   // the whole answer is there: `[DONE]`, or JSON to its end
	err         told   // the error, also of a stream's event
	cut         bool   // the body broke off
}

// told is the error object.
type told struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    string          `json:"code"`
	Param   json.RawMessage `json:"param"`
}

func (e told) String() string {
	return fmt.Sprintf("%s %s (%s): %q", e.Type, e.Code, e.param(), e.Message)
}

// param is error.param; empty is null, and "absent" a member that is missing.
func (e told) param() string {
	var param *string
	switch err := json.Unmarshal(e.Param, &param); {
	case err != nil:
		return "absent"
	case param == nil:
		return ""
	}
	return *param
}

// body is what both kinds of answers and the frames of streams hold, in either
// form.
type body struct {
	Type    string `json:"type"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Delta struct {
		Text string `json:"text"`
		Stop string `json:"stop_reason"`
	} `json:"delta"`
	Choices []struct {
		Message struct{ Content *string } `json:"message"`
		Delta   struct{ Content *string } `json:"delta"`
		Finish  string                    `json:"finish_reason"`
	} `json:"choices"`
	Error *told `json:"error"`
}

// send sends one chat request and reads its answer to the end. A gateway that
// says it is overloaded, which a busy machine is soon, is asked again: it has
// done nothing then.
func (f *fixture) send(t testing.TB, key, request string, seen ...func()) answer {
	t.Helper()
	var a answer
	eventually(t, "the gateway takes a request", func() bool {
		var err error
		if a, err = converse(t.Context(), f.client, f.process.URL+f.form.path, key, request, seen...); err != nil {
			t.Fatal(err)
		}
		return a.status != 503 || a.retryAfter == "" && a.err.Type != "overloaded_error"
	})
	return a
}

// eventually waits until something holds, for longer than it takes on a busy
// machine.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		<-tick.C
	}
}

// converse sends one chat request and reads its answer to the end, or until
// ctx ends; then what was read so far is returned with the error. The seen are
// called once, when the first piece of a stream's text has come.
func converse(ctx context.Context, client *http.Client, url, key, request string, seen ...func()) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(request))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	a := answer{id: res.Header.Get("x-request-id"), status: res.StatusCode, contentType: res.Header.Get("Content-Type"),
		retryAfter: res.Header.Get("Retry-After"), header: fmt.Sprint(res.Header)}
	var raw []byte
	for in := bufio.NewReader(res.Body); err == nil; {
		var line []byte
		line, err = in.ReadBytes('\n')
		raw = append(raw, line...)
		if bytes.Contains(line, []byte(`"content":"`)) && !bytes.Contains(line, []byte(`"content":""`)) || bytes.Contains(line, []byte(`"text_delta"`)) {
			for _, f := range seen {
				f()
			}
			seen = nil
		}
	}
	a.raw, a.cut = string(raw), !errors.Is(err, io.EOF)
	if strings.HasPrefix(a.contentType, "text/event-stream") {
		a.readEvents(raw)
	} else {
		var b body
		a.complete = !a.cut && json.Unmarshal(raw, &b) == nil
		a.take(b)
	}
	return a, ctx.Err()
}

// readEvents reads a stream.
func (a *answer) readEvents(raw []byte) {
	for line := range bytes.Lines(raw) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			a.complete = true
			continue
		}
		var b body
		if json.Unmarshal(data, &b) == nil {
			a.take(b)
		}
	}
}

func (a *answer) take(b body) {
	if b.Error != nil {
		a.err = *b.Error
	}
	for _, c := range b.Choices {
		for _, piece := range []*string{c.Message.Content, c.Delta.Content} {
			if piece != nil {
				a.text += *piece
			}
		}
		if c.Finish != "" {
			a.finish = c.Finish
		}
	}
	for _, part := range b.Content {
		a.text += part.Text
	}
	a.text += b.Delta.Text
	if b.Delta.Stop != "" {
		a.finish = b.Delta.Stop
	}
	a.complete = a.complete || b.Type == "message_stop"
}

// receipt is an entry of the request log.
type receipt struct {
	ID         string       `json:"id"`
	Status     int          `json:"status"`
	Code       string       `json:"code"`
	Line       string       `json:"line"`
	Attempts   []attempt    `json:"attempts"`
	Prompt     int64        `json:"prompt_tokens"`
	Completion int64        `json:"completion_tokens"`
	Cost       money.Amount `json:"cost_usd"`
}

// attempt is one attempt of a receipt.
type attempt struct {
	Line        string `json:"line"`
	Status      int    `json:"status"`
	Code        string `json:"code"`
	Cause       string `json:"cause"`
	FirstByteMS *int64 `json:"first_byte_ms"`
}

// receipt finds the log's entry of a request. It may come a moment after the
// answer of an error.
func (f *fixture) receipt(t testing.TB, account, id string) receipt {
	t.Helper()
	var found receipt
	eventually(t, "request "+id+" is in the log", func() bool {
		for _, r := range f.receipts(account) {
			if r.ID == id {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// receipts returns an account's newest entries of the log.
func (f *fixture) receipts(account string) []receipt {
	var page struct {
		Data []receipt `json:"data"`
	}
	f.process.Admin("GET", "/requests?limit=200&account="+account, nil, &page)
	return page.Data
}

// lineState is how a line is doing, as the operator sees it.
type lineState struct {
	ID           string          `json:"id"`
	State        string          `json:"state"`
	Attempts     int             `json:"recent_attempts"`
	SuccessRate  *float64        `json:"success_rate"`
	InFlight     int             `json:"in_flight"`
	CoolingUntil json.RawMessage `json:"cooling_until"`
	Cause        string          `json:"cause"`
	ModelsOut    []struct {
		Model string `json:"model"`
	} `json:"models_out"`
}

func (s lineState) String() string {
	rate := "none"
	if s.SuccessRate != nil {
		rate = fmt.Sprintf("%.2f", *s.SuccessRate)
	}
	return fmt.Sprintf("%s, %d attempts, success rate %s, cooling until %q, models out %v, cause %q",
		s.State, s.Attempts, rate, s.CoolingUntil, s.ModelsOut, s.Cause)
}

// lineStates reads the states of all lines. Callers that wait while a read is
// under way share the next one, since the list is long.
type lineStates struct {
	process *gatewaytest.Process

	reading sync.Mutex
	mu      sync.Mutex
	next    *lineRead // not begun yet
}

// lineRead is one read of the list.
type lineRead struct {
	once sync.Once
	all  map[string]lineState
}

// of returns the state of a line, read after of was called.
func (l *lineStates) of(t testing.TB, line string) lineState {
	t.Helper()
	l.mu.Lock()
	if l.next == nil {
		l.next = &lineRead{all: map[string]lineState{}}
	}
	mine := l.next
	l.mu.Unlock()
	mine.once.Do(func() {
		l.reading.Lock()
		defer l.reading.Unlock()
		l.mu.Lock()
		l.next = nil
		l.mu.Unlock()
		var list struct {
			Data []lineState `json:"data"`
		}
		l.process.Admin("GET", "/lines", nil, &list)
		for _, s := range list.Data {
			mine.all[s.ID] = s
		}
	})
	state, ok := mine.all[line]
	if !ok {
		t.Fatalf("line %s is not in the list", line)
	}
	return state
}

// shortestCool is the shortest pause that a rate limit gives a line.
const shortestCool = 5 * time.Second

// checkHealth checks what a row did to its line, which was asked once, at sent.
func (f *fixture) checkHealth(t *testing.T, e entry, line string, sent time.Time) {
	t.Helper()
	s := f.lines.of(t, line)
	switch e.want.health { // these may wait for a probe to prove it
	case cred:
		s = f.becomes(t, line, "credentials_out")
	case pair:
		eventually(t, line+" lacks its model", func() bool { s = f.lines.of(t, line); return len(s.ModelsOut) == 1 })
	}
	if e.want.health == cool && s.State == "in_service" && time.Since(sent) > shortestCool {
		return // the machine is so busy that the pause is over
	}
	attempts, rate, state := 1, 0.0, "in_service"
	switch e.want.health {
	case none:
		attempts = 0
	case good:
		rate = 1
	case half:
		rate = 0.5
	case cool:
		state = "cooling"
	case cred:
		state = "credentials_out"
	}
	if e.want.health == broke { // what else happens to it follows from the code
		if s.SuccessRate == nil || *s.SuccessRate != 0 {
			t.Errorf("line: %s; want it to be no success", s)
		}
		return
	}
	if s.State != state {
		t.Errorf("line: %s; want it to be %s", s, state)
	}
	switch out := len(s.ModelsOut) == 1 && s.ModelsOut[0].Model == line; {
	case e.want.health == pair && !out:
		t.Errorf("line: %s; want its model to be out", s)
	case e.want.health != pair && len(s.ModelsOut) > 0:
		t.Errorf("line: %s; want no model to be out", s)
	case e.want.health == cool && (len(s.CoolingUntil) == 0 || string(s.CoolingUntil) == "null" || string(s.CoolingUntil) == "0"):
		t.Errorf("line: %s; want it to say until when it cools", s)
	}
	switch e.want.health {
	case none, good, fail, half:
		if s.Attempts != attempts || (s.SuccessRate != nil) != (attempts > 0) || attempts > 0 && *s.SuccessRate != rate {
			t.Errorf("line: %s; want %d attempts with a rate of %.1f", s, attempts, rate)
		}
	}
}
