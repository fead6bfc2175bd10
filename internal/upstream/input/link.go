package input

import (
	"context"
	"encoding/json"
	"strconv"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Link returns the address of a reference, or a data URI if the reference has no address. It
// returns the error of upstream.UnreadableFile if the content for the data URI does not have exactly Size
// bytes.
func Link(ctx context.Context, r jobcall.Reference) (string, error) {
	if r.URL != "" {
		return r.URL, nil
	}
	return inline(ctx, r)
}

// Pictures returns the Link of each reference of a picture. If a reference is a video, it returns
// upstream.Unsuitable.
func Pictures(ctx context.Context, task jobcall.Task, provider string) ([]string, error) {
	links := make([]string, len(task.References))
	for i, r := range task.References {
		if !r.Image() {
			return nil, upstream.Unsuitable(task.Kind, "%s makes no pictures from a video", provider)
		}
		var err error
		if links[i], err = Link(ctx, r); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// NextSeed returns the seed of call number call of a task: the user's seed plus call, because with
// one seed all calls would return the same image. NextSeed leaves any value except a whole number
// from 0 to limit unchanged; the provider rejects such a value.
func NextSeed(raw json.RawMessage, call int, limit int64) json.RawMessage {
	seed, err := strconv.ParseInt(string(raw), 10, 64)
	if call == 0 || err != nil || seed < 0 || seed > limit {
		return raw
	}
	if next := seed + int64(call); next <= limit {
		return strconv.AppendInt(nil, next, 10)
	}
	return strconv.AppendInt(nil, seed+int64(call)-limit-1, 10)
}
