package scene

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/money"
)

// FormClient is a client with its own account and key. It sends requests in one form.
type FormClient struct {
	T            *testing.T
	Gateway      *Gateway
	Form         Form
	Account, Key string
}

// Credit is the credit of each FormClient.
const Credit = 10 * money.USD

// NewClient opens an account with Credit.
func (f Form) NewClient(t *testing.T, g *Gateway) FormClient {
	t.Helper()
	account, key := g.Process.Account(10, nil)
	return FormClient{t, g, f, account, key}
}

// FormAnswer is an answer in any form.
type FormAnswer struct {
	Status int
	Header http.Header
	Raw    string
	Cut    bool // the body broke off
}

// ID returns the id of the request.
func (a FormAnswer) ID() string { return a.Header.Get("x-request-id") }

// Post sends a body, with pairs of header names and values. It repeats a request that an overloaded
// gateway has rejected without effect.
func (c FormClient) Post(path, body string, headers ...string) FormAnswer {
	c.T.Helper()
	var a FormAnswer
	Eventually(c.T, "the gateway takes a request", func() bool {
		a = Call(c.T, c.Gateway, "POST", path, body, append([]string{"x-api-key", c.Key, "Authorization", "Bearer " + c.Key}, headers...)...)
		return !isOverloaded(a.Status, a.Raw)
	})
	return a
}

// Ask sends a request to the form's endpoint.
func (c FormClient) Ask(body string) FormAnswer {
	c.T.Helper()
	return c.Post(c.Form.Path(), body)
}

// Answer is like Ask, but fails the test unless the status is 200.
func (c FormClient) Answer(body string) FormAnswer {
	c.T.Helper()
	a := c.Ask(body)
	if a.Status != http.StatusOK {
		c.T.Fatalf("%d %s", a.Status, a.Raw)
	}
	return a
}

// Call sends a request, with pairs of header names and values, and reads its answer to the end.
func Call(t testing.TB, g *Gateway, method, path, body string, headers ...string) FormAnswer {
	t.Helper()
	answer, err := Do(t.Context(), g.Client, method, g.Process.URL+path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	a := FormAnswer{answer.StatusCode, answer.Header, string(raw), err != nil}
	if id := a.ID(); !strings.HasPrefix(id, "req_") || a.Header.Get("request-id") != id {
		t.Errorf("%s %s: request ids %q and %q", method, path, id, a.Header.Get("request-id"))
	}
	return a
}

// Do sends a request with pairs of header names and values.
func Do(ctx context.Context, client *http.Client, method, url, body string, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return client.Do(r)
}

// isOverloaded reports whether an overloaded gateway has rejected a request without effect.
func isOverloaded(status int, body string) bool {
	return status == http.StatusServiceUnavailable && strings.Contains(body, "temporary problem")
}

// CheckCharge checks the receipt of an answer and the account's money, and returns the receipt.
func (c FormClient) CheckCharge(a FormAnswer, cost money.Amount) Receipt {
	c.T.Helper()
	r := c.Gateway.Receipt(c.T, c.Account, a.ID())
	if r.Cost != cost || r.Status != a.Status {
		c.T.Errorf("receipt %+v; want %s and status %d", r, cost, a.Status)
	}
	c.Gateway.CheckMoney(c.T, c.Account, Credit, Answer{ID: a.ID(), Status: a.Status})
	return r
}

// Err returns the error of an answer.
func (a FormAnswer) Err() Error {
	var b struct {
		Error Error `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.Raw), &b) // fails for a stream
	return b.Error
}
