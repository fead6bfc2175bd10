// Package jobcall owns calls to an image or video provider: a task, its progress, its results,
// and the interface of a generator.
//
// Invariants:
//   - A submission makes at most one call per result and is never repeated here, because package
//     job decides about repetition.
//   - A ticket alone is enough to continue a task.
//   - A user's params only reach a provider through Submit, which checks them against the
//     provider's rule.
package jobcall

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// Task is one image or video job for a provider. Adapters only read it.
type Task struct {
	// Kind is upstream.KindImage or upstream.KindVideo.
	Kind string
	// Model is the provider's id of the model.
	Model string
	// Prompt is the user's text. It may be empty for videos with references.
	Prompt string
	// Count is the number of requested images, at least 1. It is 1 for videos.
	Count int
	// Tier is the resolution tier (`1K`, `720p`), never empty.
	Tier string
	// HasSmallerTier is true if the model also has a smaller tier. The user pays for this tier, so a line
	// unable to request the tier is Unsuitable.
	HasSmallerTier bool
	// Ratio is the aspect ratio (`16:9`). If empty, the provider chooses.
	Ratio string
	// Width and Height are in pixels: the user's values if Exact, otherwise the values of tier and
	// ratio, for providers with sizes in pixels. They are 0 without a ratio.
	Width, Height int
	Exact         bool
	// Seconds is the length of a video. If 0, the provider chooses.
	Seconds int64
	// References are the reference images and videos, in the user's order.
	References []Reference
	// Mask marks the part of the first reference to change. If nil, everything may change.
	Mask *Reference
	// Params is a JSON object with the user's further fields, if the model's catalog entry
	// allows them, or nil. Submit applies the provider's rule and clears Params; generators read
	// ExtraParams.
	Params json.RawMessage
	// Set holds params with fixed values from the line. They are sent like Params and override
	// them. Omit names params that the line does not send.
	Set  map[string]json.RawMessage
	Omit []string
	// extra holds the members of Params and Set in a submission. Submit sets it.
	extra map[string]json.RawMessage
	// Key identifies the submission. A repetition after a lost response has the same key.
	Key string
	// KeyMark identifies the line's key of the submission; empty if unknown. Adapters have one key
	// and may ignore KeyMark.
	KeyMark string
	// Submitted is the time of the first decision to submit.
	Submitted time.Time
	// AcquireRead limits how many responses with whole results are read at a time. Adapters call
	// AcquireRead after the header of such a response and before reading the body, and call done
	// afterwards. AcquireRead is never nil.
	AcquireRead func(ctx context.Context) (done func(), err error)
}

// Square returns the side in pixels of a square picture of the task's tier, for providers with
// sizes in pixels and tasks without a ratio. It returns 0 if the tier need not be requested, because
// the tier is the model's smallest and at most 1K, which is the default of these providers.
func (task *Task) Square() int {
	side, ok := TierSide(task.Tier)
	if !ok || !task.HasSmallerTier && side <= 1024 {
		return 0
	}
	return side
}

// TierSide returns the side in pixels of a square picture of a tier. The side is 1024 per K, or the
// number before `p`. ok is false if tier is invalid.
func TierSide(tier string) (side int, ok bool) {
	if tier == "" {
		return 0, false
	}
	n, err := strconv.Atoi(tier[:len(tier)-1])
	if err != nil || n <= 0 || n > 99999 {
		return 0, false
	}
	switch tier[len(tier)-1] {
	case 'K':
		return 1024 * n, true
	case 'p':
		return n, true
	}
	return 0, false
}

// TaskStatus is the provider's status of a task without a failure.
type TaskStatus struct {
	// Ticket identifies the accepted task at the provider. Poll needs nothing else, on any node.
	// Ticket is empty if the provider answers at once.
	Ticket string
	// KeyMark is the Task.KeyMark of the submission. Adapters leave KeyMark empty.
	KeyMark string
	// Done is true if the task has ended with Results.
	Done bool
	// Results are the results of a done task, at least one. There may be fewer images than
	// requested.
	Results []Result
	// Wait is the time until the next poll as requested by the provider, or 0 if unknown.
	Wait time.Duration
}

// Result is one image or clip at the provider.
type Result struct {
	// Ref is the location of the result in the adapter's format, usually an address. It is stored
	// durably and passed to Fetch. It is empty if Data holds the result.
	Ref string `json:"ref,omitempty"`
	// Type is the content type from the provider, if known.
	Type string `json:"type,omitempty"`
	// StoredSize is the length in bytes of a result stored in the gateway's own database. Adapters
	// leave StoredSize 0.
	StoredSize int64 `json:"kept,omitempty"`
	// Data is the whole result, from providers with results in the response.
	Data []byte `json:"-"`
}

// Download is an open download of a result.
type Download struct {
	// Body must be closed, once. Its read errors are those of the connection.
	Body io.ReadCloser
	// Type is the content type from the host; empty if unknown.
	Type string
	// Size is the length from the host, in bytes; -1 if unknown.
	Size int64
}

// Generator is implemented by image and video adapters. Any node and any process may call all
// methods, even for submissions of other processes. Every error is a *upstream.JobFailure. The
// context bounds the whole exchange.
type Generator interface {
	// ParamRule returns the rule for the task's params at the provider. The function Submit checks the
	// task against the rule.
	ParamRule(task Task) ParamRule
	// Blocks reports whether Submit returns only after the task is done. Such tasks have no ticket.
	Blocks(task Task) bool
	// Submit submits the task in one call, which the adapter never repeats. Callers use the
	// function Submit of this package. If an *upstream.JobFailure has Lost set, the provider may
	// have accepted the task.
	Submit(ctx context.Context, task Task) (*TaskStatus, error)
	// Poll returns the status of a task. An *upstream.JobFailure with upstream.NextPoll does not
	// affect the task; the caller polls again later.
	Poll(ctx context.Context, task Task, ticket string) (*TaskStatus, error)
	// Fetch opens a result. After an *upstream.JobFailure with upstream.NextPoll, another poll may
	// return a new address.
	Fetch(ctx context.Context, task Task, r Result) (*Download, error)
	// Cancel cancels a task at the provider to save work; callers may ignore the error. Providers
	// that cannot cancel return nil.
	Cancel(ctx context.Context, task Task, ticket string) error
}

// Finder is implemented by generators of providers that can look up a submission after a lost
// response.
type Finder interface {
	// Find returns the ticket of the submission with the task's Key, or "" if there is no such
	// submission.
	Find(ctx context.Context, task Task) (ticket string, err error)
}
