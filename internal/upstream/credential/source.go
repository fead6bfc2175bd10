package credential

import (
	"context"
	"errors"
	"sync"
	"time"

	"tollgate/internal/upstream"
)

// Times of fetches.
const (
	// fetchWait bounds one fetch.
	fetchWait = 20 * time.Second
	// margin is the time before expiry in which a credential is no longer used. early is the time
	// before expiry in which a credential is renewed, or a fifth of its lifetime if shorter.
	margin = 15 * time.Second
	early  = 5 * time.Minute
	// lifetime is the lifetime of a credential without an expiry: its issuer may have replaced the
	// credential.
	lifetime = time.Hour
	// pause is the minimum time between the starts of two renewals.
	pause = 30 * time.Second
	// fresh is the minimum age of a credential that Renew replaces.
	fresh = time.Minute
)

// Source holds one credential. It is safe for concurrent use.
type Source struct {
	keeper *Keeper
	fetch  Fetch

	mu         sync.Mutex // guards the fields below
	current    *Credential
	former     []string // secrets of the previous credential
	fetched    time.Time
	fetchBegan time.Time // time at which the last fetch began
	running    *fetching
}

// fetching is a running fetch. Its results are valid after done is closed.
type fetching struct {
	done chan struct{}
	got  *Credential
	err  error
}

// Get returns the current credential if it is still valid, otherwise it waits for a new one. The
// error is a *upstream.Failure.
func (s *Source) Get(ctx context.Context) (*Credential, error) {
	s.mu.Lock()
	now := s.keeper.Time()
	if c := s.current; c != nil && (c.Expires.IsZero() || now.Before(c.Expires.Add(-margin))) {
		if !now.Before(s.due()) && now.Sub(s.fetchBegan) >= pause {
			s.begin(now)
		}
		s.mu.Unlock()
		return c, nil
	}
	f := s.begin(now)
	s.mu.Unlock()
	return f.wait(ctx)
}

// due returns the time to renew the current credential. Callers hold mu.
func (s *Source) due() time.Time {
	end := s.current.Expires
	if end.IsZero() {
		return s.fetched.Add(lifetime)
	}
	return end.Add(-min(early, end.Sub(s.fetched)/5))
}

// Renew returns a credential to replace a rejected one, or nil if there is no other. A credential
// fetched less than a minute ago (fresh) is not fetched again, so that rejections cannot cause a
// flood of fetches.
func (s *Source) Renew(ctx context.Context, rejected *Credential) (*Credential, error) {
	s.mu.Lock()
	now := s.keeper.Time()
	if s.current != rejected { // another call has already renewed the credential
		s.mu.Unlock()
		return s.Get(ctx)
	}
	if now.Sub(s.fetched) < fresh {
		s.mu.Unlock()
		return nil, nil
	}
	f := s.begin(now)
	s.mu.Unlock()
	c, err := f.wait(ctx)
	if err != nil || same(c, rejected) {
		return nil, err
	}
	return c, nil
}

// same reports whether two credentials have the same secrets.
func same(a, b *Credential) bool {
	if len(a.Secrets) != len(b.Secrets) {
		return false
	}
	for i := range a.Secrets {
		if a.Secrets[i] != b.Secrets[i] {
			return false
		}
	}
	return true
}

// Secrets returns the secrets of the current and of the previous credential. For a nil Source, it
// returns nil.
func (s *Source) Secrets() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil
	}
	return append(s.former[:len(s.former):len(s.former)], s.current.Secrets...)
}

// Hide redacts the secrets from err, if err is an adapter's failure, and returns err.
func (s *Source) Hide(err error) error {
	var (
		failure *upstream.Failure
		job     *upstream.JobFailure
	)
	isJob := errors.As(err, &job)
	if !isJob && !errors.As(err, &failure) {
		return err
	}
	for _, secret := range s.Secrets() {
		if isJob {
			job = job.Redact(secret)
		} else {
			failure.Redact(secret)
		}
	}
	return err
}

// begin returns the running fetch, or starts a fetch. The fetch continues for other callers after
// the first caller leaves. Callers hold mu.
func (s *Source) begin(now time.Time) *fetching {
	if s.running != nil {
		return s.running
	}
	f := &fetching{done: make(chan struct{})}
	s.running, s.fetchBegan = f, now
	if !s.keeper.run(func(ctx context.Context) { s.end(f)(s.fetch(ctx)) }) {
		s.running, f.err = nil, FetchFailure(0, errors.New("the gateway is stopping"))
		close(f.done)
	}
	return f
}

// end stores the result of a fetch.
func (s *Source) end(f *fetching) func(*Credential, error) {
	return func(c *Credential, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.got, f.err = c, err; err == nil {
			if s.current != nil && !same(s.current, c) {
				s.former = s.current.Secrets
			}
			s.current, s.fetched = c, s.keeper.Time()
		}
		s.running = nil
		close(f.done)
	}
}

// wait waits for a fetch. The error is a *upstream.Failure, a separate one for each caller, because
// callers change their failures.
func (f *fetching) wait(ctx context.Context) (*Credential, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, upstream.ConnectionFailure(ctx, ctx.Err())
	}
	if f.err == nil {
		return f.got, nil
	}
	var failure *upstream.Failure
	if !errors.As(f.err, &failure) {
		failure = FetchFailure(0, f.err)
	}
	own := *failure
	return nil, &own
}
