// Package response owns the stored responses: the turns of conversations, which clients continue by
// `previous_response_id`, and read and delete by id (ADR 21).
//
// Invariants: a response is visible only to its account, and only within the retention. A visible
// response has all items before it, unless the account exceeded its storage. The stored bytes of an
// account stay within its storage, apart from concurrent saves. Whoever changes responses of an
// account has the lock of its row in response_account.
package response

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tollgate/internal/store"
)

var (
	// ErrNotFound reports a response unknown to the account: it was never stored, was deleted, or
	// is past the retention.
	ErrNotFound = errors.New("no such response is stored")
	// ErrIncomplete reports a response whose earlier turns are no longer stored.
	ErrIncomplete = errors.New("the beginning of the conversation is no longer stored")
	// ErrFull reports a response that does not fit into the account's storage.
	ErrFull = errors.New("the response does not fit into the account's storage")
)

// Options configure Responses. DB is required.
type Options struct {
	DB *store.DB
	// Retention is how long a response is visible. Zero stores none.
	Retention time.Duration
	// Storage bounds the bytes of an account's responses. If it is exceeded, the conversations not
	// used for the longest time are deleted. Default 256 MiB.
	Storage int64
	// Log gets the failures of Run. If nil, nothing is logged.
	Log *slog.Logger
}

// Responses stores responses. It is safe for concurrent use.
type Responses struct {
	opts       Options
	writer     *store.Batcher[*save]
	clockSteps int64 // clock jumps handled by Sweep
}

// New returns the stored responses of a database. Call Run to delete old ones.
func New(o Options) *Responses {
	if o.Storage <= 0 {
		o.Storage = 256 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Responses{opts: o}
	r.writer = store.NewBatcher(o.DB, saveTx)
	return r
}

// Retention returns how long a response is visible. It is 0 if none is stored.
func (r *Responses) Retention() time.Duration { return r.opts.Retention }

// NewTurn is a response to store.
type NewTurn struct {
	ID, Account string
	// Previous is the continued response, or nil.
	Previous *Context
	// Input has the request's own items and Output the answer's, in JSON without brackets. Object is
	// the answer without its items.
	Input, Output, Object []byte
}

// rowBytes is the size of a row and its entries in indexes, besides its JSON.
const rowBytes = 512

// size returns the bytes of a turn counted for its account.
func (t *NewTurn) size() int64 {
	return int64(len(t.Input)+len(t.Output)+len(t.Object)) + rowBytes
}

// context returns the bytes of the items of a turn and of all before it.
func (t *NewTurn) context() int64 {
	n := int64(len(t.Input) + len(t.Output))
	if t.Previous != nil {
		n += t.Previous.Size
	}
	return n
}

// save is a turn to write, with its outcome.
type save struct {
	*NewTurn
	storage int64
	err     error // ErrNotFound, ErrFull, or nil
	over    int64 // with ErrFull: the missing bytes
}

// Save stores a response. It makes room by deleting the account's conversations not used for the
// longest time. A response with the same id is unchanged. Save returns ErrNotFound if the continued
// response was deleted in the meantime, and ErrFull if the response does not fit.
func (r *Responses) Save(ctx context.Context, t *NewTurn) error {
	for {
		s := &save{NewTurn: t, storage: r.opts.Storage}
		if err := r.writer.Write(ctx, s); err != nil {
			return err
		}
		if !errors.Is(s.err, ErrFull) || t.size() > r.opts.Storage {
			return s.err
		}
		freed, err := r.makeRoom(ctx, t, s.over)
		if err != nil {
			return err
		}
		if freed == 0 {
			return ErrFull
		}
	}
}
