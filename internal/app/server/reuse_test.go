package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// echo answers with the path and the length of the body. It does not read the body of
// /unread.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var body []byte
	var err error
	if r.URL.Path != "/unread" {
		body, err = io.ReadAll(r.Body)
	}
	fmt.Fprintf(w, "%s %d %v", r.URL.Path, len(body), err)
})

// lastRequests are requests with a part of their response. A connection serves no
// other request after one of them.
var lastRequests = func() map[string]string {
	const chunked = "POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
	const old = "POST /last HTTP/1.0\r\nConnection: keep-alive\r\n"
	return map[string]string{
		chunked + "\r\n2\r\n{}\r\n0\r\n\r\n":                      "/last 2 <nil>",
		chunked + "\r\n0\r\n\r\n":                                 "/last 0 <nil>",
		chunked + "Content-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n": "/last 2 <nil>",
		"POST /last HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "/last 0 <nil>",
		chunked + "\r\n2;x=y\r\n{}\r\n0\r\n\r\n":     "/last 2 <nil>",
		chunked + "\r\n02\r\n{}\r\n0\r\n\r\n":        "/last 2 <nil>",
		chunked + "\r\n2 \r\n{}\r\n0\r\n\r\n":        "/last 2 <nil>",
		chunked + "\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n": "/last 2 <nil>",
		chunked + "\r\n2\r\n{}\r\n00\r\n\r\n":        "/last 2 <nil>",
		chunked + "\r\n2\n{}\n0\n\n":                 "/last ",
		chunked + "\r\n2\r\n{}XX0\r\n\r\n":           "/last 2 malformed chunked encoding",
		chunked + "\r\nzz\r\n{}\r\n0\r\n\r\n":        "/last 0 invalid byte in chunk length",
		"POST /last HTTP/1.1\r\nHost: x\r\ntransfer-encoding:\tChunked \r\n\r\n2\r\n{}\r\n0\r\n\r\n":             "/last 2 <nil>",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":           "/last 2 <nil>",
		"POST /last HTTP/1.1\r\nHost: x\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":                 "/last 2 <nil>",
		"POST /last HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n": "/last 2 <nil>",
		"GET /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":                "/last 2 <nil>",
		chunked + "Expect: 100-continue\r\n\r\n2\r\n{}\r\n0\r\n\r\n":                                             "/last 2 <nil>",
		old + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":                                           "/last 0 <nil>",
		old + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}":                                        "/last 2 <nil>",
		old + "Content-Length: 2\r\n\r\n{}":                                                                      "/last 2 <nil>",
		"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                                             "/last 0 <nil>",
		// net/http refuses these.
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}":                 "invalid_request",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\n{}":                 "chunked",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\nContent-Length: 2\r\n\r\n{}":        "chunked",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\nContent-Length: 2\r\n\r\n{}":              "chunked",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\nContent-Length: 2\r\n\r\n{}":                          "chunked",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: 2\r\n\r\n{}":              "invalid_request",
		"POST /last HTTP/1.1\r\nHost: x\r\nX: y\rTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}":            "invalid_request",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n": "chunked",
		"POST /last HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "chunked",
		"POST /last HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}":                          "invalid_request",
		"POST /last HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\n{}":                                             "invalid_request",
		"POST /last HTTP/1.1\r\nHost: x\r\nContent-Length: 0x2\r\n\r\n{}":                                              "invalid_request",
	}
}()

const smuggledGet = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

// TestReuse checks that requests with a Content-Length keep their connection. After a request
// without a clear end, the server reads no more bytes as a request, however they arrive.
func TestReuse(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, Options{}, echo)
	long := strings.Repeat("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", 400) // as a body
	random := rand.New(rand.NewPCG(1, 2))
	for last, answer := range lastRequests {
		for range 5 {
			var sent bytes.Buffer
			var want []string
			for range random.IntN(8) {
				body := long[:random.IntN(2)*random.IntN(len(long))]
				switch random.IntN(4) {
				case 0:
					sent.WriteString("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")
					want = append(want, "/plain 0 <nil>")
				case 1:
					sent.WriteString("GET /bare HTTP/1.1\nHost: x\n\n")
					want = append(want, "/bare 0 <nil>")
				case 2: // with an additional line end, as some clients send
					fmt.Fprintf(&sent, "POST /body HTTP/1.1\r\nHost: x\r\nX: %s\r\nContent-Length: %d\r\n\r\n%s\r\n",
						strings.Repeat("y", random.IntN(6000)), len(body), body)
					want = append(want, fmt.Sprintf("/body %d <nil>", len(body)))
				case 3:
					fmt.Fprintf(&sent, "POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					want = append(want, "/unread 0 <nil>")
				}
			}
			sent.WriteString(last + smuggledGet)
			want = append(want, answer)
			c := dial(t, s)
			go func() {
				for step := 1 + random.IntN(5000); sent.Len() > 0; {
					_, _ = c.Write(sent.Next(step))
				}
			}()
			reader := bufio.NewReader(c)
			for i, part := range want {
				got, err := http.ReadResponse(reader, nil)
				if err == nil && got.StatusCode == http.StatusContinue {
					got, err = http.ReadResponse(reader, nil)
				}
				if err != nil {
					t.Fatalf("%q: response %d of %d: %v", last, i, len(want), err)
				}
				body, err := io.ReadAll(got.Body)
				if err != nil || !strings.Contains(string(body), part) || got.Close != (i == len(want)-1) {
					t.Errorf("%q: response %d of %d: %q %v, close %t; want %q", last, i, len(want), body, err, got.Close, part)
				}
			}
			if _, err := reader.ReadByte(); err == nil || isTimeout(err) {
				t.Errorf("%q: the connection is open: %v", last, err)
			}
		}
	}
}

// TestUnreadBodies checks that no part of an unread body is read as a request, whether it arrives
// before or after the response.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, Options{}, echo)
	for header, bodies := range map[string][]string{
		"Transfer-Encoding: chunked": {"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n", "2;x=y\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n0\r\nX: y\r\n\r\n",
			"2\r\n{}XX0\r\n\r\n", "zz\r\n", "2\n{}\r\n0\r\n\r\n", "ffff\r\n"},
		"Content-Length: 1000":    {"{}"},
		"Content-Length: 1000000": {"{}"},
	} {
		for _, body := range bodies {
			head := "POST /unread HTTP/1.1\r\nHost: x\r\n" + header + "\r\n\r\n"
			for _, parts := range [][]string{
				{head + body + smuggledGet}, {head, body + smuggledGet}, {head, body, smuggledGet}, {head, body[:1], body[1:] + smuggledGet},
			} {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					c := dial(t, s)
					if _, err := io.WriteString(c, parts[0]); err != nil {
						t.Fatal(err)
					}
					reader := bufio.NewReader(c)
					if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
						t.Errorf("%q: %q %v", parts, line, err)
					}
					for _, part := range parts[1:] {
						_, _ = io.WriteString(c, part)
					}
					rest, err := io.ReadAll(reader)
					if isTimeout(err) || bytes.Contains(rest, []byte("HTTP/1.1")) || bytes.Contains(rest, []byte("smuggled")) {
						t.Errorf("%q: %q %v", parts, rest, err)
					}
				})
			}
		}
	}
}

// TestShapeOfRefusals checks that an unreadable request gets an error in the format of its API.
func TestShapeOfRefusals(t *testing.T) {
	t.Parallel()
	for start, native := range map[string]bool{
		"GET /native HTTP/1.1\r\n": true, "GET /native/%zz HTTP/1.1\r\n": true, "GET /native?%zz HTTP/1.1\r\n": true,
		"\r\n\nPOST /native/v1/messages HTTP/3.0\n": true, "GET /native\r\n": true, "GET /native": true, "GET /native/x\r\n": true,
		"GET /nativex HTTP/1.1\r\n": false, "GET /v1/models?x=/native/ HTTP/1.1\r\n": false, "GET /v1 /native/ HTTP/1.1\r\n": false,
		"/native/ HTTP/1.1\r\n": false, "": false, "GET": false,
	} {
		if fault.IsNative(pathOf([]byte(start))) != native {
			t.Errorf("%q: %t", start, !native)
		}
	}
	s, _ := startServer(t, Options{}, echo)
	for path, part := range map[string]string{"/v1/%zz": `{"error":`, "/native/%zz": `{"type":"error"`} {
		c := dial(t, s)
		if roundTrip(c, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}") != 200 {
			t.Fatal("no response")
		}
		waitIdle(s, 1)
		_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := io.ReadAll(c)
		if err != nil || !bytes.Contains(answer, []byte(part)) {
			t.Errorf("%s: %q %v", path, answer, err)
		}
	}
}

// TestRefusalsArrive checks that the error of an unreadable request reaches a client that has not
// sent everything yet.
func TestRefusalsArrive(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, Options{}, unauthorized)
	for range 20 {
		c := dial(t, s)
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nX(: y\r\n\r\n"+strings.Repeat("z", 100<<10)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !bytes.Contains(answer, []byte("invalid_request")) {
			t.Fatalf("%q %v", answer, err)
		}
	}
}
