// Package kind owns the definition of a kind of model whose requests pass through to a line: its
// endpoints, prices, fields, requests and answers. Each kind has a folder here, and package
// registry lists them. Everything else treats all of these kinds alike.
//
// Invariants: a request's Bound is never below the count of an honest provider; a body or answer
// passes as it came, except for the gateway's own fields; every reader of a stranger's bytes has a
// limit and never panics.
package kind

import (
	"io"
	"slices"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Definition defines a kind of model.
type Definition struct {
	// Name is the kind in the catalog, and the wire form of its calls.
	Name string
	// Endpoints are the paths of the API. The first one is the usual one.
	Endpoints []CallPath
	// Measures are the ways to price a model. A model has one.
	Measures []Measure
	// Numbers, Lists and Flags are the further fields of a model in the catalog. Flags are false by
	// default.
	Numbers []Number
	Lists   []WordList
	Flags   []string
	// Fields are the documented fields of requests.
	Fields []RequestField
	// Advice says how to make a request cheaper, as the last clause of an error message.
	Advice string
	// Examples are programs that call a model.
	Examples []Example
	// Multipart is true if requests are multipart forms with a file in FileField. The body is then the
	// JSON object of the form's text fields, and Open returns a FileRequest.
	Multipart bool
	// MaxFile returns the maximum size of a file in bytes, for kinds with Multipart.
	MaxFile func(l ModelLimits) int64
	// AnyType is true if answers may have other content types than JSON.
	AnyType bool
	// Open checks the JSON of a body. The request retains body, which must not be changed.
	Open func(body []byte) (Request, error)
	// Probe returns the smallest request to test whether a model answers, and its file or nil. model is the
	// provider's id of the model.
	Probe func(model string, l ModelLimits) (body []byte, file *Upload)
	// Sandbox returns the made-up answer of the sandbox to a body and its file.
	Sandbox func(body []byte, file *Upload) (Made, error)
}

// Made is an answer of the sandbox.
type Made struct {
	ContentType string
	Body        []byte
}

// MadeJSON returns a JSON answer of the sandbox.
func MadeJSON(body []byte) Made { return Made{"application/json", body} }

// Example is a program in a language. BASE, SECRET and MODEL stand for the gateway's address, an API key
// and the model.
type Example struct{ Language, Text string }

// CallPath is a path of the API, and the path below a line's base address for its calls. Only models
// with the flag Flag have the path; if Flag is empty, all models do.
type CallPath struct{ Path, LinePath, Flag string }

// Offers reports whether a model has the path.
func (p CallPath) Offers(l ModelLimits) bool { return p.Flag == "" || l.Flag(p.Flag) }

// Form returns the wire form of the kind's calls.
func (d *Definition) Form() wire.Form { return wire.Form(d.Name) }

// ModelLimits are the further fields of a model, see Definition.Numbers, and the units of its prices.
type ModelLimits interface {
	// Number returns the value of a field, its default, or 0.
	Number(name string) int64
	// List returns the values of a field, or nil.
	List(name string) []string
	// Flag returns the value of a field.
	Flag(name string) bool
	// Priced reports whether the model has a price for a unit.
	Priced(unit PriceUnit) bool
}

// Number is a further field of a model: a positive integer of at most Max. A model with a price for the
// unit RequiredWith must have the field.
type Number struct {
	Name         string
	Max, Default int64
	RequiredWith PriceUnit
}

// WordList is a further field of a model: a list of different words. If Values is not empty, it has all
// possible words.
type WordList struct {
	Name   string
	Values []string
}

// DefaultLimits are the limits of a model without fields and prices of its own, except for Numbers.
type DefaultLimits struct {
	Kind    *Definition
	Numbers map[string]int64
}

// Number implements ModelLimits.
func (l DefaultLimits) Number(name string) int64 {
	if n, ok := l.Numbers[name]; ok {
		return n
	}
	if n := l.Kind.NumberNamed(name); n != nil {
		return n.Default
	}
	return 0
}

// List implements ModelLimits.
func (DefaultLimits) List(string) []string { return nil }

// Flag implements ModelLimits.
func (DefaultLimits) Flag(string) bool { return false }

// Priced implements ModelLimits. The model has prices of the kind's first measure.
func (l DefaultLimits) Priced(unit PriceUnit) bool {
	return slices.Contains(l.Kind.Measures[0].Units, unit)
}

// HasField reports whether models of the kind have a further field.
func (d *Definition) HasField(name string) bool {
	return d.NumberNamed(name) != nil || slices.Contains(d.Flags, name) ||
		slices.ContainsFunc(d.Lists, func(l WordList) bool { return l.Name == name })
}

// NumberNamed returns a further field of a model, or nil.
func (d *Definition) NumberNamed(name string) *Number {
	i := slices.IndexFunc(d.Numbers, func(n Number) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Numbers[i]
}

// PriceUnit is a unit with its own price. Its value is the key in the catalog's `price`.
type PriceUnit string

// Input counts tokens of the input.
const Input PriceUnit = "input"

// Units of tokens.
const (
	Output      PriceUnit = "output"       // of a text
	InputAudio  PriceUnit = "input_audio"  // of sound read
	OutputAudio PriceUnit = "output_audio" // of sound made
)

// IsOutput reports whether a unit counts tokens of an answer.
func (u PriceUnit) IsOutput() bool { return strings.HasPrefix(string(u), "output") }

// Measure is a way to price a model: its units, and the number of units that a price is for.
type Measure struct {
	// Name is the measure in lists of models, such as million_tokens.
	Name string
	// Per is the number of units that a price is for.
	Per int64
	// Noun is the measure for people, such as million tokens.
	Noun string
	// Every unit needs a price. A unit in Defaults without a price gets the price of the unit that it maps
	// to.
	Units    []PriceUnit
	Defaults map[PriceUnit]PriceUnit
	// Quantity is the ledger's unit of the first of Units (measure.Unit), or empty for tokens.
	Quantity string
	// Own is true if no provider reports a count, so that the gateway's is the only one.
	Own bool
}

// CountsTokens reports whether the units are tokens.
func (m *Measure) CountsTokens() bool { return m.Name == TokensName }

// TokenUnits returns the units of the answer's tokens if output is set, or else the units of the prompt's
// tokens.
func (m *Measure) TokenUnits(output bool) (units []PriceUnit) {
	for _, unit := range m.Units {
		if unit.IsOutput() == output {
			units = append(units, unit)
		}
	}
	return units
}

// Minutes returns the measure of sound by the minute. Its count is in milliseconds, a whole number of
// seconds.
func Minutes(own bool) Measure {
	return Measure{Name: "minute", Per: 60_000, Noun: "minute", Units: []PriceUnit{Minute}, Quantity: "audio_ms", Own: own}
}

// Minute is the unit of Minutes.
const Minute PriceUnit = "minutes"

// TokensName is the name of measures of tokens.
const TokensName = "million_tokens"

// Tokens returns the measure of tokens.
func Tokens(units ...PriceUnit) Measure {
	return Measure{Name: TokensName, Per: 1_000_000, Noun: "million tokens", Units: units}
}

// Requests counts requests.
const Requests PriceUnit = "requests"

// PerRequest returns the measure of requests.
func PerRequest() Measure {
	return Measure{Name: "thousand_requests", Per: 1000, Noun: "thousand requests", Units: []PriceUnit{Requests}, Own: true}
}

// Quantities are counts by unit.
type Quantities map[PriceUnit]int64

// Add adds the counts of another part.
func (q Quantities) Add(other Quantities) {
	for unit, n := range other {
		q[unit] = min(q[unit]+n, rawjson.MaxCount)
	}
}

// Request is one checked request.
type Request interface {
	// Model returns the model id sent by the client. An empty id stands for the kind's first open model
	// of the catalog.
	Model() (string, error)
	// Check checks the fields of the request for a model.
	Check(l ModelLimits) error
	// CheckAddresses calls check for every web address in the body.
	CheckAddresses(check func(address string) error) error
	// Unknown returns the fields that are not documented for every line.
	Unknown() []string
	// Routing returns the fields sent only to lines with these fields in `pass`.
	Routing() []string
	// Parts splits the request into calls with at most limit inputs each. Zero means no limit.
	Parts(limit int64) []Part
	// Answer returns the client's answer from the answers to all parts, in pieces to be written one after
	// the other.
	Answer(parts []Part, c Charged) [][]byte
}

// Charged holds the data about a request that its answer contains.
type Charged struct {
	// Request is the id of the request.
	Request string
	// Model is the model id sent by the client, or the id of the model chosen for it.
	Model string
	// Used are the charged counts.
	Used Quantities
}

// Part is the part of a request that one call sends, and then its answer.
type Part interface {
	// Body returns the body for a line, with the provider's id of the model and without the fields in omit.
	Body(model string, omit []string) rawjson.Pieces
	// Bound returns the highest possible counts.
	Bound() Quantities
	// Count returns the gateway's own counts.
	Count(c *wire.Counter) Quantities
	// Read reads the line's answer and returns the counts reported by the provider. Missing counts
	// are absent. It retains raw. It returns an error if raw is not a complete answer.
	Read(raw []byte) (Quantities, error)
}

// FileField is the field of a form for its file.
const FileField = "file"

// Upload is the file of a request.
type Upload struct {
	// Name is the base name of the file at the client, and ContentType the type of its part.
	Name, ContentType string
	// Bytes is the content of the file, and Size its size in bytes.
	Bytes io.ReaderAt
	Size  int64
	// Duration is the length of the sound by the file's headers, or 0 if unknown.
	Duration time.Duration
}

// FileRequest is a request with a file.
type FileRequest interface {
	Request
	// SetFile sets the file, before Check.
	SetFile(f *Upload)
}

// FilePart is a part with a file for the line.
type FilePart interface {
	Part
	// File returns the file.
	File() *Upload
}

// StreamedPart is a part with an answer that may be forwarded while it arrives.
type StreamedPart interface {
	Part
	// AsksStream reports whether the answer is forwarded while it arrives.
	AsksStream() bool
	// Stream returns the reader of an answer of a content type. reserve takes memory from a budget. It
	// returns false if the budget has too little.
	Stream(answer io.Reader, contentType string, reserve func(bytes int64) bool) Stream
}

// Stream reads an answer while it arrives. It is for one goroutine.
type Stream interface {
	// ContentType is the content type for the client.
	ContentType() string
	// Next reads more of the answer, appends what the client gets to dst and returns dst. With io.EOF
	// it returns the end of a complete answer, which must not be sent before its charge. It returns an
	// ErrIncomplete for an answer that is wrong or broke off, and the errors of the answer's reader.
	Next(dst []byte) ([]byte, error)
	// Reported returns the provider's counts so far. Missing counts are absent.
	Reported() Quantities
	// Count returns the gateway's counts of what Next has returned. complete is false if the answer
	// broke off.
	Count(c *wire.Counter, complete bool) Quantities
	// Failure appends the event that tells the client about a failure. It returns nil if the answer has
	// no events.
	Failure(dst []byte, f *fault.Error) []byte
}

// Only removes the counts of units without a price from q, and returns q.
func (q Quantities) Only(l ModelLimits) Quantities {
	for unit := range q {
		if !l.Priced(unit) {
			delete(q, unit)
		}
	}
	return q
}
