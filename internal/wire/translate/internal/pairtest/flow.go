package pairtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/sse"
)

// Flow passes a provider's stream through a writer: a provider's error or an unreadable event ends
// in Fail, a complete stream in End with the usage u, and an incomplete stream in neither.
func Flow(stream []byte, w wire.Writer, m wire.Meter, u wire.Usage) (out []byte) {
	r := sse.NewReader(bytes.NewReader(stream), 1<<20)
	var memory lender
	for {
		read, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && m.Complete():
			return w.End(out, u)
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return w.Fail(out, fault.New(fault.UpstreamConnectionError, "The connection broke."))
		}
		e, giveBack := memory.lend(read)
		f, err := m.Read(e)
		if err != nil || f.Err != nil {
			return w.Fail(out, fault.New(fault.UpstreamUnavailable, "The provider failed."))
		}
		out = w.Append(out, e, f)
		if giveBack(); w.Err() != nil {
			return w.Fail(out, fault.New(fault.UpstreamUnavailable, "The stream cannot be written."))
		}
		if f.Done && m.Complete() {
			return w.End(out, u)
		}
	}
}

// lender gives out events in one memory, as a sse.Reader does: each event overwrites the one before it.
type lender struct{ memory []byte }

// behind is the number of bytes behind an event in the memory. They belong to the next events.
const behind = 1 << 10

// lend returns an event in the memory. giveBack overwrites it, and panics if a byte behind the event was
// changed.
func (l *lender) lend(e sse.Event) (lent sse.Event, giveBack func()) {
	if need := len(e.Raw) + len(e.Data) + behind; len(l.memory) < need {
		l.memory = make([]byte, 2*need)
	}
	end := copy(l.memory, e.Raw)
	lent = e
	lent.Raw = l.memory[:end]
	if e.Offset >= 0 && e.Data != nil {
		lent.Data = l.memory[e.Offset : e.Offset+len(e.Data)]
	} else {
		lent.Data = slices.Clone(e.Data)
	}
	rest := l.memory[end:]
	for i := range rest {
		rest[i] = '#'
	}
	return lent, func() {
		if i := bytes.IndexFunc(rest, func(r rune) bool { return r != '#' }); i >= 0 {
			panic(fmt.Sprintf("the bytes behind the event %s were changed: %s", e.Raw, rest[i:min(len(rest), i+behind)]))
		}
		for _, memory := range [][]byte{l.memory, lent.Data} {
			for i := range memory {
				memory[i] = '?'
			}
		}
	}
}

// StreamWithoutEnd passes a valid stream through a writer without End. held is the length of the output
// at the finish; the rest waits for the settlement.
func StreamWithoutEnd(t testing.TB, stream string, w wire.Writer, m wire.Meter) (out []byte, held int) {
	t.Helper()
	held = -1
	for e := range sse.Each([]byte(stream)) {
		f, err := m.Read(e)
		if err != nil {
			t.Fatal(err)
		}
		if f.Finished && held < 0 {
			held = len(out)
		}
		out = w.Append(out, e, f)
	}
	return out, held
}
