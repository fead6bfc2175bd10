// Package identity owns the identity providers for sign-ins: OpenID Connect and GitHub.
//
// Invariants: a person is identified by issuer and subject, never by an email; an answer counts only for
// the request with its state, nonce and verifier; a provider without an answer stops neither the
// start nor the other ways to sign in; every exchange is bounded in time and bytes; no error contains a
// secret or a token.
package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Protocol is the protocol of a provider.
type Protocol string

// The protocols.
const (
	OIDC   Protocol = "oidc"
	GitHub Protocol = "github"
)

// Audience is the group of users of a provider.
type Audience string

// The audiences.
const (
	Customers Audience = "customers"
	Operators Audience = "operators"
	Both      Audience = "both"
)

// EmailTrust says when an email of a provider counts as verified.
type EmailTrust string

// The values of EmailTrust.
const (
	ByClaim EmailTrust = "claim"  // if the provider says so
	Always  EmailTrust = "always" // the operator vouches for every email
	Never   EmailTrust = "never"
)

// Config configures a provider. The tags are the names in the setting sign_in_with.
type Config struct {
	Name         string   `yaml:"name"`  // in paths
	Title        string   `yaml:"title"` // on buttons
	Kind         Protocol `yaml:"kind"`
	Issuer       string   `yaml:"issuer"` // as in ID tokens; for GitHub its address
	ClientID     string   `yaml:"client_id"`
	ClientSecret string   `yaml:"client_secret"`
	// Scopes are requested in addition to openid, email and profile.
	Scopes []string `yaml:"scopes"`
	For    Audience `yaml:"for"`
	// Domains, if not empty, limits sign-ins to people with a verified email in one of these domains.
	// HostedDomain, if set, is the required value of Google's claim hd.
	Domains      []string   `yaml:"domains"`
	HostedDomain string     `yaml:"hosted_domain"`
	EmailTrust   EmailTrust `yaml:"email_verified"`
	// SecondFactor replaces the gateway's second factor: for every sign-in if "always", or for ID tokens
	// with the claim if CLAIM=VALUE. If empty, users with a second factor always enter a code.
	SecondFactor string    `yaml:"second_factor"`
	Roles        RoleClaim `yaml:"operators"`
}

// RoleClaim makes users operators by a claim of the provider. The zero value grants no role.
type RoleClaim struct {
	Claim string            `yaml:"claim"`
	Roles map[string]string `yaml:"roles"` // role by value of the claim
	// Order has the roles from the most to the least powerful. A person with several roles gets the
	// first of them.
	Order []string `yaml:"-"`
}

// ForCustomers reports whether customers may sign in with the provider.
func (c Config) ForCustomers() bool { return c.For != Operators }

// ForOperators reports whether operators may sign in with the provider.
func (c Config) ForOperators() bool { return c.For == Operators || c.For == Both }

// Person is a person after a sign-in at a provider.
type Person struct {
	Issuer, Subject string
	Email           string // may be empty
	EmailVerified   bool   // according to EmailTrust
	SecondFactor    bool   // the sign-in had a second factor, according to Config.SecondFactor
	// SignedInAt is the time of the sign-in at the provider; zero if the provider does not say.
	SignedInAt time.Time
	Role       string // of an operator, by RoleClaim; empty for none
}

// AuthRequest is one sign-in of a browser at a provider.
type AuthRequest struct {
	State, Nonce string
	Verifier     string // of PKCE
	RedirectURI  string
	Anew         bool // the person must sign in again even with a session at the provider
}

// Callback has the parameters of a provider's redirect.
type Callback struct {
	Code   string
	Issuer string // parameter iss (RFC 9207); empty if absent
}

// Errors of providers. Their causes are for the log.
var (
	ErrUnavailable = errors.New("the identity provider does not answer as it should")
	ErrInvalid     = errors.New("the answer of the identity provider is not valid")
)

// RefusedError means that the settings exclude a person. Text is a sentence for the person.
type RefusedError struct{ Text string }

// Error returns the sentence.
func (e *RefusedError) Error() string { return e.Text }

// Options configures New.
type Options struct {
	Config
	// HTTP makes all requests. Its timeout bounds each exchange.
	HTTP *http.Client
	// Now is the time for the expiry of tokens. If nil, time.Now is used.
	Now func() time.Time
}

// IDProvider is a provider with its settings. It is safe for concurrent use.
type IDProvider struct {
	Config
	identifier identifier
}

// identifier implements a protocol.
type identifier interface {
	authorizationURL(ctx context.Context, r AuthRequest) (string, error)
	identify(ctx context.Context, a Callback, r AuthRequest) (Person, error)
}

// maxAnswer bounds a provider's answer, in bytes.
const maxAnswer = 1 << 20

// New returns a provider. It makes no request.
func New(o Options) *IDProvider {
	client := *o.HTTP
	client.Transport = limitedTransport{o.HTTP.Transport}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &IDProvider{Config: o.Config}
	if o.Kind == GitHub {
		p.identifier = &github{Config: o.Config, http: &client}
	} else {
		p.identifier = &connect{Config: o.Config, http: &client, now: o.Now}
	}
	return p
}

// CanConfirm reports whether the provider can ask a person to sign in again and report the time of the sign-in.
func (p *IDProvider) CanConfirm() bool { return p.Kind == OIDC }

// AuthorizationURL returns the provider's address for the sign-in of a person. Error: ErrUnavailable.
func (p *IDProvider) AuthorizationURL(ctx context.Context, r AuthRequest) (string, error) {
	return p.identifier.authorizationURL(ctx, r)
}

// Identify returns the person who signed in, from the callback of a request. Errors: ErrUnavailable,
// ErrInvalid, *RefusedError.
func (p *IDProvider) Identify(ctx context.Context, a Callback, r AuthRequest) (Person, error) {
	person, err := p.identifier.identify(ctx, a, r)
	if err != nil {
		return Person{}, err
	}
	if !isValidSubject(person.Subject) {
		return Person{}, fmt.Errorf("%w: its id of the person has %d bytes, or control characters", ErrInvalid, len(person.Subject))
	}
	person.Issuer = p.Issuer
	switch p.EmailTrust {
	case Always:
		person.EmailVerified = person.Email != ""
	case Never:
		person.EmailVerified = false
	}
	_, domain, _ := strings.Cut(strings.ToLower(person.Email), "@")
	if len(p.Domains) > 0 && (!person.EmailVerified || !slices.Contains(p.Domains, domain)) {
		return Person{}, &RefusedError{"Only people with a verified address at " + strings.Join(p.Domains, ", ") + " can sign in with " +
			p.Title + "."}
	}
	return person, nil
}

// isValidSubject reports whether a provider's id of a person is valid. OpenID Connect allows 255 ASCII
// characters.
func isValidSubject(s string) bool {
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// limitedTransport cuts bodies after maxAnswer bytes, because the libraries read whole bodies.
type limitedTransport struct{ base http.RoundTripper }

func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}
