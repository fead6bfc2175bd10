package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// maxMessage bounds the length of a message, in bytes.
const maxMessage = 256 << 20

// Codes at the start of a connection, in the place of the protocol version.
const (
	codeCancel = 80877102
	codeTLS    = 80877103
	codeGSS    = 80877104
)

// message is a message of the PostgreSQL protocol, version 3.
type message struct {
	kind byte
	raw  []byte // the whole message
}

func (m message) body() []byte { return m.raw[5:] }

// asks reports whether the server answers m with ReadyForQuery.
func (m message) asks() bool { return m.kind == 'S' || m.kind == 'Q' || m.kind == 'F' }

// flushes reports whether a node may wait for an answer after m. It may wait after all messages
// except the steps of the extended protocol.
func (m message) flushes() bool { return !bytes.ContainsRune([]byte("PBDEC"), rune(m.kind)) }

func readMessage(in *bufio.Reader) (message, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(in, head); err != nil {
		return message{}, err
	}
	raw, err := readRest(in, head, 1)
	return message{head[0], raw}, err
}

// readRest reads the rest of a message. The message's length is in head after skip bytes.
func readRest(in *bufio.Reader, head []byte, skip int) ([]byte, error) {
	size := int64(binary.BigEndian.Uint32(head[skip:]))
	if size < 4 || size > maxMessage {
		return nil, errors.New("not a message of the protocol")
	}
	raw := make([]byte, int64(skip)+size)
	copy(raw, head)
	_, err := io.ReadFull(in, raw[len(head):])
	return raw, err
}

// readStartup reads the first message of a connection. It declines encryption.
func readStartup(in *bufio.Reader, back io.Writer) ([]byte, error) {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(in, head); err != nil {
			return nil, err
		}
		raw, err := readRest(in, head, 0)
		if err != nil {
			return nil, err
		}
		if code := startupCode(raw); code != codeTLS && code != codeGSS {
			return raw, nil
		}
		if _, err := back.Write([]byte("N")); err != nil {
			return nil, err
		}
	}
}

func startupCode(raw []byte) uint32 {
	if len(raw) < 8 {
		return 0
	}
	return binary.BigEndian.Uint32(raw[4:])
}

// cancelKey returns the process id of a cancel request.
func cancelKey(raw []byte) (pid uint32, ok bool) {
	if startupCode(raw) != codeCancel || len(raw) < 12 {
		return 0, false
	}
	return binary.BigEndian.Uint32(raw[8:]), true
}

// cString splits off a zero-terminated text.
func cString(b []byte) (text string, rest []byte) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return string(b), nil
	}
	return string(b[:i]), b[i+1:]
}
