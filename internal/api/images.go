package api

import (
	"context"
	"errors"
	"time"

	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/media/format"
)

// Bounds of the images that a chat request has fetched: providers that take them
// inline alone take 20 MiB with all else, and base64 makes four bytes of three.
const (
	inlineImages = 14 << 20         // bytes, of all of a request
	imagesWithin = 60 * time.Second // all of a request, with the wait for turns
)

// images fetches what one chat request refers to, for a line that takes images
// inline alone. Not for concurrent use.
type images struct {
	desk    *desk
	account string
	memory  httpapi.Held
	left    int64     // bytes that may still come
	until   time.Time // zero: nothing was fetched yet
}

func (d *desk) imagesOf(account string) *images {
	return &images{desk: d, account: account, memory: d.memory.Body(account), left: inlineImages}
}

// release gives back the memory of what was fetched, at the end of the request.
func (i *images) release() { i.memory.Release() }

// fetch returns the image at an address: public, in turns that accounts share
// with the references of jobs, and an image by its bytes. The error is a
// *fault.Error without a field.
func (i *images) fetch(ctx context.Context, address string) (string, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, imagesWithin)
	defer cancel()
	if i.until.IsZero() {
		i.until, _ = ctx.Deadline()
	}
	ctx, end := context.WithDeadline(ctx, i.until)
	defer end()
	leave, ok := i.desk.fetches.join(i.account)
	if !ok {
		return "", nil, fetchesBusy()
	}
	defer leave()
	done, err := i.desk.fetches.enter(ctx, i.account, false)
	if err != nil {
		return "", nil, fetchesBusy()
	}
	defer done()
	document, err := i.desk.Guard.Get(ctx, address, egress.Limits{Size: i.left, Within: fetchWithin, Grow: i.memory.Grow})
	var refusal *egress.AddressError
	var told *fault.Error
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		return "", nil, fault.New(fault.InvalidRequest, "%s", refusal.Text)
	case errors.As(err, &told):
		return "", nil, told
	case errors.Is(err, context.DeadlineExceeded):
		return "", nil, fault.New(fault.InvalidRequest, "Fetching the images took longer than %s in all. Use faster hosts, or send them inline.",
			imagesWithin)
	default:
		return "", nil, fault.Unavailable(err)
	}
	mime, _, _, err := format.Inspect(document.Body, format.Policy{ImageSize: inlineImages, Kinds: []string{format.KindImage}})
	if err != nil {
		return "", nil, fault.New(fault.InvalidRequest, "%s", err)
	}
	i.left -= int64(len(document.Body))
	return mime, document.Body, nil
}
