package identity_test

import (
	"context"
	"net/http"
	"testing"

	"tollgate/internal/gatewaytest/fakeidentity"
	"tollgate/internal/identity"
)

// TestVisitorLeavesDuringDiscovery ends the request of the visitor who began the discovery. The discovery goes on, and
// the next visitor has its result.
func TestVisitorLeavesDuringDiscovery(t *testing.T) {
	t.Parallel()
	const path = "/.well-known/openid-configuration"
	fake := fakeidentity.New(t)
	asked, left := make(chan bool), make(chan bool)
	fake.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == path {
			asked <- true
			<-left
		}
		return false
	}
	p := identity.New(identity.Options{HTTP: http.DefaultClient, Config: identity.Config{Kind: identity.OIDC, Issuer: fake.URL,
		ClientID: fakeidentity.ClientID}})
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := p.AuthorizationURL(ctx, identity.AuthRequest{})
		first <- err
	}()
	<-asked
	leave()
	close(left)
	if err := <-first; err != nil {
		t.Errorf("the discovery of a visitor who left: got %v, want its result", err)
	}
	if _, err := p.AuthorizationURL(t.Context(), identity.AuthRequest{}); err != nil {
		t.Errorf("the next visitor: got %v", err)
	}
	if got := fake.Requests(path); got != 1 {
		t.Errorf("got %d discoveries, want 1", got)
	}
}
