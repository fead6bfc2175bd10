// Package upstream owns the types shared by all calls to providers: Target describes a line to
// its adapter, and Failure is the classification of a bad answer. Package chatcall has the
// interface of chat adapters, and package jobcall has the interface of image and video adapters.
// Each adapter has its own package (openai, sandbox); package adapters lists them.
//
// Invariants:
//   - No message about the gateway's account reaches a client.
//   - Every failed call is a *Failure, returned by pure functions such as Classify,
//     ConnectionFailure and Fail.
//   - No Failure contains a credential.
package upstream

import (
	"encoding/json"
	"net/http"

	"tollgate/internal/wire"
)

// Target describes a line to its adapter.
type Target struct {
	// Line is the line's id, for the gateway's messages.
	Line string
	// Provider names the adapter ("openai").
	Provider string
	// BaseURL is the provider's base address without a trailing slash. Empty means
	// the adapter's default.
	BaseURL string
	// Key is the resolved credential. It may be empty.
	Key string
	// Header is sent with every call to the line's own host. Secrets are the secret parts of
	// Header.
	Header  http.Header
	Secrets []string
	// Set holds fixed values of top-level fields, as JSON. Fields in Omit are never
	// sent.
	Set  map[string]json.RawMessage
	Omit []string
	// Options are the line's options for the adapter, already checked by
	// Info.CheckOptions.
	Options map[string]any
	// PublicTransport carries downloads from addresses in answers that are not on the line's own host
	// and port. The transport dials only public addresses and follows no redirect. If nil, such
	// downloads fail.
	PublicTransport http.RoundTripper
}

// Info describes a provider, so that the catalog can check a line.
type Info struct {
	// Kinds are the kinds of the provider's models: "chat", KindImage, KindVideo, or kinds of package
	// wire/kind.
	Kinds []string
	// Forms are the provider's chat forms. A line has OptionalForms only if its `forms` name them.
	Forms, OptionalForms []wire.Form
	// DefaultBaseURL is the address of lines without a base_url. It may be empty.
	DefaultBaseURL string
	// A line must have a base_url if NeedsBaseURL is true, and a key if NeedsKey is true.
	NeedsBaseURL, NeedsKey bool
	// KeyHeaders names the headers that carry credentials, besides Authorization.
	KeyHeaders []string
	// Keyless reports whether a line with these options needs no key despite
	// NeedsKey. It may be nil.
	Keyless func(options map[string]any) bool
	// NeedsForms is true if a line must name the forms of its chat models, because no model has all
	// forms.
	NeedsForms bool
	// CheckOptions returns an error if a line's options are invalid. The message is for the operator
	// and begins with the option's name and a colon; the catalog turns the name into the path of the
	// fault. CheckOptions is never nil.
	CheckOptions func(options map[string]any) error
}
