package rawjson

import (
	"bytes"
	"io"
	"net"
	"slices"
)

// Pieces are a text in pieces, one behind the other, so that what is made of another
// text shares what was left as it was: a long body is not copied for an edit of a few
// bytes. Nobody may write to a piece. The zero value is the empty text.
type Pieces [][]byte

// Len returns the bytes of the text.
func (p Pieces) Len() int {
	n := 0
	for _, piece := range p {
		n += len(piece)
	}
	return n
}

// Bytes returns the text in one piece, which nobody may write to.
func (p Pieces) Bytes() []byte {
	if len(p) == 1 {
		return p[0]
	}
	return bytes.Join(p, nil)
}

// maxJoined is up to which size a reader joins the pieces: net/http sends what it
// knows to lie in memory in one write with the request's head, and other bodies in
// another one, which costs more than so long a copy.
const maxJoined = 32 << 10

// Reader returns a new reader of the text.
func (p Pieces) Reader() io.Reader {
	if len(p) == 1 || p.Len() <= maxJoined {
		return bytes.NewReader(p.Bytes())
	}
	rest := net.Buffers(slices.Clone(p)) // it forgets what it has read
	return &rest
}
