package rawjson

import (
	"bytes"
	"io"
	"net"
	"slices"
)

// Pieces is a text in pieces. An edited text shares its unchanged bytes with the original, so a
// long body is not copied for a small edit. Pieces must not be modified. The zero value is the
// empty text.
type Pieces [][]byte

// Len returns the length of the text in bytes.
func (p Pieces) Len() int {
	n := 0
	for _, piece := range p {
		n += len(piece)
	}
	return n
}

// Bytes returns the text in one slice, which must not be modified.
func (p Pieces) Bytes() []byte {
	if len(p) == 1 {
		return p[0]
	}
	return bytes.Join(p, nil)
}

// Reader returns a new reader of the text.
func (p Pieces) Reader() io.Reader {
	if len(p) == 1 {
		return bytes.NewReader(p[0])
	}
	rest := net.Buffers(slices.Clone(p)) // Read modifies net.Buffers
	return &rest
}
