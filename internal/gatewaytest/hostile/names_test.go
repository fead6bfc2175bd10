package hostile

import (
	"context"
	"encoding/binary"
	"io"
	"net"
)

// loopbackNames resolves every name to 127.0.0.1, so that fakes have vendors' own
// hosts: by these the gateway knows whose words it reads.
func loopbackNames() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asks, answers := net.Pipe()
		go answerNames(answers)
		return asks, nil
	}}
}

// answerNames answers questions for addresses as DNS has them over TCP (RFC 1035),
// until the other side closes the connection.
func answerNames(conn net.Conn) {
	defer conn.Close()
	for {
		size := make([]byte, 2)
		if _, err := io.ReadFull(conn, size); err != nil {
			return
		}
		asked := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(conn, asked); err != nil {
			return
		}
		const head = 12
		end := head
		for end < len(asked) && asked[end] != 0 { // the labels of the name
			end += 1 + int(asked[end])
		}
		end += 5 // the root, type and class
		if end > len(asked) {
			return
		}
		isA := binary.BigEndian.Uint16(asked[end-4:]) == 1
		said := append([]byte{asked[0], asked[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, asked[head:end]...)
		if isA {
			said[7] = 1
			said = append(said, 0xc0, head, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(said))), said...)); err != nil {
			return
		}
	}
}
