package pairtest

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/sse"
)

// Flow passes a provider's stream through a writer: a provider's error or an unreadable event ends
// in Fail, a complete stream in End with the usage u, and an incomplete stream in neither.
func Flow(stream []byte, w wire.Writer, m wire.Meter, u wire.Usage) (out []byte) {
	r := sse.NewReader(bytes.NewReader(stream), 1<<20)
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && m.Complete():
			return w.End(out, u)
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return w.Fail(out, fault.New(fault.UpstreamConnectionError, "The connection broke."))
		}
		f, err := m.Read(e)
		if err != nil || f.Err != nil {
			return w.Fail(out, fault.New(fault.UpstreamUnavailable, "The provider failed."))
		}
		if out = w.Append(out, e, f); w.Err() != nil {
			return w.Fail(out, fault.New(fault.UpstreamUnavailable, "The stream cannot be written."))
		}
		if f.Done && m.Complete() {
			return w.End(out, u)
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
