package chat

import (
	"context"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/wire"
)

// chatRequest is the state of one request. One goroutine owns it.
type chatRequest struct {
	*Conductor
	AcceptedRequest
	call.Flow
	params  *wire.Parameters
	choice  catalog.Pricing
	routing []string // fields only for lines with pass-through of these fields

	modelTraced bool                         // the model of the answer is recorded in traced
	finishes    []string                     // the finish reasons recorded in traced, by choice index
	fetched     map[string]wire.FetchedImage // by address

	// Set by the good attempt. Either whole or stream is set.
	pair     wire.Pair
	whole    *wholeAnswer
	stream   *stream
	reserved int64 // bytes reserved from the budget for the stream

	source ledger.UsageSource // where the counts in the last result of usage come from
}

// close releases all resources, also after a panic.
func (x *chatRequest) close() {
	if x.whole != nil {
		x.ReleaseBody(&x.whole.WholeBody)
	}
	x.releaseMemory()
	x.Flow.Close()
}

// reserve takes n more bytes from the budget for the stream, and reports whether the budget had
// them.
func (x *chatRequest) reserve(n int64) bool {
	if !x.Answers.Reserve(n) {
		return false
	}
	x.reserved += n
	return true
}

// releaseMemory returns the stream's bytes to the budget.
func (x *chatRequest) releaseMemory() {
	x.Answers.Release(x.reserved)
	x.reserved = 0
}

// bill returns the bill for u. code is the error of an incomplete answer, or empty.
func (x *chatRequest) bill(u wire.Usage, code fault.Code) call.Bill {
	if x.opts.UnknownUsage != nil {
		for _, member := range u.Unknown {
			x.opts.UnknownUsage(x.Target.Line.ID, member)
		}
	}
	return call.Bill{
		Cost: x.Snapshot.Cost(x.Target.Line, x.Model, u, x.choice), Tokens: tokens(u), Source: x.source, Code: code,
		LineCost: x.Target.CostOf(x.Snapshot, x.Model, u, x.choice),
	}
}

// storeAnswer stores a whole answer, unless it is nil. The client may continue the answer as soon as it
// has the last bytes, on any node, so the answer is stored before.
func (x *chatRequest) storeAnswer(answer []byte) {
	if answer == nil {
		x.Log.Warn("chat: an answer could not be stored, because it was too long or had no end", "request", x.Request, "account", x.Account)
		return
	}
	step := x.AcceptedRequest.Span.Step("store")
	x.Store(context.WithoutCancel(x.ClientContext()), answer)
	step.End()
}

// begin sends the status line, when the first byte is about to be handed to the connection.
func (x *chatRequest) begin(contentType string) {
	first := !x.Started
	x.WriteHead(contentType)
	if first && x.stream != nil && x.opts.FirstToken != nil {
		x.opts.FirstToken(x.Model.ID, x.FirstByte)
	}
}

// identity returns the answer's id, model, time, prompt and origin.
func (x *chatRequest) identity(on *line.Candidate) wire.Identity {
	return wire.Identity{
		Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix(), Prompt: x.Body.Estimate(), Origin: on.Line.Origin(),
		Seals: x.Snapshot.HasAccounts(x.Model.ID),
	}
}
