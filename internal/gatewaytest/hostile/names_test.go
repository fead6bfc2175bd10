package hostile

import (
	"context"
	"encoding/binary"
	"io"
	"net"
)

// loopbackNames resolves every name to 127.0.0.1, so that fakes have the vendors' hosts. The
// gateway identifies vendors by host.
func loopbackNames() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asks, answers := net.Pipe()
		go answerNames(answers)
		return asks, nil
	}}
}

// answerNames answers DNS queries for addresses over TCP (RFC 1035) until the client closes the
// connection.
func answerNames(conn net.Conn) {
	defer conn.Close()
	for {
		size := make([]byte, 2)
		if _, err := io.ReadFull(conn, size); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		const head = 12
		end := head
		for end < len(query) && query[end] != 0 { // the labels of the name
			end += 1 + int(query[end])
		}
		end += 5 // the root, type and class
		if end > len(query) {
			return
		}
		isA := binary.BigEndian.Uint16(query[end-4:]) == 1
		answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[head:end]...)
		if isA {
			answer[7] = 1
			answer = append(answer, 0xc0, head, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}
