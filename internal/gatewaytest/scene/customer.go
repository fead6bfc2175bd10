package scene

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/money"
)

// Customer is a client for jobs with its own account and key. ID is the id of the account.
type Customer struct {
	*Node
	ID, Key string
}

// Customer opens an account with CreditOfJobs.
func (n *Node) Customer() *Customer {
	n.T.Helper()
	account, key := n.Account(100, nil)
	return &Customer{n, account, key}
}

// On returns a client of another node with the same key.
func (c *Customer) On(n *Node) *Customer { return &Customer{n, c.ID, c.Key} }

// Reply is the gateway's answer about a job or a file.
type Reply struct {
	Status int
	Header http.Header
	Raw    []byte
}

// String implements fmt.Stringer.
func (r Reply) String() string { return fmt.Sprintf("%d %s", r.Status, r.Raw) }

// Err returns the error object of the answer.
func (r Reply) Err(t testing.TB) Error {
	t.Helper()
	var b struct {
		Error Error `json:"error"`
	}
	if err := json.Unmarshal(r.Raw, &b); err != nil {
		t.Errorf("no error object in %s: %v", r, err)
	}
	return b.Error
}

// Call sends a request with the customer's key and pairs of header names and values. It repeats a
// request that an overloaded gateway has rejected without effect.
func (c *Customer) Call(t testing.TB, method, path string, body []byte, pairs ...string) Reply {
	t.Helper()
	var r Reply
	Eventually(t, "the gateway takes "+method+" "+path, func() bool {
		var err error
		if r, err = c.Try(method, path, body, pairs...); err != nil {
			t.Fatal(err)
		}
		return !isOverloaded(r.Status, string(r.Raw))
	})
	return r
}

// Try sends a request once. The gateway may be dead.
func (c *Customer) Try(method, path string, body []byte, pairs ...string) (Reply, error) {
	address := path
	if strings.HasPrefix(path, "/") {
		address = c.URL + path
	}
	headers := []string{"Content-Type", "application/json"}
	if !strings.Contains(address, "/media/") { // links work without a key
		headers = append(headers, "Authorization", "Bearer "+c.Key)
	}
	res, err := Do(context.Background(), c.Client, method, address, string(body), append(headers, pairs...)...)
	if err != nil {
		return Reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return Reply{res.StatusCode, res.Header, raw}, err
}

// The paths of submissions.
const (
	PathGenerate = "/v1/images/generations"
	PathEdit     = "/v1/images/edits"
	PathVideo    = "/v1/videos/generations"
)

// PathOf returns the path of submissions of a kind.
func PathOf(kind string) string {
	if kind == "video" {
		return PathVideo
	}
	return PathGenerate
}

// JobRequest returns the body of a submission, with the members of more.
func JobRequest(model, prompt string, more map[string]any) []byte {
	raw, _ := json.Marshal(merge(map[string]any{"model": model, "prompt": prompt}, more)) // cannot fail
	return raw
}

// Submit submits a job and returns its id.
func (c *Customer) Submit(t testing.TB, kind string, body []byte, pairs ...string) string {
	t.Helper()
	return c.CheckAccepted(t, kind, c.Call(t, "POST", PathOf(kind), body, pairs...))
}

// CheckAccepted checks the 202 of a submission and the order of its members, and returns the job's
// id.
func (c *Customer) CheckAccepted(t testing.TB, kind string, r Reply) string {
	t.Helper()
	j := ReadJob(t, r)
	if r.Status != http.StatusAccepted || !slices.Equal(j.Members, []string{"id", "object", "status", "model", "message"}) ||
		j.Object != kind+".generation.job" || j.Status != "queued" || j.ID == "" || r.Header.Get("x-request-id") == "" {
		t.Fatalf("the submission was answered with %s", r)
	}
	return j.ID
}

// Funds returns the balance and the held money of the account.
func (c *Customer) Funds(t testing.TB) Funds {
	t.Helper()
	return c.FundsOf(c.ID)
}

// CheckFunds checks the balance and the held money.
func (c *Customer) CheckFunds(t testing.TB, spent, held money.Amount) {
	t.Helper()
	if f := c.Funds(t); f.Balance != CreditOfJobs-spent || f.Held != held {
		t.Errorf("balance %s and %s held; want %s and %s", f.Balance, f.Held, CreditOfJobs-spent, held)
	}
}

// Charges returns the charge of each job according to the account's entries.
func (c *Customer) Charges(t testing.TB) map[string]money.Amount {
	t.Helper()
	type entry struct {
		ID, Kind string
		USD      money.Amount
		Job      string `json:"job_id"`
		Request  string `json:"request_id"`
	}
	charged := map[string]money.Amount{}
	for _, e := range list(c.Process, "/accounts/"+c.ID+"/entries?limit=200", func(e entry) string { return e.ID }) {
		if e.Kind != "charge" {
			continue
		}
		if _, twice := charged[e.Job]; twice {
			t.Errorf("job %s was charged twice", e.Job)
		}
		if e.Job == "" || e.Request == "" {
			t.Errorf("a charge without job or request: %+v", e)
		}
		charged[e.Job] = -e.USD
	}
	return charged
}

// CheckLink checks that a link serves the whole file and parts of it, with headers that keep a
// browser from running the file.
func (c *Customer) CheckLink(t testing.TB, link, contentType string, want []byte) {
	t.Helper()
	whole := c.Call(t, "GET", c.LinkHere(link), nil)
	if whole.Status != 200 || !bytes.Equal(whole.Raw, want) {
		t.Errorf("%s: %d with %d bytes; want %d", link, whole.Status, len(whole.Raw), len(want))
		return
	}
	part := c.Call(t, "GET", c.LinkHere(link), nil, "Range", "bytes=4-11")
	if part.Status != http.StatusPartialContent || !bytes.Equal(part.Raw, want[4:12]) ||
		part.Header.Get("Content-Range") != fmt.Sprintf("bytes 4-11/%d", len(want)) {
		t.Errorf("%s, bytes 4 to 11: %d %v %q", link, part.Status, part.Header, part.Raw)
	}
	for _, r := range []Reply{whole, part} {
		if r.Header.Get("Content-Type") != contentType || r.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(r.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: headers %v; want %s", link, r.Header, contentType)
		}
	}
}

// LinkHere returns a link with the current address of the customer's node. A restart changes the
// port.
func (c *Customer) LinkHere(link string) string {
	_, path, _ := strings.Cut(link, "/media/")
	return c.URL + "/media/" + path
}
