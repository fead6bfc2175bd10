// Package reading owns how many of the console's pages read the database at a time.
//
// Invariant: a page that reads is never more than one of its account's, nor one of more
// than half of the connections that SQLite reads with.
package reading

import (
	"context"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/limit"
)

// There are half as many as SQLite has readers, so that a request that costs money finds
// the others free, and for each account one of them, so that no account's exports keep the
// next one's pages waiting.
const (
	most      = 2
	ofAccount = 1
)

// Readers are the pages that read. They are safe for concurrent use.
type Readers struct {
	all *limit.Places[struct{}]
	own *limit.Places[string] // by account; that of operators is empty
}

// New returns none.
func New() Readers {
	return Readers{all: limit.NewPlaces[struct{}](most), own: limit.NewPlaces[string](ofAccount)}
}

// Enter waits for a place until ctx ends (503), and returns what gives it back. Who has
// not been recognized yet is of no account: finding that out is short.
func (p Readers) Enter(ctx context.Context, known bool, account string) (leave func(), err error) {
	before := func() {}
	if known {
		if before, err = p.own.Enter(ctx, account); err != nil {
			return nil, crowded()
		}
	}
	among, err := p.all.Enter(ctx, struct{}{})
	if err != nil {
		before()
		return nil, crowded()
	}
	return func() { among(); before() }, nil
}

func crowded() error {
	f := fault.New(fault.ServiceUnavailable, "Too many pages are asked for at this moment. Try again in a few seconds.")
	f.RetryAfter = 5 * time.Second
	return f
}
