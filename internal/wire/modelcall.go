package wire

// ModelCall is a call of a model made by the provider in addition to the answer, at the request of
// the client. The provider bills its tokens on top.
type ModelCall struct {
	// Param is the path of the field that asks for the call.
	Param string
	// Model is the provider's or the catalog's id of the model called. Empty
	// means the request's own model.
	Model string
	// Calls is the limit on the number of calls. Zero means no limit.
	Calls int64
	// MaxOutput is the limit on the output tokens of one call. Zero means the
	// model's own limit.
	MaxOutput int64
	// Rereads is set if the request's own model reads the prompt again after each
	// call.
	Rereads bool
}

// Iteration is the part of a usage that one call of a model used. Each call is
// priced by the length of its own prompt.
type Iteration struct {
	// Model is the id of the model called. Empty means the request's own model.
	Model string
	// Called is set if the request let the provider call another model, so that an
	// unknown Model cannot be another name of the request's own model.
	Called bool

	Prompt, Cached, CacheWrite, CacheWrite1h, Completion int64

	CacheSplit bool // as in Usage
}

// Usage returns the iteration's counts as a usage.
func (i *Iteration) Usage() Usage {
	return Usage{Prompt: i.Prompt, Cached: i.Cached, Completion: i.Completion,
		CacheWrite: i.CacheWrite, CacheWrite1h: i.CacheWrite1h, CacheSplit: i.CacheSplit}
}
