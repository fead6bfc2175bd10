package chat

import (
	"context"
	"slices"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/line"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/translate"
)

// countWait bounds the wait for a provider's count of tokens. The gateway's own count needs no wait.
const countWait = 10 * time.Second

// CountTokens returns the number of tokens in a request's prompt: the provider's count if a line
// has one, else the gateway's count. ignored names the fields withheld from the line, for
// IgnoredHeader. CountTokens moves no money. The error is a *fault.Error: the provider rejected the
// request, or no line may get it. Images by address are fetched as for the request itself.
func (c *Conductor) CountTokens(ctx context.Context, r AcceptedRequest) (n int64, ignored string, err error) {
	x := c.newRequest(ctx, nil, r)
	if err := x.Snapshot.CheckRouting(x.Model, x.Form, x.routing); err != nil {
		return 0, "", err
	}
	if err := x.CheckUnknown(x.Snapshot, x.Model, x.params.Extra); err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, countWait)
	defer cancel()
	for counter := range c.Lines.CountingLines(x.routingRequest()) {
		var request chatcall.Call
		if request, ignored, err = x.countCall(ctx, &counter.Candidate); err != nil {
			continue
		}
		if n, known, err := counter.Count(ctx, request); known || err != nil {
			return n, ignored, err
		}
	}
	return x.count(wire.Usage{}, false, noOutput{}).Prompt, ignored, nil
}

// noOutput has the output counts of a prompt without an answer.
type noOutput struct{}

func (noOutput) Completion(*wire.Counter) int64 { return 0 }
func (noOutput) SoundTokens() int64             { return 0 }

// countCall returns the call that counts the prompt on a line, and names the fields withheld from the
// line.
func (x *chatRequest) countCall(ctx context.Context, on *line.Candidate) (request chatcall.Call, ignored string, err error) {
	request = chatcall.Call{Form: on.Form, Model: on.ProviderModel}
	if on.Form == x.Form {
		request.Header = x.Header
	}
	t := x.newTranslation(on)
	ignored = call.NamesOfFields(x.omittedFields(on, t.Omit))
	if own, ok := x.Body.(*messages.Request); ok && on.Form == wire.FormMessages {
		request.Body = own.CountBody(t.Edits)
		return request, ignored, nil
	}
	t.Images = x.countedImages(ctx)
	request.Body, err = translate.New(x.Body, on.Form, x.identity(on)).Body(t)
	return request, ignored, err
}

// countedImages returns a function like images does. Because a count is free, the function fetches
// images only if the account could make the request itself now.
func (x *chatRequest) countedImages(ctx context.Context) func(addresses []string) []wire.FetchedImage {
	fetch := x.images(ctx)
	if fetch == nil {
		return nil
	}
	return func(addresses []string) []wire.FetchedImage {
		if err := x.Admissible(ctx, x.newAdmission()); err != nil {
			return slices.Repeat([]wire.FetchedImage{{Err: err}}, len(addresses))
		}
		return fetch(addresses)
	}
}
