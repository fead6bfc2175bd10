package credential_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/credential"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer hands tokens out: the n-th is `token-n`, good for an hour.
type issuer struct {
	mu      sync.Mutex
	now     time.Time
	given   int
	fails   error         // the error of the next fetches
	lasting bool          // tokens have no end, and are one and the same
	hold    chan struct{} // fetches wait for it, unless nil
	begun   chan struct{} // a value a fetch
}

func newIssuer() *issuer {
	return &issuer{now: time.Unix(1_800_000_000, 0), begun: make(chan struct{}, 100)}
}

func (i *issuer) time() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

func (i *issuer) pass(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = i.now.Add(d)
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.given
}

func (i *issuer) fetch(ctx context.Context) (*credential.Credential, error) {
	i.begun <- struct{}{}
	i.mu.Lock()
	hold := i.hold
	i.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fails != nil {
		return nil, i.fails
	}
	i.given++
	if i.lasting {
		return credential.Bearer("token-for-ever", time.Time{}), nil
	}
	return credential.Bearer(fmt.Sprintf("token-number-%d", i.given), i.now.Add(time.Hour)), nil
}

// source makes a source of the issuer's tokens.
func (i *issuer) source(t *testing.T) *credential.Source {
	k := &credential.Keeper{Now: i.time}
	t.Cleanup(k.Close)
	return k.Source([]any{t.Name()}, i.fetch)
}

// token asks for a credential and returns its secret.
func token(t *testing.T, s *credential.Source) string {
	t.Helper()
	c, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Secrets[0]
}

// eventually waits for a token.
func eventually(t *testing.T, s *credential.Source, want string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); token(t, s) != want; {
		if time.Now().After(end) {
			t.Fatalf("no %s", want)
		}
	}
}

// TestOneFetchServesAll tests that concurrent calls wait for one fetch, and the fetch continues
// after its first caller leaves.
func TestOneFetchServesAll(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	i.hold = make(chan struct{})
	s := i.source(t)
	first, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.Get(first)
		left <- err
	}()
	<-i.begun
	leave()
	var f *upstream.Failure
	if err := <-left; !errors.As(err, &f) || f.Code != fault.ClientClosed || f.Health != upstream.HealthNone {
		t.Errorf("the call that left: %v", err)
	}
	got := make(chan string, 50)
	for range cap(got) {
		go func() { got <- token(t, s) }()
	}
	close(i.hold)
	for range cap(got) {
		if g := <-got; g != "token-number-1" {
			t.Errorf("%s", g)
		}
	}
	if n := i.count(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

// TestRenewedBeforeItsEnd tests that calls use the old token during a renewal, even while renewals
// fail, but never an expired token.
func TestRenewedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	s := i.source(t)
	token(t, s)
	<-i.begun
	i.pass(50 * time.Minute)
	if token(t, s); i.count() != 1 {
		t.Error("it was renewed ten minutes before its end")
	}
	i.pass(6 * time.Minute)
	i.hold = make(chan struct{})
	if g := token(t, s); g != "token-number-1" {
		t.Errorf("%s while the next one is fetched", g)
	}
	<-i.begun
	close(i.hold)
	eventually(t, s, "token-number-2")
	if want := []string{"token-number-1", "token-number-2"}; !slices.Equal(s.Secrets(), want) {
		t.Errorf("secrets %v, want %v", s.Secrets(), want)
	}

	i.fails = errors.New("away")
	i.pass(57 * time.Minute)
	if g := token(t, s); g != "token-number-2" {
		t.Error(g)
	}
	<-i.begun
	i.pass(3 * time.Minute)
	var f *upstream.Failure
	if _, err := s.Get(t.Context()); !errors.As(err, &f) || f.Code != fault.UpstreamUnavailable || f.Health != upstream.HealthFail ||
		f.Unproven {
		t.Errorf("a token that ended: %v", err)
	}
	i.fails = nil
	eventually(t, s, "token-number-3")
}

// TestFailingRenewalsPause checks that not every call starts a renewal after a failed one.
func TestFailingRenewalsPause(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	s := i.source(t)
	token(t, s)
	i.pass(56 * time.Minute)
	i.fails = errors.New("away")
	<-i.begun
	for range 50 {
		token(t, s)
	}
	<-i.begun
	i.pass(30 * time.Second)
	token(t, s)
	<-i.begun
	select {
	case <-i.begun:
		t.Error("renewals without a pause")
	default:
	}
}

// TestRenewOfARefused tests a rejected token: it is renewed once for all rejected calls, not
// renewed if new, and a renewal with the same token is not used again.
func TestRenewOfARefused(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	s := i.source(t)
	old, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Renew(t.Context(), old); c != nil || err != nil || i.count() != 1 {
		t.Errorf("a new one was renewed: %v, %v", c, err)
	}
	i.pass(time.Minute)
	for range 3 {
		c, err := s.Renew(t.Context(), old)
		if err != nil || c == nil || c.Secrets[0] != "token-number-2" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if i.count() != 2 {
		t.Errorf("%d fetches, want 2", i.count())
	}
	i.lasting = true
	i.pass(time.Hour)
	lasting, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i.pass(time.Minute)
	if c, err := s.Renew(t.Context(), lasting); c != nil || err != nil {
		t.Errorf("the same was given again: %v, %v", c, err)
	}
}

// TestEndlessIsReadAgain tests a credential without an expiry: it is fetched again after lifetime,
// because its issuer may have replaced the credential.
func TestEndlessIsReadAgain(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	i.lasting = true
	s := i.source(t)
	token(t, s)
	<-i.begun
	i.pass(time.Hour)
	i.lasting = false
	eventually(t, s, "token-number-2")
}

// TestRefusals tests the effect of a failed fetch on a line's health.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]upstream.Health{
		0: upstream.HealthFail, 400: upstream.HealthCredential, 401: upstream.HealthCredential, 403: upstream.HealthCredential,
		404: upstream.HealthCredential, 408: upstream.HealthFail, 429: upstream.HealthFail, 500: upstream.HealthFail,
		503: upstream.HealthFail,
	} {
		f := credential.FetchFailure(status, errors.New(strings.Repeat("long \n", 1000)))
		if f.Health != want || f.Code != fault.UpstreamUnavailable || f.Unproven || f.Final() || len(f.Error()) > 400 ||
			strings.Contains(f.Error(), "\n") {
			t.Errorf("%d: %s, %v", status, f.Health, f)
		}
	}
}

// TestKeeperShares tests that lines with the same settings share a token, and that a closed keeper
// cancels fetches and starts none.
func TestKeeperShares(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	k := &credential.Keeper{Now: i.time}
	one := k.Source([]any{"azure", map[string]any{"tenant": "a", "client_id": "b"}, "secret"}, i.fetch)
	if k.Source([]any{"azure", map[string]any{"client_id": "b", "tenant": "a"}, "secret"}, i.fetch) != one {
		t.Error("two sources of one credential")
	}
	if k.Source([]any{"azure", map[string]any{"tenant": "a", "client_id": "b"}, "another"}, i.fetch) == one {
		t.Error("one source of two credentials")
	}
	i.hold = make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		_, err := one.Get(context.WithoutCancel(t.Context()))
		failed <- err
	}()
	<-i.begun
	k.Close()
	if err := <-failed; err == nil {
		t.Error("a fetch outlived its keeper")
	}
	if _, err := one.Get(t.Context()); err == nil || len(i.begun) > 0 {
		t.Errorf("a closed keeper fetched: %v", err)
	}
}

// TestHide tests redaction of tokens from failures.
func TestHide(t *testing.T) {
	t.Parallel()
	s := newIssuer().source(t)
	secret := token(t, s)
	for _, err := range []error{
		s.Hide(upstream.Fail(fault.UpstreamUnavailable, errors.New("bad "+secret))),
		s.Hide(&upstream.JobFailure{Failure: upstream.Fail(fault.UpstreamError, errors.New(secret)), Message: "bad " + secret}),
	} {
		text := err.Error()
		if job := (*upstream.JobFailure)(nil); errors.As(err, &job) {
			text += job.Message
		}
		if strings.Contains(text, secret) {
			t.Errorf("the text has the secret: %s", text)
		}
	}
	if s.Hide(nil) != nil || (*credential.Source)(nil).Secrets() != nil {
		t.Error("something of nothing")
	}
	if r, _ := http.NewRequest(http.MethodGet, "http://x.test", nil); credential.Bearer("abc", time.Time{}).Authorize(r) != nil ||
		r.Header.Get("Authorization") != "Bearer abc" {
		t.Error("no token on the request")
	}
}
