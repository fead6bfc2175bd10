package input

import (
	"context"
	"encoding/json"
	"strconv"

	"tollgate/internal/upstream/jobcall"
)

// Link says a reference by its address, or as a data URI where it has none. A
// reference of more bytes than it says is not read further. The error is
// upstream.Unread's.
func Link(ctx context.Context, r jobcall.Reference) (string, error) {
	if r.URL != "" {
		return r.URL, nil
	}
	return inline(ctx, r)
}

// NextSeed is the seed of one of several calls of a task: each has the next after
// the user's, or all calls would bring the same. What is no whole number from 0
// to most is for the provider to refuse, and stays.
func NextSeed(raw json.RawMessage, call int, most int64) json.RawMessage {
	seed, err := strconv.ParseInt(string(raw), 10, 64)
	if call == 0 || err != nil || seed < 0 || seed > most {
		return raw
	}
	if next := seed + int64(call); next <= most {
		return strconv.AppendInt(nil, next, 10)
	}
	return strconv.AppendInt(nil, seed+int64(call)-most-1, 10)
}
