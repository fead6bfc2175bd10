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
	// A credential is not used if it expires within expiryMargin. A credential is renewed if it
	// expires within renewBefore, or within a fifth of its lifetime if that is shorter.
	expiryMargin = 15 * time.Second
	renewBefore  = 5 * time.Minute
	// defaultLifetime is the time after which a credential without an expiry is renewed, because its
	// issuer may have replaced the credential.
	defaultLifetime = time.Hour
	// renewInterval is the minimum time between the starts of two renewals.
	renewInterval = 30 * time.Second
	// minRenewAge is the minimum age of a credential that Renew replaces.
	minRenewAge = time.Minute
)

// Source holds one credential. It is safe for concurrent use.
type Source struct {
	keeper *Keeper
	fetch  Fetch

	mu              sync.Mutex // guards the fields below
	current         *Credential
	previousSecrets []string // secrets of the previous credential
	fetched         time.Time
	fetchBegan      time.Time // time at which the last fetch began
	running         *fetchCall
}

// fetchCall is a running fetch. Its results are valid after done is closed.
type fetchCall struct {
	done       chan struct{}
	credential *Credential
	err        error
}

// Get returns the current credential if it is still valid, otherwise it waits for a new one. The
// error is a *upstream.Failure.
func (s *Source) Get(ctx context.Context) (*Credential, error) {
	s.mu.Lock()
	now := s.keeper.Time()
	if c := s.current; c != nil && (c.Expires.IsZero() || now.Before(c.Expires.Add(-expiryMargin))) {
		if !now.Before(s.due()) && now.Sub(s.fetchBegan) >= renewInterval {
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
		return s.fetched.Add(defaultLifetime)
	}
	return end.Add(-min(renewBefore, end.Sub(s.fetched)/5))
}

// Renew returns a credential to replace a rejected credential, or nil if there is no other. A
// credential younger than minRenewAge is not replaced, so that rejections cannot cause a flood of
// fetches.
func (s *Source) Renew(ctx context.Context, rejected *Credential) (*Credential, error) {
	s.mu.Lock()
	now := s.keeper.Time()
	if s.current != rejected { // another call has already renewed the credential
		s.mu.Unlock()
		return s.Get(ctx)
	}
	if now.Sub(s.fetched) < minRenewAge {
		s.mu.Unlock()
		return nil, nil
	}
	f := s.begin(now)
	s.mu.Unlock()
	c, err := f.wait(ctx)
	if err != nil || sameSecrets(c, rejected) {
		return nil, err
	}
	return c, nil
}

// sameSecrets reports whether two credentials have the same secrets.
func sameSecrets(a, b *Credential) bool {
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
	return append(s.previousSecrets[:len(s.previousSecrets):len(s.previousSecrets)], s.current.Secrets...)
}

// Hide redacts the secrets from err if err is an adapter's failure, and returns err.
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
func (s *Source) begin(now time.Time) *fetchCall {
	if s.running != nil {
		return s.running
	}
	f := &fetchCall{done: make(chan struct{})}
	s.running, s.fetchBegan = f, now
	if !s.keeper.run(func(ctx context.Context) { s.finish(f)(s.fetch(ctx)) }) {
		s.running, f.err = nil, FetchFailure(0, errors.New("the gateway is stopping"))
		close(f.done)
	}
	return f
}

// finish stores the result of a fetch.
func (s *Source) finish(f *fetchCall) func(*Credential, error) {
	return func(c *Credential, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.credential, f.err = c, err; err == nil {
			if s.current != nil && !sameSecrets(s.current, c) {
				s.previousSecrets = s.current.Secrets
			}
			s.current, s.fetched = c, s.keeper.Time()
		}
		s.running = nil
		close(f.done)
	}
}

// wait waits for a fetch. The error is a *upstream.Failure. Each caller gets a copy of the failure,
// because callers change their failures.
func (f *fetchCall) wait(ctx context.Context) (*Credential, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, upstream.ConnectionFailure(ctx, ctx.Err())
	}
	if f.err == nil {
		return f.credential, nil
	}
	var failure *upstream.Failure
	if !errors.As(f.err, &failure) {
		failure = FetchFailure(0, f.err)
	}
	callerFailure := *failure
	return nil, &callerFailure
}
