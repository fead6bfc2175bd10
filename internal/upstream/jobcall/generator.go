// Package jobcall owns what the gateway asks of a provider of images and video:
// a task, how it goes on, its results, and what a generator promises about them.
//
// Invariants:
//   - A submission is made in one call a result at most, and never repeated here:
//     that is for the job (package job).
//   - A ticket is all that anybody needs to go on with a task.
//   - No param of a user reaches a provider but through Submit, which holds it
//     against the provider's rule.
package jobcall

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// Task is one image or video job as a provider is to do it. Adapters only read
// it.
type Task struct {
	// Kind is upstream.KindImage or upstream.KindVideo.
	Kind string
	// Model is the provider's id of the model.
	Model string
	// Prompt is the user's text; it may be empty for videos with references.
	Prompt string
	// Count is how many images are wanted, at least 1; 1 for videos.
	Count int
	// Tier is the resolution tier (`1K`, `720p`), never empty.
	Tier string
	// Larger says that the model has a smaller tier too: this one is paid for, so
	// a line that cannot ask for it is Unsuitable.
	Larger bool
	// Ratio is the aspect ratio (`16:9`); empty: the provider's choice.
	Ratio string
	// Width and Height are the pixels: as the user gave them if Exact, else what
	// tier and ratio amount to, for providers that want pixels. 0 without a ratio.
	Width, Height int
	Exact         bool
	// Seconds is the length of a video; 0: the provider's choice.
	Seconds int64
	// References are the images and videos to work from, in the user's order.
	References []Reference
	// Mask is what of the first reference may change; nil: all.
	Mask *Reference
	// Params is a JSON object of the further fields that the model's catalog
	// entry lets pass, as the user sent them; nil: none. A submission does not
	// show it: Further does, once the provider's rule was applied.
	Params json.RawMessage
	// Set are params that the line has fixed values for: they go wherever Params
	// go, and win over them. Omit are params that the line does not get.
	Set  map[string]json.RawMessage
	Omit []string
	// further are the members of Params and Set in a submission, made by Submit.
	further map[string]json.RawMessage
	// Key names the submission. It is the same when a submission is repeated
	// because its answer was lost.
	Key string
	// KeyMark tells which of the line's keys the task was submitted with; empty: it
	// is not known. Adapters have one key, and need not know it.
	KeyMark string
	// Submitted is when the submission was first decided on.
	Submitted time.Time
	// Reading is called when the head of an answer has arrived that holds whole
	// results; it bounds how many are read at a time. Adapters that read such
	// answers call it before they read, and done after. Never nil.
	Reading func(ctx context.Context) (done func(), err error)
}

// Square is the side of a square picture of the task's tier, for providers that
// want pixels of a task without a ratio; 0 where the tier need not be asked for:
// it is no larger than 1K, which they make unasked, and the model's smallest.
func (w *Task) Square() int {
	side, ok := TierSide(w.Tier)
	if !ok || !w.Larger && side <= 1024 {
		return 0
	}
	return side
}

// TierSide is the side of a square of a tier: 1024 a K, or the number of `p`.
// ok is false for what is no tier.
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

// TaskStatus is what a provider says of a task that has not failed.
type TaskStatus struct {
	// Ticket names the task at the provider from its acceptance on. It is all
	// that Poll needs, on any node. Empty when the provider answers at once.
	Ticket string
	// KeyMark is the Task.KeyMark of what was submitted; adapters leave it empty.
	KeyMark string
	// Done says that Results are there.
	Done bool
	// Results are what was made, at least one, of a task that is done. There
	// may be fewer images than asked for.
	Results []Result
	// Wait is when the provider wants to be asked again; 0: it does not say.
	Wait time.Duration
}

// Result is one image or clip at the provider.
type Result struct {
	// Ref says where it is, in the adapter's own words: usually an address. It
	// is kept durably and given to Fetch. Empty when Data holds it.
	Ref string `json:"ref,omitempty"`
	// Type is the content type if the provider said it.
	Type string `json:"type,omitempty"`
	// Kept is the length of a result that the gateway keeps in its own database.
	// Adapters leave it 0.
	Kept int64 `json:"kept,omitempty"`
	// Data is the whole result, of providers that answer with it.
	Data []byte `json:"-"`
}

// Download is a result that is being downloaded.
type Download struct {
	// Body must be closed, once. Its read errors are those of the connection.
	Body io.ReadCloser
	// Type is the content type as the host says it; empty if it does not.
	Type string
	// Size is the length in bytes as the host says it; -1 if it does not.
	Size int64
}

// Generator is implemented by adapters that make images or video. All methods may
// be called from any node and any process, also from one that has not
// submitted. The error of each is always a *upstream.JobFailure; the context bounds the
// whole exchange.
type Generator interface {
	// ParamRule says which of w's params may go to the provider. Package
	// function Submit holds the task against it.
	ParamRule(w Task) ParamRule
	// Blocks says whether Submit answers only when the task is done. Such tasks
	// have no ticket.
	Blocks(w Task) bool
	// Submit asks for the task, in one call. It is never repeated by the
	// adapter. Callers use the package's function Submit. A upstream.JobFailure with Lost set means that the provider may have
	// accepted it all the same.
	Submit(ctx context.Context, w Task) (*TaskStatus, error)
	// Poll asks how a task is doing. A upstream.JobFailure with upstream.NextPoll says nothing about
	// the task: ask again later.
	Poll(ctx context.Context, w Task, ticket string) (*TaskStatus, error)
	// Fetch opens a result. A upstream.JobFailure with upstream.NextPoll means that asking again may
	// bring a fresh address.
	Fetch(ctx context.Context, w Task, r Result) (*Download, error)
	// Cancel tells the provider that nobody waits any more. It is a courtesy:
	// its error changes nothing. Providers that cannot do it return nil.
	Cancel(ctx context.Context, w Task, ticket string) error
}

// Finder is implemented by generators whose provider can be asked whether it has
// accepted a submission whose answer was lost.
type Finder interface {
	// Find returns the ticket of the submission with the task's Key, empty if
	// there is none.
	Find(ctx context.Context, w Task) (ticket string, err error)
}
