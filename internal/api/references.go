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
	imageReference     = 30 << 20 // bytes
	videoReference     = 100 << 20
	fetchTimeout       = 20 * time.Second // one file
	allFetchesTimeout  = 2 * time.Minute  // all files of one submission, including the wait for slots
	maxParallelFetches = 4                // files of one submission
	discardTimeout     = 10 * time.Second
	busyRetryAfter     = 5 * time.Second
)

// Messages for users of references.
const (
	unusableReference = "The reference in `%s` cannot be used: %s"
	fetchesTooSlow    = "Fetching the references took longer than %s in all. Use faster hosts, fewer references, or send the files themselves."
	fetchesAreBusy    = "Too many references are being fetched right now. You were not charged; please try again in a moment."
)

// references are the stored files of one submission.
type references struct {
	server       *server
	job          string // the job of the files
	files        []media.File
	mask         *media.File
	mayHaveFiles bool // whether the media store may have files of the job
}

// discard deletes the files of a rejected submission.
func (r *references) discard() {
	if r == nil || !r.mayHaveFiles {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	r.server.Media.Discard(ctx, r.job)
}

// fetchReferences fetches, checks and stores the references of a submission for a new job. An error
// about a reference is invalid_request with its field; any other error is service_unavailable. After
// an error no file is kept.
func (s *server) fetchReferences(ctx context.Context, account string, request *jobrequest.Request) (*references, error) {
	stored := &references{server: s, job: job.NewID()}
	all := request.References
	if request.Mask != nil {
		all = append(all[:len(all):len(all)], *request.Mask)
	}
	if len(all) == 0 {
		return stored, nil
	}
	leave, ok := s.fetches.begin(account)
	if !ok {
		return nil, fetchesBusy()
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, allFetchesTimeout)
	defer cancel()
	stored.mayHaveFiles = true
	files, errs := make([]media.File, len(all)), make([]error, len(all))
	slots := make(chan struct{}, maxParallelFetches)
	var workers sync.WaitGroup
	for i := range all {
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if panicked := recover(); panicked != nil { // an untrusted file must not end the process
					errs[i] = fmt.Errorf("reading a reference panicked: %v\n%s", panicked, debug.Stack())
				}
				if errs[i] != nil {
					cancel() // the other fetches are no longer needed
				}
			}()
			files[i], errs[i] = s.storeReference(ctx, account, stored.job, &all[i])
		})
	}
	workers.Wait()
	if err := mainError(errs); err != nil {
		stored.discard()
		return nil, err
	}
	stored.files = files[:len(request.References)]
	if request.Mask != nil {
		stored.mask = &files[len(files)-1]
	}
	return stored, nil
}

// fetchesBusy returns the error for a submission that gets no slot in time or exceeds its account's
// limit.
func fetchesBusy() error {
	f := fault.New(fault.ServiceUnavailable, fetchesAreBusy)
	f.RetryAfter = busyRetryAfter
	return f
}

// mainError returns the first error about the user's input, or else the first one that is not a
// consequence of another. A cancelled fetch may also fail with an error other than its context's,
// so an internal error may be a consequence too.
func mainError(errs []error) error {
	var internal, consequence error
	for _, err := range errs {
		var f *fault.Error
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			consequence = err
		case errors.As(err, &f) && f.Status() < http.StatusInternalServerError:
			return err
		case internal == nil:
			internal = err
		}
	}
	if internal == nil {
		return consequence
	}
	return internal
}

// storeReference gets, checks and stores the bytes of one reference.
func (s *server) storeReference(ctx context.Context, account, job string, r *jobrequest.Reference) (media.File, error) {
	if err := ctx.Err(); err != nil {
		return media.File{}, err
	}
	if r.Address != "" {
		done, err := s.fetches.acquire(ctx, account, r.Video)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return media.File{}, fetchesBusy()
		case err != nil:
			return media.File{}, err
		}
		defer done()
	}
	memory := s.memory.File(account)
	defer memory.Release()
	data, err := s.referenceBytes(ctx, r, memory.Grow)
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
	file, err := s.Media.Keep(ctx, job, data, policy)
	var refused *format.FileError
	switch {
	case errors.As(err, &refused):
		return media.File{}, fault.At(fault.InvalidRequest, r.Param, unusableReference, r.Param, refused)
	case err != nil:
		return media.File{}, fault.Unavailable(err)
	}
	return file, nil
}

// referenceBytes returns the bytes of a reference, fetched unless the body contains them. grow reserves
// memory.
func (s *server) referenceBytes(ctx context.Context, r *jobrequest.Reference, grow func(int64) error) ([]byte, error) {
	if r.Address == "" {
		return r.Data()
	}
	limit := egress.Limits{Size: imageReference, Timeout: fetchTimeout, Grow: grow}
	if r.Video {
		limit.Size = videoReference
	}
	document, err := s.Guard.Get(ctx, r.Address, limit)
	var refusal *egress.AddressError
	switch {
	case err == nil:
		return document.Body, nil
	case errors.As(err, &refusal):
		return nil, fault.At(fault.InvalidRequest, r.Param, unusableReference, r.Param, refusal.Text)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fault.At(fault.InvalidRequest, r.Param, fetchesTooSlow, allFetchesTimeout)
	}
	return nil, err
}
