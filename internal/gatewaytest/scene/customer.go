package scene

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/money"
)

// Customer is an account with a key that wants jobs.
// Its ID is the account's.
type Customer struct {
	*Node
	ID, Key string
}

// Customer opens an account with credit.
func (p *Node) Customer() *Customer {
	p.T.Helper()
	account, key := p.Account(100, nil)
	return &Customer{p, account, key}
}

// On is the same account as a client of another node.
func (c *Customer) On(n *Node) *Customer { return &Customer{n, c.ID, c.Key} }

// Reply is an answer of the gateway about a job or a file.
type Reply struct {
	Status int
	Header http.Header
	Raw    []byte
}

// String is the answer in a failed test's words.
func (r Reply) String() string { return fmt.Sprintf("%d %s", r.Status, r.Raw) }

// Err is the error object of the answer.
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

// Call sends a request with the customer's key; pairs are header names and
// values.
func (c *Customer) Call(t testing.TB, method, path string, body []byte, pairs ...string) Reply {
	t.Helper()
	r, err := c.Try(method, path, body, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Try is Call for when the gateway may be dead.
func (c *Customer) Try(method, path string, body []byte, pairs ...string) (Reply, error) {
	address := path
	if strings.HasPrefix(path, "/") {
		address = c.URL + path
	}
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	if !strings.Contains(address, "/media/") { // links need no key
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(pairs); i += 2 {
		req.Header.Set(pairs[i], pairs[i+1])
	}
	res, err := c.Client.Do(req)
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

// PathOf is where a kind is submitted.
func PathOf(kind string) string {
	if kind == "video" {
		return PathVideo
	}
	return PathGenerate
}

// Order is the body of a submission, with further members.
func Order(model, prompt string, more map[string]any) []byte {
	raw, _ := json.Marshal(and(map[string]any{"model": model, "prompt": prompt}, more)) // plain values: cannot fail
	return raw
}

// Submit submits a job and returns its id. The 202 has to be as interface.md
// says, its members in that order.
func (c *Customer) Submit(t testing.TB, kind string, body []byte, pairs ...string) string {
	t.Helper()
	return c.Accepted(t, kind, c.Call(t, "POST", PathOf(kind), body, pairs...))
}

// Accepted checks the answer to a good submission and returns the job's id.
func (c *Customer) Accepted(t testing.TB, kind string, r Reply) string {
	t.Helper()
	j := ReadJob(t, r)
	if r.Status != http.StatusAccepted || !slices.Equal(j.Members, []string{"id", "object", "status", "model"}) ||
		j.Object != kind+".generation.job" || j.Status != "queued" || j.ID == "" || r.Header.Get("x-request-id") == "" {
		t.Fatalf("the submission was answered %s", r)
	}
	return j.ID
}

// Purse reads what the account has.
func (c *Customer) Purse(t testing.TB) Purse {
	t.Helper()
	var p Purse
	c.Admin("GET", "/accounts/"+c.ID, nil, &p)
	return p
}

// Owns checks the balance and what is held.
func (c *Customer) Owns(t testing.TB, spent, held money.Amount) {
	t.Helper()
	if p := c.Purse(t); p.Balance != CreditOfJobs-spent || p.Held != held {
		t.Errorf("balance %s and %s held; want %s and %s", p.Balance, p.Held, CreditOfJobs-spent, held)
	}
}

// Charges returns what each job was charged by the account's movements.
func (c *Customer) Charges(t testing.TB) map[string]money.Amount {
	t.Helper()
	charged := map[string]money.Amount{}
	for after := ""; ; {
		var page struct {
			Data []struct {
				ID, Kind string
				USD      money.Amount
				Job      string `json:"job_id"`
				Request  string `json:"request_id"`
			}
			HasMore bool `json:"has_more"`
		}
		c.Admin("GET", "/accounts/"+c.ID+"/entries?limit=200&after="+after, nil, &page)
		for _, e := range page.Data {
			after = e.ID
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
		if !page.HasMore {
			return charged
		}
	}
}

// Opens checks that a link leads to the whole file, to parts of it, and to
// nothing that a browser would run.
func (c *Customer) Opens(t testing.TB, link, contentType string, want []byte) {
	t.Helper()
	whole := c.Call(t, "GET", c.Here(link), nil)
	if whole.Status != 200 || !bytes.Equal(whole.Raw, want) {
		t.Errorf("%s: %d with %d bytes; want %d", link, whole.Status, len(whole.Raw), len(want))
		return
	}
	part := c.Call(t, "GET", c.Here(link), nil, "Range", "bytes=4-11")
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

// Here is a link on the node as it runs now: a restart changes the port.
func (c *Customer) Here(link string) string {
	_, path, _ := strings.Cut(link, "/media/")
	return c.URL + "/media/" + path
}
