// Package kind owns the definition of a kind of model whose requests pass through to a line: its
// endpoints, prices, fields, requests and answers. Each kind has a folder here, and package
// registry lists them. Everything else treats all of these kinds alike.
//
// Invariants: a request's Bound is never below the count of an honest provider; a body or answer
// passes as it came, except for the gateway's own fields; every reader of a stranger's bytes has a
// limit and never panics.
package kind

import (
	"slices"

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
	// Numbers are the further fields of a model in the catalog.
	Numbers []Number
	// Fields are the documented fields of requests.
	Fields []RequestField
	// Advice says how to make a request cheaper, as the last clause of an error message.
	Advice string
	// Examples are programs that call a model.
	Examples []Example
	// Open checks the JSON of a body. The request retains body, which must not be changed.
	Open func(body []byte) (Request, error)
	// Probe returns the smallest request to test whether a model answers.
	Probe func(model string) []byte
	// Sandbox returns the made-up answer of the sandbox to a body.
	Sandbox func(body []byte) ([]byte, error)
}

// Example is a program in a language. BASE, SECRET and MODEL stand for the gateway's address, an API key
// and the model.
type Example struct{ Language, Text string }

// CallPath is a path of the API, and the path below a line's base address for its calls.
type CallPath struct{ Path, LinePath string }

// Form returns the wire form of the kind's calls.
func (d *Definition) Form() wire.Form { return wire.Form(d.Name) }

// ModelLimits are the further fields of a model, see Definition.Numbers, and the units of its prices.
type ModelLimits interface {
	// Number returns the value of a field, its default, or 0.
	Number(name string) int64
	// Priced reports whether the model has a price for a unit.
	Priced(unit PriceUnit) bool
}

// Number is a further field of a model: a positive integer of at most Max.
type Number struct {
	Name         string
	Max, Default int64
}

// NumberNamed returns a further field of a model, or nil.
func (d *Definition) NumberNamed(name string) *Number {
	i := slices.IndexFunc(d.Numbers, func(n Number) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Numbers[i]
}

// PriceUnit is a counted thing with a price of its own, named by its key of `price`.
type PriceUnit string

// Input counts tokens of the input.
const Input PriceUnit = "input"

// Measure is a way to price a model: its units, which are all required, and the number of units that a
// price is for.
type Measure struct {
	// Name is the measure in lists of models, such as million_tokens.
	Name string
	// Per is the number of units that a price is for. It divides a million.
	Per int64
	// Noun is the measure for people, such as million tokens.
	Noun  string
	Units []PriceUnit
	// Quantity is the unit of ledger.Quantity for the first of Units, or empty for tokens.
	Quantity string
	// Own is true if no provider reports a count, so that the gateway's is the only one.
	Own bool
}

// Tokens returns the measure of tokens.
func Tokens(units ...PriceUnit) Measure {
	return Measure{Name: "million_tokens", Per: 1_000_000, Noun: "million tokens", Units: units}
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

// Charged is what an answer says about its request.
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
	// Body returns the body for a line, with the provider's id of the model and without fields.
	Body(model string, omit []string) rawjson.Pieces
	// Bound returns the highest possible counts.
	Bound() Quantities
	// Count returns the gateway's own counts.
	Count(c *wire.Counter) Quantities
	// Read reads the line's answer and returns the counts reported by the provider. Missing counts
	// are absent. It retains raw. It returns an error if raw is not a complete answer.
	Read(raw []byte) (Quantities, error)
}
