package malformed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// patience is the maximum time until an answer. The gateway never waits for a missing body, because
// the caller then closes its side of the connection.
const patience = 2 * time.Minute

// caller sends requests on one connection at a time. It reuses the connection if possible.
type caller struct {
	address string
	conn    *net.TCPConn
	in      *bufio.Reader
}

// reply is an answer.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	cut     bool // the answer is incomplete
	nothing bool // the connection was closed without an answer
}

func (r *reply) String() string {
	if r.nothing {
		return "no answer"
	}
	return fmt.Sprintf("%d %v %.600q, cut: %t", r.status, r.header, r.body, r.cut)
}

// ask sends a request and reads the answer. If it returns an error, for example because there was no
// answer in time, the test has failed.
func (c *caller) ask(q *request) (*reply, error) {
	_, complete, alone := parse(q.sent())
	r, err := c.exchange(q.sent(), complete, q.method)
	if err != nil || !alone || r.nothing || r.cut || r.header.Get("Connection") == "close" {
		c.close()
	}
	return r, err
}

func (c *caller) exchange(raw []byte, complete bool, method string) (*reply, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return nil, err
		}
		c.conn, c.in = conn.(*net.TCPConn), bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	// the server may reject the request without reading all of it
	_, _ = c.conn.Write(raw)
	if !complete { // tell the server that no more data follows
		_ = c.conn.CloseWrite()
	}
	for {
		answer, err := http.ReadResponse(c.in, &http.Request{Method: method})
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return nil, fmt.Errorf("no answer after %s", patience)
		case err != nil:
			return &reply{nothing: true}, nil
		case answer.StatusCode < 200 && answer.StatusCode != http.StatusSwitchingProtocols:
			continue
		}
		body, err := io.ReadAll(answer.Body)
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, fmt.Errorf("the answer %d did not end after %s", answer.StatusCode, patience)
		}
		if answer.Close {
			answer.Header.Set("Connection", "close")
		}
		return &reply{status: answer.StatusCode, header: answer.Header, body: body, cut: err != nil}, nil
	}
}

func (c *caller) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
