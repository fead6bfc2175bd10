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

	"tollgate/internal/fault"
)

// header is a line of a request's header.
type header struct{ name, value string }

// request is a valid or malformed request as sent.
type request struct {
	number    int
	route     string
	method    string
	target    string
	version   string
	headers   []header
	body      []byte
	length    string // Content-Length; "" means the length of the body, and none means no header
	cut       int    // number of sent bytes; -1 means all
	raw       []byte // if not nil, replaces everything else
	mutations []string
}

// none is the length of a request without Content-Length.
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

// bytes returns the complete request.
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

// sent returns the part of the request that is sent.
func (q *request) sent() []byte {
	raw := q.bytes()
	if q.cut >= 0 {
		return raw[:min(q.cut, len(raw))]
	}
	return raw
}

// parse parses raw as a server would. It returns nil if raw is not a request. complete reports
// whether the body is complete, and alone whether no bytes follow.
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

// String returns a description that is sufficient to repeat the request.
func (q *request) String() string {
	raw := q.bytes()
	if len(raw) > 1500 {
		raw = append(slices.Clone(raw[:1500]), "…"...)
	}
	return fmt.Sprintf("request %d (%s; %s; sent up to %d): %q", q.number, q.route, strings.Join(q.mutations, ", "), q.cut, raw)
}

// generator generates the requests of a run.
type generator struct {
	seed    uint64
	address string   // of the server for references and callbacks
	routes  []string // routes to choose from
	samples map[string][]sample
	keys    []string            // keys of accounts
	token   string              // operator token
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
	case fault.IsGoogle(q.target):
		q.add("x-goog-api-key", pick(r, g.keys))
	case strings.HasPrefix(q.target, "/v1/") || strings.HasPrefix(q.target, "/v2/"):
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

// next returns the malformed request with a number. Seed and number determine the request.
func (g *generator) next(number int) *request {
	r := rand.New(rand.NewPCG(g.seed, uint64(number)))
	q, _ := g.good(number, pick(r, g.routes), r)
	for range pick(r, []int{1, 1, 2, 3}) {
		s := pick(r, mutations())
		q.mutations = append(q.mutations, s.name)
		s.mutate(r, g, q)
	}
	return q
}

// pick returns a random element of all, or the zero value if all is empty.
func pick[T any](r *rand.Rand, all []T) (element T) {
	if len(all) == 0 {
		return element
	}
	return all[r.IntN(len(all))]
}
