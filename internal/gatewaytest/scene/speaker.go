package scene

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/money"
)

// Speaker is an account with a key whose client speaks one form.
type Speaker struct {
	T            *testing.T
	Gateway      *Gateway
	Form         Form
	Account, Key string
}

// Credit is what a speaker's account begins with.
const Credit = 10 * money.USD

// Speaker opens an account with 10 USD.
func (s Form) Speaker(t *testing.T, g *Gateway) Speaker {
	t.Helper()
	account, key := g.Process.Account(10, nil)
	return Speaker{t, g, s, account, key}
}

// Heard is an answer as a client got it, in any form.
type Heard struct {
	Status int
	Header http.Header
	Raw    string
	Cut    bool // the body broke off
}

// ID is the request's id.
func (h Heard) ID() string { return h.Header.Get("x-request-id") }

// Post sends a body; headers come as pairs. A gateway that says it is
// overloaded, which a busy machine is soon, is asked again: it has done nothing
// then.
func (s Speaker) Post(path, body string, headers ...string) Heard {
	s.T.Helper()
	var h Heard
	Eventually(s.T, "the gateway takes a request", func() bool {
		h = Call(s.T, s.Gateway, "POST", path, body, append([]string{"x-api-key", s.Key, "Authorization", "Bearer " + s.Key}, headers...)...)
		return !h.overloaded()
	})
	return h
}

// Ask sends a request to the form's endpoint.
func (s Speaker) Ask(body string) Heard {
	s.T.Helper()
	return s.Post(s.Form.Path(), body)
}

// Call makes a request of the gateway, with headers as pairs, and reads its answer to the end.
func Call(t testing.TB, g *Gateway, method, path, body string, headers ...string) Heard {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.Process.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := g.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	h := Heard{answer.StatusCode, answer.Header, string(raw), err != nil}
	if id := h.ID(); !strings.HasPrefix(id, "req_") || h.Header.Get("request-id") != id {
		t.Errorf("%s %s: request ids %q and %q", method, path, id, h.Header.Get("request-id"))
	}
	return h
}

// Watch is Ask for a stream: then is called once, when a text has come.
func (s Speaker) Watch(body, text string, then func()) Heard {
	s.T.Helper()
	var h Heard
	Eventually(s.T, "the gateway takes a stream", func() bool {
		h = s.watch(body, text, then)
		return !h.overloaded()
	})
	return h
}

// watch makes one try.
func (s Speaker) watch(body, text string, then func()) Heard {
	r, err := http.NewRequestWithContext(s.T.Context(), "POST", s.Gateway.Process.URL+s.Form.Path(), strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	answer, err := s.Gateway.Client.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	h := Heard{Status: answer.StatusCode, Header: answer.Header}
	in := bufio.NewReader(answer.Body)
	for err == nil {
		var line string
		line, err = in.ReadString('\n')
		if h.Raw += line; then != nil && strings.Contains(line, text) {
			then()
			then = nil
		}
	}
	h.Cut = !errors.Is(err, io.EOF)
	return h
}

// overloaded tells whether a gateway has done nothing, for want of time.
func (h Heard) overloaded() bool {
	return h.Status == http.StatusServiceUnavailable && strings.Contains(h.Raw, "temporary problem")
}

// Charged checks what the receipt of an answer says, and that nothing else was
// charged and nothing is held. It returns the receipt.
func (s Speaker) Charged(h Heard, cost money.Amount) Receipt {
	s.T.Helper()
	r := s.Gateway.Receipt(s.T, s.Account, h.ID())
	if r.Cost != cost || r.Status != h.Status {
		s.T.Errorf("receipt %+v; want %s and status %d", r, cost, h.Status)
	}
	s.Gateway.CheckMoney(s.T, s.Account, Credit, Answer{ID: h.ID(), Status: h.Status})
	return r
}

// Err is the error of an answer.
func (h Heard) Err() Error {
	var b struct {
		Error Error `json:"error"`
	}
	_ = json.Unmarshal([]byte(h.Raw), &b) // a stream has none
	return b.Error
}
