package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store/id"
)

// refuse replaces p, the response of net/http to an unreadable request, with an
// error in the gateway's shape. While no handler runs, net/http writes nothing else: it
// writes the whole response at once and then closes the connection.
func (c *conn) refuse(p []byte) (int, error) {
	if c.refused {
		return len(p), nil
	}
	c.refused = true
	request := id.New("req_")
	e := refusalOf(p)
	c.listener.Log.Debug("a request could not be read",
		"request", request, "client", c.from.String(), "status", e.Status(), "reason", e.Message())
	c.extend()
	if _, err := c.TCPConn.Write(encode(e, request, pathOf(c.start))); err != nil {
		return 0, err
	}
	c.linger()
	return len(p), nil
}

// pathOf returns the path of the request that begins with start. Some families of paths have errors of
// their own shape.
func pathOf(start []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimLeft(start, "\r\n"), []byte("\n"))
	_, target, _ := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
	target, _, _ = bytes.Cut(target, []byte(" "))
	path, _, _ := bytes.Cut(target, []byte("?"))
	return string(path)
}

// encode returns the response to a refused request for a path.
func encode(e *fault.Error, request, path string) []byte {
	body := e.Body()
	switch {
	case fault.IsNative(path):
		body = e.NativeBody()
	case fault.IsGoogle(path):
		body = e.GoogleBody()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n"+
		"X-Request-Id: %s\r\nRequest-Id: %s\r\nDate: %s\r\n\r\n", e.Status(), http.StatusText(e.Status()), len(body)+1,
		request, request, time.Now().UTC().Format(http.TimeFormat))
	b.Write(body)
	b.WriteByte('\n')
	return b.Bytes()
}

// refusalOf translates an error response of net/http by its status and the reason in its
// status line.
func refusalOf(response []byte) *fault.Error {
	line, _, _ := strings.Cut(string(response), "\r\n")
	_, line, _ = strings.Cut(line, " ")
	code, text, _ := strings.Cut(line, " ")
	_, reason, known := strings.Cut(text, ": ")
	status, err := strconv.Atoi(code)
	if err != nil || status < 400 || status > 599 {
		status = http.StatusBadRequest
	}
	message := "The request cannot be read as HTTP/1.1. Check its request line and its headers."
	switch {
	case status == http.StatusExpectationFailed:
		message = "The header `Expect` has a value that is not supported. Leave it out, or send `100-continue`."
	case status == http.StatusRequestHeaderFieldsTooLarge:
		message = fmt.Sprintf("The headers of the request are larger than %s. Send fewer or shorter ones.", fault.Bytes(maxHeaderBytes))
	case status == http.StatusNotImplemented:
		message = "The only supported value of the header `Transfer-Encoding` is `chunked`, once. Send that, or a `Content-Length` instead."
	case status == http.StatusHTTPVersionNotSupported:
		message = "This version of HTTP is not supported. Use HTTP/1.1."
	case known:
		message = fmt.Sprintf("The request cannot be read as HTTP/1.1: %s.", reason)
	}
	e := fault.New(fault.InvalidRequest, "%s", message)
	if status != http.StatusBadRequest {
		e.Rejection = &fault.Rejection{Status: status, Type: e.Type()}
	}
	return e
}
