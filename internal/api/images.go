package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"tollgate/internal/chat"
	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/media/format"
)

// Limits of the images fetched for a chat request. Providers accept 20 MiB of inline content in
// total, and base64 turns three bytes into four.
const (
	inlineImages  = 14 << 20         // total bytes of a request's images
	imagesTimeout = 60 * time.Second // for all images of a request, including the wait for slots
)

// images fetches the images of one chat request for lines that need them inline. It is safe for
// concurrent use, except the release of its memory.
type images struct {
	server  *server
	account string

	mu        sync.Mutex // guards the rest
	memory    httpapi.Reservation
	remaining int64     // remaining bytes
	deadline  time.Time // zero before the first fetch
}

// giveImages lets lines fetch the images of a request. The caller must call release at the end of
// the request.
func (s *server) giveImages(call *chat.AcceptedRequest) (release func()) {
	if call.Body.Params().Bound.Images == 0 {
		return func() {}
	}
	i := &images{server: s, account: call.Account, memory: s.memory.Body(call.Account), remaining: inlineImages}
	call.Image = i.fetch
	return i.memory.Release
}

// fetch returns the MIME type and the bytes of the image at a public address. It shares slots with
// the references of jobs, and detects the type from the bytes. The error is a *fault.Error without a
// field.
func (i *images) fetch(ctx context.Context, address string) (string, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, imagesTimeout)
	defer cancel()
	until, remaining := i.begin(ctx)
	ctx, end := context.WithDeadline(ctx, until)
	defer end()
	leave, ok := i.server.fetches.begin(i.account)
	if !ok {
		return "", nil, fetchesBusy()
	}
	defer leave()
	done, err := i.server.fetches.acquire(ctx, i.account, false)
	if err != nil {
		return "", nil, fetchesBusy()
	}
	defer done()
	document, err := i.server.Guard.Get(ctx, address, egress.Limits{Size: remaining, Timeout: fetchTimeout, Grow: i.grow})
	var refusal *egress.AddressError
	var clientError *fault.Error
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		return "", nil, fault.New(fault.InvalidRequest, "%s", refusal.Text)
	case errors.As(err, &clientError):
		return "", nil, clientError
	case errors.Is(err, context.DeadlineExceeded):
		return "", nil, fault.New(fault.InvalidRequest, "Fetching the images took longer than %s in all. Use faster hosts, or send them inline.",
			imagesTimeout)
	default:
		return "", nil, fault.Unavailable(err)
	}
	mime, _, _, err := format.Inspect(document.Body, format.Policy{ImageSize: inlineImages, Kinds: []string{format.KindImage}})
	if err != nil {
		return "", nil, fault.New(fault.InvalidRequest, "%s", err)
	}
	if !i.count(int64(len(document.Body))) {
		return "", nil, fault.New(fault.InvalidRequest, "The images by address are larger than %d bytes in all. Send smaller ones.", inlineImages)
	}
	return mime, document.Body, nil
}

// begin returns the deadline of all fetches and the remaining bytes. The first call sets the
// deadline to that of ctx.
func (i *images) begin(ctx context.Context) (until time.Time, remaining int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deadline.IsZero() {
		i.deadline, _ = ctx.Deadline()
	}
	return i.deadline, i.remaining
}

// grow reserves memory.
func (i *images) grow(n int64) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.memory.Grow(n)
}

// count counts fetched bytes. It returns false if concurrent fetches have used up the limit.
func (i *images) count(n int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n > i.remaining {
		return false
	}
	i.remaining -= n
	return true
}
