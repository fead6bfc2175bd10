package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/job"
	"tollgate/internal/media"
	"tollgate/internal/media/format"
	"tollgate/internal/wire/jobrequest"
)

// LargestReference is the maximum size of a reference file in bytes.
const LargestReference = videoReference

// Bounds of reference files.
const (
	imageReference = 30 << 20 // bytes
	videoReference = 100 << 20
	fetchWithin    = 20 * time.Second // one file
	gatherWithin   = 2 * time.Minute  // all files of one submission, and the wait for their turns
	gatherAtOnce   = 4                // files of one submission
	discardWithin  = 10 * time.Second
	busyRetryAfter = 5 * time.Second
)

// Messages for users of references.
const (
	cannotBeUsed   = "The reference in `%s` cannot be used: %s"
	tookTooLong    = "Fetching the references took longer than %s in all. Use faster hosts or fewer references, or send the files themselves."
	fetchesAreBusy = "Too many references are being fetched right now. You were not charged; please try again in a moment."
)

// references are the kept files of one submission.
type references struct {
	desk  *desk
	job   string // of the files
	files []media.File
	mask  *media.File
	some  bool // something may have been kept
}

// discard deletes the files of a submission that was not accepted.
func (k *references) discard() {
	if k == nil || !k.some {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardWithin)
	defer cancel()
	k.desk.Media.Discard(ctx, k.job)
}

// gather fetches, judges and keeps the references of a submission for a new job.
// An error about a reference is invalid_request with its field; one of our own
// is service_unavailable. After an error nothing is kept.
func (d *desk) gather(ctx context.Context, account string, s *jobrequest.Request) (*references, error) {
	k := &references{desk: d, job: job.NewID()}
	wanted := s.References
	if s.Mask != nil {
		wanted = append(wanted[:len(wanted):len(wanted)], *s.Mask)
	}
	if len(wanted) == 0 {
		return k, nil
	}
	leave, ok := d.fetches.join(account)
	if !ok {
		return nil, fetchesBusy()
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, gatherWithin)
	defer cancel()
	k.some = true
	files, errs := make([]media.File, len(wanted)), make([]error, len(wanted))
	places := make(chan struct{}, gatherAtOnce)
	var all sync.WaitGroup
	for i := range wanted {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer func() {
				if trouble := recover(); trouble != nil { // a stranger's file must not end the process
					errs[i] = fmt.Errorf("reading a reference panicked: %v\n%s", trouble, debug.Stack())
				}
				if errs[i] != nil {
					cancel() // the others are in vain
				}
			}()
			files[i], errs[i] = d.keep(ctx, account, k.job, &wanted[i])
		})
	}
	all.Wait()
	if err := firstOf(errs); err != nil {
		k.discard()
		return nil, err
	}
	k.files = files[:len(s.References)]
	if s.Mask != nil {
		k.mask = &files[len(files)-1]
	}
	return k, nil
}

// fetchesBusy returns the error for a submission without a slot in time, or beyond its account's
// limit.
func fetchesBusy() error {
	f := fault.New(fault.ServiceUnavailable, fetchesAreBusy)
	f.RetryAfter = busyRetryAfter
	return f
}

// firstOf returns the first error about the user's input, else the first one that is not a
// consequence of another. A cancelled fetch may fail in other ways than with its context's error,
// so an error of ours may also be a consequence.
func firstOf(errs []error) error {
	var ours, echo error
	for _, err := range errs {
		var f *fault.Error
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			echo = err
		case errors.As(err, &f) && f.Status() < http.StatusInternalServerError:
			return err
		case ours == nil:
			ours = err
		}
	}
	if ours == nil {
		return echo
	}
	return ours
}

// keep gets the bytes of one reference, judges and stores them.
func (d *desk) keep(ctx context.Context, account, job string, r *jobrequest.Reference) (media.File, error) {
	if err := ctx.Err(); err != nil {
		return media.File{}, err
	}
	if r.Address != "" {
		done, err := d.fetches.enter(ctx, account, r.Video)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return media.File{}, fetchesBusy()
		case err != nil:
			return media.File{}, err
		}
		defer done()
	}
	memory := d.memory.File(account)
	defer memory.Release()
	data, err := d.bytesOf(ctx, r, memory.Grow)
	if err != nil {
		return media.File{}, err
	}
	policy := format.Policy{ImageSize: imageReference, VideoSize: videoReference}
	if r.Image {
		policy.Kinds = append(policy.Kinds, format.KindImage)
	}
	if r.Video {
		policy.Kinds = append(policy.Kinds, format.KindVideo)
	}
	file, err := d.Media.Keep(ctx, job, data, policy)
	var refused *format.FileError
	switch {
	case errors.As(err, &refused):
		return media.File{}, fault.At(fault.InvalidRequest, r.Param, cannotBeUsed, r.Param, refused)
	case err != nil:
		return media.File{}, fault.Unavailable(err)
	}
	return file, nil
}

// bytesOf returns the bytes of a reference, fetched unless the body contains them. grow reserves
// memory.
func (d *desk) bytesOf(ctx context.Context, r *jobrequest.Reference, grow func(int64) error) ([]byte, error) {
	if r.Address == "" {
		return r.Data()
	}
	limit := egress.Limits{Size: imageReference, Within: fetchWithin, Grow: grow}
	if r.Video {
		limit.Size = videoReference
	}
	document, err := d.Guard.Get(ctx, r.Address, limit)
	var refusal *egress.AddressError
	switch {
	case err == nil:
		return document.Body, nil
	case errors.As(err, &refusal):
		return nil, fault.At(fault.InvalidRequest, r.Param, cannotBeUsed, r.Param, refusal.Text)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fault.At(fault.InvalidRequest, r.Param, tookTooLong, gatherWithin)
	}
	return nil, err
}
