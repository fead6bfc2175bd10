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

// issuer issues tokens: the n-th is `token-n`, valid for an hour.
type issuer struct {
	mu      sync.Mutex
	now     time.Time
	issued  int
	fails   error         // error of further fetches
	lasting bool          // tokens never expire and are all the same
	gate    chan struct{} // if not nil, fetches wait for it
	started chan struct{} // receives a value for each fetch
}

func newIssuer() *issuer {
	return &issuer{now: time.Unix(1_800_000_000, 0), started: make(chan struct{}, 100)}
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
	return i.issued
}

func (i *issuer) fetch(ctx context.Context) (*credential.Credential, error) {
	i.started <- struct{}{}
	i.mu.Lock()
	gate := i.gate
	i.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fails != nil {
		return nil, i.fails
	}
	i.issued++
	if i.lasting {
		return credential.Bearer("token-for-ever", time.Time{}), nil
	}
	return credential.Bearer(fmt.Sprintf("token-number-%d", i.issued), i.now.Add(time.Hour)), nil
}

// source returns a source of the issuer's tokens.
func (i *issuer) source(t *testing.T) *credential.Source {
	k := &credential.Keeper{Now: i.time}
	t.Cleanup(k.Close)
	return k.Source([]any{t.Name()}, i.fetch)
}

// token gets a credential and returns its secret.
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
	i.gate = make(chan struct{})
	s := i.source(t)
	first, leave := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := s.Get(first)
		result <- err
	}()
	<-i.started
	leave()
	var f *upstream.Failure
	if err := <-result; !errors.As(err, &f) || f.Code != fault.ClientClosed || f.Health != upstream.HealthNone {
		t.Errorf("the cancelled call: %v", err)
	}
	got := make(chan string, 50)
	for range cap(got) {
		go func() { got <- token(t, s) }()
	}
	close(i.gate)
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
	<-i.started
	i.pass(50 * time.Minute)
	if token(t, s); i.count() != 1 {
		t.Error("the token was renewed ten minutes before it expires")
	}
	i.pass(6 * time.Minute)
	i.gate = make(chan struct{})
	if g := token(t, s); g != "token-number-1" {
		t.Errorf("token %s during the renewal", g)
	}
	<-i.started
	close(i.gate)
	eventually(t, s, "token-number-2")
	if want := []string{"token-number-1", "token-number-2"}; !slices.Equal(s.Secrets(), want) {
		t.Errorf("secrets %v, want %v", s.Secrets(), want)
	}

	i.fails = errors.New("away")
	i.pass(57 * time.Minute)
	if g := token(t, s); g != "token-number-2" {
		t.Error(g)
	}
	<-i.started
	i.pass(3 * time.Minute)
	var f *upstream.Failure
	if _, err := s.Get(t.Context()); !errors.As(err, &f) || f.Code != fault.UpstreamUnavailable || f.Health != upstream.HealthFail ||
		f.Unproven {
		t.Errorf("an expired token: %v", err)
	}
	i.fails = nil
	eventually(t, s, "token-number-3")
}

// TestFailingRenewalsPause checks that calls do not start a renewal again soon after a failed one.
func TestFailingRenewalsPause(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	s := i.source(t)
	token(t, s)
	i.pass(56 * time.Minute)
	i.fails = errors.New("away")
	<-i.started
	for range 50 {
		token(t, s)
	}
	<-i.started
	i.pass(30 * time.Second)
	token(t, s)
	<-i.started
	select {
	case <-i.started:
		t.Error("renewals without a pause")
	default:
	}
}

// TestRenewOfARefused tests a rejected token: it is renewed once for all rejected calls, it is not
// renewed if it is new, and a renewal that returns the same token is not used again.
func TestRenewOfARefused(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	s := i.source(t)
	old, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Renew(t.Context(), old); c != nil || err != nil || i.count() != 1 {
		t.Errorf("a new token was renewed: %v, %v", c, err)
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
		t.Errorf("the rejected token was returned again: %v, %v", c, err)
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
	<-i.started
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
		t.Error("equal settings have two sources")
	}
	if k.Source([]any{"azure", map[string]any{"tenant": "a", "client_id": "b"}, "another"}, i.fetch) == one {
		t.Error("different settings share a source")
	}
	i.gate = make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		_, err := one.Get(context.WithoutCancel(t.Context()))
		failed <- err
	}()
	<-i.started
	k.Close()
	if err := <-failed; err == nil {
		t.Error("a fetch runs after Close")
	}
	if _, err := one.Get(t.Context()); err == nil || len(i.started) > 0 {
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
		t.Error("a nil Source has secrets")
	}
	if r, _ := http.NewRequest(http.MethodGet, "http://x.test", nil); credential.Bearer("abc", time.Time{}).Authorize(r) != nil ||
		r.Header.Get("Authorization") != "Bearer abc" {
		t.Error("no token on the request")
	}
}
