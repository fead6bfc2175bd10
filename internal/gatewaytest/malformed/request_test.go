package malformed

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// header is a header line.
type header struct{ name, value string }

// request is a valid or malformed request as sent.
type request struct {
	number  int
	route   string
	method  string
	target  string
	version string
	headers []header
	body    []byte
	length  string // Content-Length; if empty, the length of the body; without the header if none
	cut     int    // number of sent bytes; -1 means all
	raw     []byte // if not nil, replaces everything else
	spoiled []string
}

// none omits Content-Length.
const none = "none"

// set replaces or adds a header.
func (q *request) set(name, value string) {
	i := slices.IndexFunc(q.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
	if i < 0 {
		q.add(name, value)
		return
	}
	q.headers[i].value = value
}

// add adds a header line.
func (q *request) add(name, value string) { q.headers = append(q.headers, header{name, value}) }

// drop removes all lines of a header.
func (q *request) drop(name string) {
	q.headers = slices.DeleteFunc(q.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
}

// bytes returns the whole request.
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

// sent returns the sent part of the request.
func (q *request) sent() []byte {
	raw := q.bytes()
	if q.cut >= 0 {
		return raw[:min(q.cut, len(raw))]
	}
	return raw
}

// parse reads a request like a server. It returns nil if raw is not a request. complete is true
// with a whole body, and alone is true without further bytes.
func parse(raw []byte) (r *http.Request, complete, alone bool) {
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

// String returns how to repeat the request.
func (q *request) String() string {
	raw := q.bytes()
	if len(raw) > 1500 {
		raw = append(slices.Clone(raw[:1500]), "…"...)
	}
	return fmt.Sprintf("request %d (%s; %s; sent up to %d): %q", q.number, q.route, strings.Join(q.spoiled, ", "), q.cut, raw)
}

// generator generates the requests of a run.
type generator struct {
	seed    uint64
	address string   // of the server of references and callbacks
	routes  []string // to choose from
	samples map[string][]sample
	keys    []string            // of users
	token   string              // of the operator
	ids     map[string][]string // existing ids by the path before {id}
}

// good returns a valid request for a route.
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
		q.add("Content-Type", cmp.Or(s.contentType, "application/json"))
	}
	return q, s
}

// next returns the malformed request with a number.
func (g *generator) next(number int) *request {
	r := rand.New(rand.NewPCG(g.seed, uint64(number)))
	q, _ := g.good(number, pick(r, g.routes), r)
	for range pick(r, []int{1, 1, 2, 3}) {
		s := pick(r, mutations())
		q.spoiled = append(q.spoiled, s.name)
		s.spoil(r, g, q)
	}
	return q
}

// pick returns a random element, or the zero value without elements.
func pick[T any](r *rand.Rand, all []T) (one T) {
	if len(all) == 0 {
		return one
	}
	return all[r.IntN(len(all))]
}
