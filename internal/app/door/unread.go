package door

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store/id"
)

// refuse replaces an answer that net/http makes of a request which it cannot read
// by one of ours. Nothing else is written while no handler runs, so whatever is
// written then is such an answer, whole and the connection's last.
func (c *conn) refuse(p []byte) (int, error) {
	if c.refused {
		return len(p), nil
	}
	c.refused = true
	if c.dead.Load() { // it is the rest of a body, and nobody waits for an answer to it
		c.linger()
		return len(p), nil
	}
	request := id.New("req_")
	e := unread(p)
	c.door.Log.Debug("a request could not be read", "request", request, "client", c.from.String(), "status", e.Status(), "reason", e.Message)
	c.extend()
	if _, err := c.TCPConn.Write(refusal(e, request, c.head.native())); err != nil {
		return 0, err
	}
	c.linger()
	return len(p), nil
}

// begin is told that a handler takes a request over; see head.begin. c is nil
// for connections that are not TCP.
func (c *conn) begin(r *http.Request) reuse {
	if c == nil {
		return keepAlive
	}
	c.handled.Store(true)
	return c.head.begin(r)
}

// refusal is a whole answer, head and body.
func refusal(e *fault.Error, request string, native bool) []byte {
	body := e.Body()
	if native {
		body = e.NativeBody()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n"+
		"X-Request-Id: %s\r\nRequest-Id: %s\r\nDate: %s\r\n\r\n", e.Status(), http.StatusText(e.Status()), len(body)+1,
		request, request, time.Now().UTC().Format(http.TimeFormat))
	b.Write(body)
	b.WriteByte('\n')
	return b.Bytes()
}

// unread is what an answer of net/http comes to, by its status and the reason that
// it gives in its status line.
func unread(answer []byte) *fault.Error {
	line, _, _ := strings.Cut(string(answer), "\r\n")
	_, line, _ = strings.Cut(line, " ")
	code, text, _ := strings.Cut(line, " ")
	_, reason, known := strings.Cut(text, ": ")
	status, err := strconv.Atoi(code)
	if err != nil || status < 400 || status > 599 {
		status = http.StatusBadRequest
	}
	e := fault.New(fault.InvalidRequest, "The request cannot be read as HTTP/1.1. Check its request line and its headers.")
	if status != http.StatusBadRequest {
		e.Passed = &fault.Passed{Status: status, Type: e.Type()}
	}
	switch {
	case status == http.StatusExpectationFailed:
		e.Message = "The header `Expect` asks for something unknown. Leave it out, or send `100-continue`."
	case status == http.StatusRequestHeaderFieldsTooLarge:
		e.Message = fmt.Sprintf("The headers of the request are larger than %s. Send fewer or shorter ones.", fault.Bytes(maxHeaderBytes))
	case status == http.StatusNotImplemented:
		e.Message = "The header `Transfer-Encoding` may say `chunked`, once, and nothing else."
	case status == http.StatusHTTPVersionNotSupported:
		e.Message = "The version of HTTP is not supported. Use HTTP/1.1."
	case known:
		e.Message = fmt.Sprintf("The request cannot be read as HTTP/1.1: %s.", reason)
	}
	return e
}

// twoEnds is the refusal of a request that says in two ways where its body ends.
func twoEnds(w http.ResponseWriter, r *http.Request) {
	httpapi.Refuse(w, r, fault.New(fault.InvalidRequest, "The request has a `Transfer-Encoding` beside a `Content-Length` or in HTTP/1.0, "+
		"so it is not certain where its body ends. Send one `Content-Length` alone."))
}
