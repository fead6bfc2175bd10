package malformed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// header is one line of a request's head.
type header struct{ name, value string }

// request is one as it goes over the wire, right or wrong.
type request struct {
	number  int
	route   string
	method  string
	target  string
	version string
	headers []header
	body    []byte
	length  string // of Content-Length; empty: the body's own; none: no such header
	cut     int    // how many of its bytes are sent before the caller goes silent; -1: all
	raw     []byte // in place of all that
	spoiled []string
}

// none is a length that is not sent.
const none = "none"

// set replaces a header, or adds it.
func (q *request) set(name, value string) {
	i := slices.IndexFunc(q.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
	if i < 0 {
		q.add(name, value)
		return
	}
	q.headers[i].value = value
}

// add adds a header line, whatever there is.
func (q *request) add(name, value string) { q.headers = append(q.headers, header{name, value}) }

// drop removes all lines of a header.
func (q *request) drop(name string) {
	q.headers = slices.DeleteFunc(q.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
}

// bytes is the request as it is sent.
func (q *request) bytes() []byte {
	if q.raw != nil {
		return q.raw
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\n", q.method, q.target, q.version)
	for _, h := range q.headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.name, h.value)
	}
	switch {
	case q.length == none:
	case q.length != "":
		fmt.Fprintf(&b, "Content-Length: %s\r\n", q.length)
	case len(q.body) > 0 || q.method != http.MethodGet:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(q.body))
	}
	b.WriteString("\r\n")
	b.Write(q.body)
	return b.Bytes()
}

// sent is what goes over the wire before the caller goes silent.
func (q *request) sent() []byte {
	raw := q.bytes()
	if q.cut >= 0 {
		return raw[:min(q.cut, len(raw))]
	}
	return raw
}

// understood reads a request as a server does: nil where it is none. complete:
// its body is there; alone: nothing comes after it.
func understood(raw []byte) (r *http.Request, complete, alone bool) {
	in := bufio.NewReader(bytes.NewReader(raw))
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil, false, false
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return r, false, false
	}
	_, err = in.ReadByte()
	return r, true, errors.Is(err, io.EOF)
}

// String tells how to see the request again.
func (q *request) String() string {
	raw := q.bytes()
	if len(raw) > 1500 {
		raw = append(slices.Clone(raw[:1500]), "…"...)
	}
	return fmt.Sprintf("request %d (%s; %s; sent up to %d): %q", q.number, q.route, strings.Join(q.spoiled, ", "), q.cut, raw)
}

// generator makes the requests of a run.
type generator struct {
	seed    uint64
	address string   // of references and callbacks
	routes  []string // drawn from
	samples map[string][]sample
	keys    []string            // of users
	token   string              // the operator's
	ids     map[string][]string // that exist, by what stands before {id} in a path
}

// good is a request as its route takes it.
func (g *generator) good(number int, route string, r *rand.Rand) (*request, sample) {
	q := &request{number: number, route: route, version: "HTTP/1.1", cut: -1}
	q.method, q.target, _ = strings.Cut(route, " ")
	if before, after, ok := strings.Cut(q.target, "{id}"); ok {
		q.target = before + pick(r, g.ids[before]) + after
	}
	q.add("Host", "gateway.example")
	switch {
	case strings.HasPrefix(q.target, "/admin/") || q.target == "/metrics":
		q.add("Authorization", "Bearer "+g.token)
	case strings.HasPrefix(q.target, "/native/"):
		q.add("x-api-key", pick(r, g.keys))
		q.add("anthropic-version", "2023-06-01")
	case strings.HasPrefix(q.target, "/v1/"):
		q.add("Authorization", "Bearer "+pick(r, g.keys))
	}
	var s sample
	if all := g.samples[route]; len(all) > 0 {
		s = pick(r, all)
		q.body = []byte(strings.ReplaceAll(s.body, "EMAIL", "user"+strconv.Itoa(number)+"@example.com"))
		q.add("Content-Type", or(s.contentType, "application/json"))
	}
	return q, s
}

// next is the malformed request of a number.
func (g *generator) next(number int) *request {
	r := rand.New(rand.NewPCG(g.seed, uint64(number)))
	q, _ := g.good(number, pick(r, g.routes), r)
	for range pick(r, []int{1, 1, 2, 3}) {
		s := pick(r, spoilers())
		q.spoiled = append(q.spoiled, s.name)
		s.spoil(r, g, q)
	}
	return q
}

// pick draws one of all; the zero value where there is none.
func pick[T any](r *rand.Rand, all []T) (one T) {
	if len(all) == 0 {
		return one
	}
	return all[r.IntN(len(all))]
}

// or is the first that is not empty.
func or(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
