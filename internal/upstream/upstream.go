// Package upstream owns the speech with providers: what both halves of it share,
// a line as an adapter knows it and the verdict on each answer that is not a
// good one. Package chatcall is the half of chat, jobcall that of images and
// video: what is asked and what an adapter promises. The adapters themselves live
// in a folder each (openai, sandbox); package adapters lists them.
//
// Invariants:
//   - Nothing a provider says about our own account reaches a client.
//   - Every way in which a call can end badly is a *Failure, made by the pure
//     functions Classify, Interrupted and Fail.
//   - No credential is in a Failure.
package upstream

import (
	"encoding/json"
	"net/http"

	"tollgate/internal/wire"
)

// Target is one line as an adapter needs to know it.
type Target struct {
	// Line is the line's id, for messages of our own.
	Line string
	// Provider names the adapter ("openai").
	Provider string
	// BaseURL is the provider's base address without a slash at its end; empty
	// means the adapter's default.
	BaseURL string
	// Key is the resolved credential; empty for providers that need none.
	Key string
	// Header goes with every call to the line's own host. Secrets are what of it
	// must be shown to nobody else.
	Header  http.Header
	Secrets []string
	// Set are top-level fields of every request with fixed values, as JSON, and
	// Omit those that are never sent.
	Set  map[string]json.RawMessage
	Omit []string
	// Options are the line's options for the adapter, already checked by
	// Info.CheckOptions.
	Options map[string]any
	// Strangers carries downloads from hosts and ports that are not the line's
	// own: a provider's answer named them, so it dials public addresses alone. It
	// follows no redirect. If nil, nothing is downloaded from them.
	Strangers http.RoundTripper
}

// Info is what the catalog must know about a provider to check a line.
type Info struct {
	// Kinds are the kinds of models it serves: "chat", "image", "video".
	Kinds []string
	// Forms are the chat forms it speaks itself.
	Forms []wire.Form
	// DefaultBaseURL is used by lines that name none; empty when there is none.
	DefaultBaseURL string
	// NeedsBaseURL and NeedsKey say what a line must have.
	NeedsBaseURL, NeedsKey bool
	// KeyHeaders are the headers that credentials go in, beside Authorization.
	KeyHeaders []string
	// Keyless tells of options with which a line gets its credential in another
	// way than by a key, although NeedsKey; nil: there are none.
	Keyless func(options map[string]any) bool
	// NeedsForms says that a line of chat models must name its forms, since no
	// model there speaks them all.
	NeedsForms bool
	// CheckOptions reports what is wrong with a line's options, in words for
	// the operator that begin with the option's name and a colon, from which
	// the catalog makes the path of the fault. It is never nil.
	CheckOptions func(options map[string]any) error
}
