package conformance

import (
	"context"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// ChatProvider describes a provider of chat for the suite.
type ChatProvider struct {
	// Provider is the provider's name in the catalog.
	Provider string
	// Call returns the gateway's request in a form. The suite sets Form and Stream.
	Call func(form wire.Form) chatcall.Call
	// WithoutTokenCount lists the forms without a token count.
	WithoutTokenCount []wire.Form
	// SimulatorOptions holds the options to simulate each behaviour, for a provider without HTTP.
	// If nil, a fake provider simulates the behaviours.
	SimulatorOptions map[Behaviour]map[string]any

	calls map[string]chatcall.Call // set by Kinds: the calls by kind, in place of Call
}

// Chat runs the chat cases for each form of a provider.
func Chat(t *testing.T, p ChatProvider) {
	info := providerInfo(t, p.Provider)
	if len(info.Forms) == 0 {
		t.Fatalf("%s has no chat forms", p.Provider)
	}
	t.Run("failures before an answer", p.failures)
	t.Run("a deadline and a cancelled context", p.contextEnds)
	t.Run("a broken stream", p.brokenStreams)
	t.Run("an unsupported form", p.unsupportedForms)
	if p.SimulatorOptions == nil {
		t.Run("another content type", p.otherTypes)
		t.Run("malformed answers", p.malformed)
		t.Run("endless answers", p.endless)
		t.Run("a port without a listener", p.noListener)
	}
}

// each runs a case for each kind, or for each form, whole and streamed.
func (p ChatProvider) each(t *testing.T, run func(t *testing.T, c chatcall.Call)) {
	for name, c := range p.calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, c)
		})
	}
	if p.calls != nil {
		return
	}
	info := providerInfo(t, p.Provider)
	for _, form := range slices.Concat(info.Forms, info.OptionalForms) {
		for kind, stream := range map[string]bool{"whole": false, "streamed": true} {
			t.Run(string(form)+" "+kind, func(t *testing.T) {
				t.Parallel()
				c := p.Call(form)
				c.Form, c.Stream = form, stream
				run(t, c)
			})
		}
	}
}

// openFor opens a line to a provider with a behaviour. arrived waits until the provider has received
// the call. sent returns the number of calls, or -1 if calls cannot be counted.
func (p ChatProvider) openFor(t *testing.T, behaviour Behaviour) (a chatcall.Adapter, arrived func(), sent func() int) {
	t.Helper()
	if p.SimulatorOptions != nil {
		options, ok := p.SimulatorOptions[behaviour]
		if !ok && behaviour != Succeeds {
			t.Fatalf("%s does not simulate behaviour %d", p.Provider, behaviour)
		}
		return open(t, p.Provider, "", options), func() {}, func() int { return -1 }
	}
	server := fakeprovider.New(t, providerReply(behaviour))
	return open(t, p.Provider, server.URL(), nil), server.WaitRequest, func() int { return len(server.Requests()) }
}

// providerReply returns the fake provider's reply for a behaviour.
func providerReply(behaviour Behaviour) fakeprovider.Reply {
	switch behaviour {
	case Stalls:
		return fakeprovider.Reply{Before: fakeprovider.Stall}
	case Resets:
		return fakeprovider.Reply{Before: fakeprovider.Reset}
	case Breaks:
		return fakeprovider.Reply{Events: []string{`{"a":1}`, `{"b":2}`}, End: fakeprovider.Reset}
	case Busy:
		return fakeprovider.Busy(7)
	case Unauthorized:
		return fakeprovider.Error(401, "authentication_error", "invalid_api_key", "Incorrect API key: "+Secret)
	case Missing:
		return fakeprovider.Error(404, "not_found_error", "model_not_found", "The model does not exist.")
	case Broken:
		return fakeprovider.Error(500, "api_error", "", "The server had an error.")
	case Page:
		return fakeprovider.Page(502)
	}
	return fakeprovider.Reply{}
}

// failures tests that a status has the same meaning for every provider, and no call is sent twice.
func (p ChatProvider) failures(t *testing.T) {
	for name, tt := range map[string]struct {
		behaviour Behaviour
		want      wantFailure
	}{
		"busy":         {Busy, wantFailure{fault.UpstreamBusy, upstream.HealthCool}},
		"unauthorized": {Unauthorized, wantFailure{fault.UpstreamUnavailable, upstream.HealthCredential}},
		"no model":     {Missing, wantFailure{fault.UpstreamUnavailable, upstream.HealthModel}},
		"broken":       {Broken, wantFailure{fault.UpstreamUnavailable, upstream.HealthFail}},
		"page":         {Page, wantFailure{fault.UpstreamUnavailable, upstream.HealthFail}},
		"reset":        {Resets, wantFailure{fault.UpstreamConnectionError, upstream.HealthFail}},
	} {
		p.each(t, func(t *testing.T, c chatcall.Call) {
			a, _, sent := p.openFor(t, tt.behaviour)
			answer, err := a.Chat(t.Context(), c)
			if answer != nil {
				t.Errorf("%s: Chat returned an answer, want only an error", name)
			}
			f := asFailure(t, name, err)
			checkFailure(t, name, f, tt.want)
			if f.Rejection != nil || f.Final() {
				t.Errorf("%s: failure %+v, want one for which other lines are tried", name, f)
			}
			if tt.behaviour == Busy && f.RetryAfter <= 0 {
				t.Errorf("%s: RetryAfter = %s, want more than 0", name, f.RetryAfter)
			}
			if n := sent(); n != -1 && n != 1 {
				t.Errorf("%s: %d calls, want 1", name, n)
			}
		})
	}
}

// contextEnds tests that the end of the context ends the call, with the cause in the failure.
func (p ChatProvider) contextEnds(t *testing.T) {
	for cause, code := range map[error]fault.Code{context.DeadlineExceeded: fault.UpstreamTimeout, context.Canceled: fault.ClientClosed} {
		p.each(t, func(t *testing.T, c chatcall.Call) {
			endedCtx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			a, _, _ := p.openFor(t, Succeeds)
			_, err := a.Chat(endedCtx, c)
			if f := asFailure(t, "before the call", err); f.Code != code {
				t.Errorf("context ended before the call: failure %v, want %s", f, code)
			}
			waitingCtx, cancel := context.WithCancelCause(t.Context())
			a, arrived, _ := p.openFor(t, Stalls)
			go func() {
				arrived()
				cancel(cause)
			}()
			_, err = a.Chat(waitingCtx, c)
			if f := asFailure(t, "during the call", err); f.Code != code {
				t.Errorf("context ended before the response: failure %v, want %s", f, code)
			}
		})
	}
	p.streams(t, func(t *testing.T, c chatcall.Call) {
		p.contextEndsInBody(t, c, context.DeadlineExceeded, fault.UpstreamTimeout)
		p.contextEndsInBody(t, c, context.Canceled, fault.ClientClosed)
	})
}

// contextEndsInBody tests that the end of the context ends a read of the body, with the cause in the
// failure.
func (p ChatProvider) contextEndsInBody(t *testing.T, c chatcall.Call, cause error, code fault.Code) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a, _, _ := p.openFor(t, Succeeds)
	if p.SimulatorOptions == nil {
		server := fakeprovider.New(t, fakeprovider.Reply{Events: []string{`{"a":1}`}, End: fakeprovider.Stall})
		a = open(t, p.Provider, server.URL(), nil)
	}
	answer, err := a.Chat(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := answer.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	_, err = io.ReadAll(answer.Body)
	if p.SimulatorOptions == nil && err == nil {
		t.Fatal("reading the body returned no error, want one because the context ended")
	}
	if err != nil {
		if f := upstream.ConnectionFailure(ctx, err); f.Code != code {
			t.Errorf("context ended in the body: failure %v, want %s", f, code)
		}
	}
}

// streams runs a case for streamed calls only.
func (p ChatProvider) streams(t *testing.T, run func(t *testing.T, c chatcall.Call)) {
	p.each(t, func(t *testing.T, c chatcall.Call) {
		if c.Stream {
			run(t, c)
		}
	})
}

// brokenStreams tests that reading an interrupted stream returns an error.
func (p ChatProvider) brokenStreams(t *testing.T) {
	half := []string{`{"a":1}`, `{"b":2}`}
	for name, reply := range map[string]fakeprovider.Reply{
		"reset":            providerReply(Breaks),
		"closed":           {Events: half, End: fakeprovider.Cut},
		"half written":     {ContentType: "text/event-stream", Body: "data: {", Length: 1000},
		"reset after head": {ContentType: "text/event-stream", AfterHead: fakeprovider.Reset},
		"incomplete chunk": {ContentType: "text/event-stream", Raw: []string{"data: {}\n\n", "data: {"}, End: fakeprovider.Cut},
	} {
		if p.SimulatorOptions == nil {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p.streams(t, func(t *testing.T, c chatcall.Call) {
					p.checkBroken(t, open(t, p.Provider, fakeprovider.New(t, reply).URL(), nil), c)
				})
			})
		}
	}
	p.streams(t, func(t *testing.T, c chatcall.Call) {
		a, _, _ := p.openFor(t, Breaks)
		p.checkBroken(t, a, c)
	})
}

// checkBroken calls an adapter and fails the test if reading the response does not end with a
// connection error.
func (p ChatProvider) checkBroken(t *testing.T, a chatcall.Adapter, c chatcall.Call) {
	answer, err := a.Chat(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if !answer.Stream {
		t.Error("the answer is not a stream")
	}
	if _, err = io.ReadAll(answer.Body); err == nil {
		t.Fatal("reading the broken body returned no error")
	}
	checkFailure(t, "broken", upstream.ConnectionFailure(t.Context(), err), wantFailure{fault.UpstreamConnectionError, upstream.HealthFail})
}

// unsupportedForms tests that a body in an unsupported form is not sent.
func (p ChatProvider) unsupportedForms(t *testing.T) {
	info := providerInfo(t, p.Provider)
	forms := slices.Concat(info.Forms, info.OptionalForms)
	for _, form := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini, wire.FormInteractions,
		"telegram"} {
		if slices.Contains(forms, form) {
			continue
		}
		base := serve(t, func(http.ResponseWriter, *http.Request) { t.Errorf("a body in the form %s was sent", form) })
		c := p.Call(forms[0])
		c.Form = form
		a := open(t, p.Provider, base, nil)
		_, err := a.Chat(t.Context(), c)
		checkFailure(t, "chat", asFailure(t, "chat", err), wantFailure{fault.UpstreamUnavailable, upstream.HealthFail})
		if counter, ok := a.(chatcall.TokenCounter); ok {
			_, err := counter.CountTokens(t.Context(), c)
			checkFailure(t, "count", asFailure(t, "count", err), wantFailure{fault.UpstreamUnavailable, upstream.HealthFail})
		}
	}
}

// otherTypes tests that a response of another content type than requested is a failure.
func (p ChatProvider) otherTypes(t *testing.T) {
	unavailable := wantFailure{fault.UpstreamUnavailable, upstream.HealthFail}
	for name, reply := range map[string]fakeprovider.Reply{
		"page with 200":      fakeprovider.Page(200),
		"page with 400":      fakeprovider.Page(400),
		"connection closed":  {Before: fakeprovider.Cut},
		"redirect":           {Status: 307, Header: map[string]string{"Location": "/elsewhere"}},
		"no content type":    {ContentType: "-", Body: "hello"},
		"plain text":         {ContentType: "text/plain", Body: "OK"},
		"compressed":         {Header: map[string]string{"Content-Encoding": "gzip"}, Body: "\x1f\x8b"},
		"error body cut off": {Status: 503, Length: 100, Body: `{"error":`},
		"endless error":      {Status: 500, Body: string(make([]byte, 1<<20)), End: fakeprovider.Stall},
	} {
		p.each(t, func(t *testing.T, c chatcall.Call) {
			reply := reply
			if c.Stream && name == "compressed" {
				reply.Events = []string{"x"}
			}
			_, err := open(t, p.Provider, fakeprovider.New(t, reply).URL(), nil).Chat(t.Context(), c)
			want := unavailable
			if reply.Before == fakeprovider.Cut {
				want.code = fault.UpstreamConnectionError
			}
			checkFailure(t, name, asFailure(t, name, err), want)
		})
	}
	p.each(t, func(t *testing.T, c chatcall.Call) { // a stream instead of a JSON body, and vice versa
		reply := fakeprovider.Reply{Body: `{"a":1}`}
		if !c.Stream {
			reply = fakeprovider.Reply{Events: []string{`{"a":1}`}}
		}
		_, err := open(t, p.Provider, fakeprovider.New(t, reply).URL(), nil).Chat(t.Context(), c)
		checkFailure(t, "stream or body", asFailure(t, "stream or body", err), unavailable)
	})
}

// malformed tests that every response with an error status leads to a failure without the
// credential, also for a token count.
func (p ChatProvider) malformed(t *testing.T) {
	for name, body := range malformed() {
		for _, status := range []int{200, 400, 401, 403, 404, 413, 422, 429, 500, 503} {
			p.each(t, func(t *testing.T, c chatcall.Call) {
				a := open(t, p.Provider, serve(t, document(status, body)), nil)
				if answer, err := a.Chat(t.Context(), c); err != nil {
					_ = asFailure(t, name, err)
				} else if answer.Body.Close(); status != http.StatusOK || c.Stream {
					t.Errorf("%s with status %d: Chat returned an answer, want an error", name, status)
				}
				if counter, ok := a.(chatcall.TokenCounter); ok && !c.Stream && !slices.Contains(p.WithoutTokenCount, c.Form) {
					if n, err := counter.CountTokens(t.Context(), c); err == nil {
						t.Errorf("%s with status %d: CountTokens = %d, want an error", name, status, n)
					} else {
						_ = asFailure(t, name, err)
					}
				}
			})
		}
	}
}

// endless tests that the adapter closes an endless response.
func (p ChatProvider) endless(t *testing.T) {
	p.each(t, func(t *testing.T, c chatcall.Call) {
		disconnected := make(chan struct{}, 1)
		_, err := open(t, p.Provider, serve(t, endless(500, disconnected)), nil).Chat(t.Context(), c)
		checkFailure(t, "error", asFailure(t, "error", err), wantFailure{fault.UpstreamUnavailable, upstream.HealthFail})
		waitDisconnected(t, disconnected)
		counter, ok := open(t, p.Provider, serve(t, endless(200, disconnected)), nil).(chatcall.TokenCounter)
		if ok && !c.Stream && !slices.Contains(p.WithoutTokenCount, c.Form) {
			_, err := counter.CountTokens(t.Context(), c)
			checkFailure(t, "count", asFailure(t, "count", err), wantFailure{fault.UpstreamUnavailable, upstream.HealthFail})
			waitDisconnected(t, disconnected)
		}
	})
}

// noListener tests that a call to a port without a listener is a connection error.
func (p ChatProvider) noListener(t *testing.T) {
	base := fakeprovider.ClosedAddress(t)
	p.each(t, func(t *testing.T, c chatcall.Call) {
		_, err := open(t, p.Provider, base, nil).Chat(t.Context(), c)
		checkFailure(t, "no listener", asFailure(t, "no listener", err), wantFailure{fault.UpstreamConnectionError, upstream.HealthFail})
	})
}

// waitDisconnected waits until the fake has noticed the disconnect of the caller.
func waitDisconnected(t *testing.T, disconnected <-chan struct{}) {
	t.Helper()
	select {
	case <-disconnected:
	case <-time.After(2 * time.Minute):
		t.Error("the adapter still reads the endless answer after 2 minutes")
	}
}
