package main

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// runUpstream runs the provider on a free port and prints its address. Its answers are ready-made,
// because it shares the machine with the processes under test. The first part of a request's path
// names the scenario.
func runUpstream() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	replies := map[string]reply{}
	for _, s := range scenarios {
		replies[s.name] = newReply(s)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go serveUpstream(conn, replies)
	}
}

// reply is the ready-made answer of a scenario.
type reply struct {
	scenario
	head   []byte // status and headers, and the whole body when not streamed
	chunks [][]byte
	end    []byte
}

func newReply(s scenario) reply {
	r := reply{scenario: s}
	if !s.stream {
		r.head = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(s.form.whole), s.form.whole)
		return r
	}
	r.head = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", s.form.contentType)
	chunks, end := s.form.pieces(s.chunks)
	for _, c := range chunks {
		r.chunks = append(r.chunks, fmt.Appendf(nil, "%x\r\n%s\r\n", len(c), c))
	}
	r.end = fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(end), end)
	if s.gap == 0 { // one burst is one write
		var all []byte
		for _, c := range r.chunks {
			all = append(all, c...)
		}
		r.chunks, r.end = nil, append(all, r.end...)
	}
	return r
}

// serveUpstream answers the requests of one connection.
func serveUpstream(conn net.Conn, replies map[string]reply) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 64<<10)
	for {
		name, length, err := readRequest(in)
		if err != nil {
			return
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		r, ok := replies[name]
		if !ok {
			return
		}
		if r.wait > 0 {
			<-time.After(r.wait)
		}
		if !r.stream {
			if _, err := conn.Write(r.head); err != nil {
				return
			}
			continue
		}
		if _, err := conn.Write(r.head); err != nil {
			return
		}
		if r.gap > 0 && !paceChunks(conn, r) {
			return
		}
		if _, err := conn.Write(r.end); err != nil {
			return
		}
	}
}

// paceChunks writes the chunks of a stream, with r.gap between them. It returns false if a write
// fails.
func paceChunks(conn net.Conn, r reply) bool {
	ticker := time.NewTicker(r.gap)
	defer ticker.Stop()
	for _, c := range r.chunks {
		<-ticker.C
		if _, err := conn.Write(c); err != nil {
			return false
		}
	}
	return true
}

// readRequest reads a request up to its body. It returns the first part of the path and the length
// of the body.
func readRequest(in *bufio.Reader) (name string, length int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return "", 0, err
	}
	if _, path, ok := strings.Cut(string(line), " /"); ok {
		name, _, _ = strings.Cut(path, "/")
	}
	length, chunked, err := readHeader(in)
	if err == nil && chunked {
		err = fmt.Errorf("a request with a chunked body")
	}
	return name, length, err
}

// readHeader reads header lines up to the blank line.
func readHeader(in *bufio.Reader) (length int, chunked bool, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		if len(line) <= 2 {
			return length, chunked, nil
		}
		const contentLength, transfer = "content-length:", "transfer-encoding: chunked"
		switch {
		case len(line) > len(contentLength) && strings.EqualFold(string(line[:len(contentLength)]), contentLength):
			if length, err = strconv.Atoi(strings.TrimSpace(string(line[len(contentLength):]))); err != nil {
				return 0, false, err
			}
		case len(line) >= len(transfer) && strings.EqualFold(string(line[:len(transfer)]), transfer):
			chunked = true
		}
	}
}

// readBody reads an answer's body and returns its size in bytes. done reports whether the text last is
// near the end of a chunk.
func readBody(in *bufio.Reader, length int, chunked bool, last string) (size int, done bool, err error) {
	if !chunked {
		size, err = in.Discard(length)
		return size, false, err
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return size, done, err
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(line)), 16, 31)
		if err != nil {
			return size, done, err
		}
		if n > 0 {
			part, peekErr := in.Peek(min(int(n), in.Size()))
			if peekErr != nil {
				return size, done, peekErr
			}
			done = done || strings.Contains(string(part[max(0, len(part)-64):]), last)
		}
		if _, err := in.Discard(int(n) + 2); err != nil {
			return size, done, err
		}
		if n == 0 {
			return size, done, nil
		}
		size += int(n)
	}
}
