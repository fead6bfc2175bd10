package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/store/storetest"
)

// heard is what came back on a connection.
type heard struct {
	status int
	header http.Header
	body   string
	kept   bool // the connection was not closed after the answer
}

// hear writes a request and reads its answer, and whether the connection ends.
func hear(t *testing.T, d *door, request string) heard {
	t.Helper()
	c := dial(t, d)
	go func() { _, _ = io.WriteString(c, request) }() // a long one may not be read to its end
	from := bufio.NewReader(c)
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Errorf("%.60q: no answer: %v", request, err)
		return heard{}
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%.60q: %v", request, err)
	}
	answer.Body.Close()
	_, err = from.ReadByte()
	return heard{answer.StatusCode, answer.Header, string(body), err == nil || isTimeout(err)}
}

// ours checks that an answer has the shape of errors of its path.
func (h heard) ours(t *testing.T, name string, native bool) {
	t.Helper()
	var said struct {
		Type  string
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	if err := json.Unmarshal([]byte(h.body), &said); err != nil || said.Error.Message == "" || said.Error.Type == "" {
		t.Errorf("%s: %d %q", name, h.status, h.body)
	}
	if native != (said.Type == "error") || native != (said.Error.Code == "") {
		t.Errorf("%s: the shape is another surface's: %s", name, h.body)
	}
	id := h.header.Get("X-Request-Id")
	if !strings.HasPrefix(id, "req_") || h.header.Get("Request-Id") != id || h.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: headers %v", name, h.header)
	}
}

// TestUnreadableRequests: what net/http refuses before any handler sees it is
// answered as we answer, too: our shape, an id, and the end of the connection.
func TestUnreadableRequests(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.SQLite(t), "admin_token: sixteen-letters-\nmetrics_listen: 127.0.0.1:0"))
	t.Cleanup(func() { p.stop(t) })
	key := regexp.MustCompile(`sk-[A-Za-z0-9_-]+`).FindString(p.out.String())
	const chat = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	keyed := chat + "Authorization: Bearer " + key + "\r\n"
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"no request line":           {"\r\n\r\n", 400},
		"two words":                 {"GET /v1/models\r\n\r\n", 400},
		"HTTP/0.9":                  {"GET /\r\n", 400},
		"four words":                {"GET / v1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"TLS":                       {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"method with a bracket":     {"G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"NUL in the path":           {"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"NUL in a header":           {"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400},
		"bad escape":                {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"path of the native form":   {"GET /native/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"HTTP/3.0":                  {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
		"HTTP/2.0":                  {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
		"HTTP/1.1x":                 {"GET / HTTP/1.1x\r\nHost: x\r\n\r\n", 400},
		"preface of HTTP/2":         {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404},
		"bad header name":           {"GET / HTTP/1.1\r\nHost: x\r\nX(: a\r\n\r\n", 400},
		"no header name":            {"GET / HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n", 400},
		"space before the colon":    {"GET / HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n", 400},
		"no colon":                  {"GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", 400},
		"folded first header":       {"GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
		"control in a value":        {"GET / HTTP/1.1\r\nHost: x\r\nX: a\x7fb\r\n\r\n", 400},
		"no Host":                   {"GET / HTTP/1.1\r\n\r\n", 400},
		"two Hosts":                 {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
		"bad Host":                  {"GET / HTTP/1.1\r\nHost: x/y z\r\n\r\n", 400},
		"lengths that differ":       {chat + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"list of lengths":           {chat + "Content-Length: 2, 2\r\n\r\n{}", 400},
		"negative length":           {chat + "Content-Length: -1\r\n\r\n{}", 400},
		"signed length":             {chat + "Content-Length: +2\r\n\r\n{}", 400},
		"empty length":              {chat + "Content-Length:\r\n\r\n{}", 400},
		"length beyond the numbers": {chat + "Content-Length: 99999999999999999999\r\n\r\n{}", 400},
		"gzip":                      {chat + "Transfer-Encoding: gzip\r\n\r\n{}", 501},
		"gzip, chunked":             {chat + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		"chunked twice":             {chat + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
		"huge header":               {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 200<<10) + "\r\n\r\n", 431},
		"many headers":              {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: a\r\n", 40<<10) + "\r\n", 431},
		"huge path":                 {"GET /" + strings.Repeat("a", 200<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"strange expectation":       {keyed + "Expect: a cake\r\nContent-Length: 2\r\n\r\n{}", 417},
		"length and chunks":         {keyed + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"chunks and length":         {keyed + "transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"native, length and chunks": {
			"POST /native/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"chunks in HTTP/1.0": {
			"POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", 400},
		"bad size of a chunk":  {keyed + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
		"chunks, no key":       {chat + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 401},
		"chunked":              {keyed + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"chunks with trailers": {keyed + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := strings.Contains(test.request, " /native/")
			for _, door := range map[string]*door{"listen": p.door, "metrics_listen": p.extra} {
				got := hear(t, door, test.request)
				if door == p.door && got.status != test.status || got.kept {
					t.Errorf("%s: %d %s; want %d, connection kept: %t", name, got.status, got.body, test.status, got.kept)
				}
				if door == p.door {
					got.ours(t, name, native)
				} else {
					got.ours(t, name, native && got.status == 400)
				}
			}
		})
	}
}

// TestOddRequests: requests that net/http reads, or would answer by itself, come
// to our own list of paths.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.SQLite(t), "metrics_listen: 127.0.0.1:0"))
	defer p.stop(t)
	const tail = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, test := range map[string]struct {
		door    *door
		request string
		status  int
	}{
		"OPTIONS *":         {p.door, "OPTIONS *" + tail, 404},
		"GET *":             {p.door, "GET *" + tail, 404},
		"OPTIONS":           {p.door, "OPTIONS /v1/models" + tail, 405},
		"absolute":          {p.door, "GET http://elsewhere.example/v1/models" + tail, 401},
		"absolute, unknown": {p.door, "GET http://elsewhere.example" + tail, 404},
		"CONNECT":           {p.door, "CONNECT elsewhere.example:443" + tail, 404},
		"CONNECT, path":     {p.door, "CONNECT /v1/models" + tail, 405},
		"two slashes":       {p.door, "GET //v1/models" + tail, 404},
		"dots":              {p.door, "GET /v1/../v1/models" + tail, 404},
		"slash at the end":  {p.door, "GET /v1/models/" + tail, 404},
		"unknown method":    {p.door, "BREW /v1/models" + tail, 405},
		"upgrade":           {p.door, "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n", 401},
		"HTTP/1.0":          {p.door, "GET /v1/models HTTP/1.0\r\n\r\n", 401},
		"equal lengths": {p.door,
			"POST /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 405},
		"metrics, unknown": {p.extra, "GET /v1/models" + tail, 404},
		"metrics, POST":    {p.extra, "POST /metrics" + tail, 405},
		"metrics, slashes": {p.extra, "GET //metrics" + tail, 404},
		"metrics, *":       {p.extra, "OPTIONS *" + tail, 404},
	} {
		got := hear(t, test.door, test.request)
		if got.status != test.status || got.kept {
			t.Errorf("%s: %d %s; want %d, kept: %t", name, got.status, got.body, test.status, got.kept)
		}
		got.ours(t, name, false)
	}
}

// piped answers with the path and the length of the body, which /unread does not
// read.
var piped = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var body []byte
	var err error
	if r.URL.Path != "/unread" {
		body, err = io.ReadAll(r.Body)
	}
	fmt.Fprintf(w, "%s %d %v", r.URL.Path, len(body), err)
})

// inChunks writes a body as chunks of random lengths.
func inChunks(random *rand.Rand, body string) string {
	var out strings.Builder
	for len(body) > 0 {
		n := 1 + random.IntN(len(body))
		fmt.Fprintf(&out, []string{"%x\r\n%s\r\n", "%X\r\n%s\r\n"}[random.IntN(2)], n, body[:n])
		body = body[n:]
	}
	return out.String() + "0\r\n\r\n"
}

// TestWhereRequestsEnd: however the bytes of requests come, one after the other
// or all at once, those on one connection are answered, chunked ones too, and the
// first that says in two ways where it ends, or in a way that somebody may read
// in another, is the last, with what follows it.
func TestWhereRequestsEnd(t *testing.T) {
	t.Parallel()
	d, _ := openDoor(t, connectionLimits{all: 100, perAddress: 100}, piped)
	long := strings.Repeat("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", 400) // a body is no header
	const chunked = "POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
	lasts := []struct{ request, answer string }{
		{chunked + "Content-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "not certain where its body ends"},
		{chunked + "\r\n2;x=y\r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{chunked + "\r\n02\r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{chunked + "\r\n2 \r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{chunked + "\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", "/last 2 <nil>"},
		{chunked + "\r\n2\r\n{}\r\n00\r\n\r\n", "/last 2 <nil>"},
		{chunked + "\r\n2\r\n{}XX0\r\n\r\n", "/last 2 malformed chunked encoding"},
		{"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{"POST /last HTTP/1.1\r\nHost: x\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{"POST /last HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\tchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "/last 2 <nil>"},
		{"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "/last 0 <nil>"},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 10 * len(lasts) {
		var all bytes.Buffer
		var want []string
		for range 1 + random.IntN(8) {
			body := long[:random.IntN(2)*random.IntN(len(long))]
			switch random.IntN(6) {
			case 0:
				all.WriteString("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")
				want = append(want, "/plain 0 <nil>")
			case 1:
				all.WriteString("GET /bare HTTP/1.1\nHost: x\n\n")
				want = append(want, "/bare 0 <nil>")
			case 2:
				fmt.Fprintf(&all, "POST /body HTTP/1.1\r\nHost: x\r\nX: %s\r\nContent-Length: %d\r\n\r\n%s", strings.Repeat("y", random.IntN(6000)),
					len(body), body)
				want = append(want, fmt.Sprintf("/body %d <nil>", len(body)))
			case 3:
				// a stray line end, which is forgiven
				fmt.Fprintf(&all, "POST /lines HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s\r\n", len(body), body)
				want = append(want, fmt.Sprintf("/lines %d <nil>", len(body)))
			case 4:
				fmt.Fprintf(&all, "POST /chunks HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n%s", inChunks(random, body))
				want = append(want, fmt.Sprintf("/chunks %d <nil>", len(body)))
			case 5:
				fmt.Fprintf(&all, "POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%s", inChunks(random, body))
				want = append(want, "/unread 0 <nil>")
			}
		}
		last := lasts[round%len(lasts)]
		all.WriteString(last.request + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
		want = append(want, last.answer)
		c := dial(t, d)
		go func() {
			for step := 1 + random.IntN(5000); all.Len() > 0; {
				_, _ = c.Write(all.Next(step))
			}
		}()
		from := bufio.NewReader(c)
		for i, part := range want {
			got, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatalf("round %d, answer %d of %d: %v", round, i, len(want), err)
			}
			body, err := io.ReadAll(got.Body)
			if err != nil || !strings.Contains(string(body), part) || got.Close != (i == len(want)-1) {
				t.Errorf("round %d, answer %d of %d: %q %v, closed %t; want %q", round, i, len(want), body, err, got.Close, part)
			}
		}
		if _, err := from.ReadByte(); err == nil || isTimeout(err) {
			t.Errorf("round %d: the connection goes on: %v", round, err)
		}
	}
}

// TestOddBodiesThatNobodyReads: where a body that is not read turns out to end in
// a way that somebody may read in another, nothing more is answered, not even what
// came with it.
func TestOddBodiesThatNobodyReads(t *testing.T) {
	t.Parallel()
	d, _ := openDoor(t, connectionLimits{all: 100, perAddress: 100}, piped)
	const header = "POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, body := range []string{
		"2;x=y\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n0\r\nX: y\r\n\r\n", "2\r\n{}XX0\r\n\r\n", "zz\r\n", "2\n{}\r\n0\r\n\r\n",
	} {
		for _, parts := range [][]string{
			{header + body + smuggled}, {header, body + smuggled}, {header, body, smuggled}, {header, body[:1], body[1:] + smuggled},
		} {
			c := dial(t, d)
			if _, err := io.WriteString(c, parts[0]); err != nil {
				t.Fatal(err)
			}
			from := bufio.NewReader(c)
			if line, err := from.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
				t.Errorf("%q: %q %v", parts, line, err)
			}
			for _, part := range parts[1:] { // the answer is on its way, and waits for them
				_, _ = io.WriteString(c, part)
			}
			rest, err := io.ReadAll(from)
			if isTimeout(err) || bytes.Contains(rest, []byte("HTTP/1.1")) || bytes.Contains(rest, []byte("smuggled")) {
				t.Errorf("%q: %q %v", parts, rest, err)
			}
		}
	}
}

// TestHeadIsBounded: what is kept of a connection has a limit.
func TestHeadIsBounded(t *testing.T) {
	t.Parallel()
	var h head
	for range 100 {
		h.read(make([]byte, 4<<10))
	}
	if !h.lost || h.came != nil {
		t.Errorf("%d bytes are kept", len(h.came))
	}
	if becomes := h.begin(&http.Request{}); becomes != desynced {
		t.Error("a connection whose bytes are lost goes on:", becomes)
	}
}

// TestRefusalsArrive: an answer to what cannot be read is not lost over what the
// client still sends.
func TestRefusalsArrive(t *testing.T) {
	t.Parallel()
	d, _ := openDoor(t, connectionLimits{all: 100, perAddress: 100}, refuser)
	for range 20 {
		c := dial(t, d)
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nX(: y\r\n\r\n"+strings.Repeat("z", 100<<10)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !bytes.Contains(answer, []byte("invalid_request")) {
			t.Fatalf("%q %v", answer, err)
		}
	}
}
