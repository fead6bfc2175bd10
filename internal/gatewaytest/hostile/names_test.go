package hostile

import (
	"context"
	"encoding/binary"
	"io"
	"net"
)

// loopbackNames returns a resolver that resolves every name to 127.0.0.1. So fakes can have the
// vendors' host names, which the gateway uses to identify the vendors.
func loopbackNames() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerNames(server)
		return client, nil
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
