package chat

import (
	"context"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
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

	fetched map[string]wire.FetchedImage // by address
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

// identity returns the answer's id, model, time, prompt and origin.
func (x *chatRequest) identity(on *line.Candidate) wire.Identity {
	return wire.Identity{
		Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix(), Prompt: x.Body.Estimate(), Origin: on.Line.Origin(),
		Seals: x.Snapshot.HasAccounts(x.Model.ID),
	}
}
