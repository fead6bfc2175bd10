package door

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

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
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 100}, piped)
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
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 100}, piped)
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
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 100}, refuser)
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
