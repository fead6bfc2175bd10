package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// connect is a provider of OpenID Connect: authorization code with PKCE.
type connect struct {
	Config
	http *http.Client
	now  func() time.Time

	// mu guards the fields below. It is held during the discovery.
	mu         sync.Mutex
	discovered *metadata
	failure    error // of the newest discovery
	failedAt   time.Time
}

// metadata is a provider's own description.
type metadata struct {
	provider *oidc.Provider
	// SendsIssuer means that every answer has the parameter iss (RFC 9207).
	SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// failurePause is the time after a failed discovery without another attempt. Otherwise, visitors would
// wait one after the other for a provider without an answer.
const failurePause = 5 * time.Second

// discover returns the provider's description, cached after the first success. A visitor's disconnect does
// not end the discovery, because other visitors may wait for the result. The timeout of the HTTP client
// bounds the discovery.
func (c *connect) discover(ctx context.Context) (*metadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discovered != nil {
		return c.discovered, nil
	}
	if c.failure != nil && c.now().Sub(c.failedAt).Abs() < failurePause {
		return nil, c.failure
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), c.http), c.Issuer)
	if err == nil {
		m := &metadata{provider: provider}
		if err = errors.Join(provider.Claims(m), c.checkEndpoints(provider.Endpoint())); err == nil {
			c.discovered, c.failure = m, nil
			return m, nil
		}
	}
	c.failure, c.failedAt = fmt.Errorf("%w: %s/.well-known/openid-configuration: %w", ErrUnavailable, strings.TrimSuffix(c.Issuer, "/"), err),
		c.now()
	return nil, c.failure
}

// checkEndpoints returns an error unless the provider's addresses have https or the issuer's scheme.
func (c *connect) checkEndpoints(e oauth2.Endpoint) error {
	scheme, _, _ := strings.Cut(c.Issuer, ":")
	for _, address := range []string{e.AuthURL, e.TokenURL} {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != scheme {
			return fmt.Errorf("the endpoint %.200q is not an https:// address", address)
		}
	}
	return nil
}

// client returns the OAuth client at the provider.
func (c *connect) client(m *metadata, redirectURI string) *oauth2.Config {
	endpoint := m.provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(m.AuthMethods) > 0 && !slices.Contains(m.AuthMethods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: endpoint, RedirectURL: redirectURI,
		Scopes: append([]string{oidc.ScopeOpenID, "email", "profile"}, c.Scopes...)}
}

func (c *connect) authorizationURL(ctx context.Context, r AuthRequest) (string, error) {
	m, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(r.Nonce), oauth2.S256ChallengeOption(r.Verifier)}
	if r.Anew {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if c.HostedDomain != "" {
		options = append(options, oauth2.SetAuthURLParam("hd", c.HostedDomain)) // only a hint; identify checks the claim
	}
	return c.client(m, r.RedirectURI).AuthCodeURL(r.State, options...), nil
}

func (c *connect) identify(ctx context.Context, a Callback, r AuthRequest) (Person, error) {
	m, err := c.discover(ctx)
	if err != nil {
		return Person{}, err
	}
	if a.Issuer != "" && a.Issuer != c.Issuer || a.Issuer == "" && m.SendsIssuer {
		return Person{}, fmt.Errorf("%w: the parameter iss of the answer is not the issuer", ErrInvalid)
	}
	ctx = oidc.ClientContext(ctx, c.http)
	token, err := exchange(ctx, c.client(m, r.RedirectURI), a, r)
	if err != nil {
		return Person{}, err
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return Person{}, fmt.Errorf("%w: the answer has no ID token", ErrInvalid)
	}
	claims, err := c.verify(ctx, m, raw, r.Nonce)
	if err != nil {
		return Person{}, err
	}
	if err := c.addUserInfo(ctx, m, token, claims); err != nil {
		return Person{}, err
	}
	if c.HostedDomain != "" && !claims.has("hd", c.HostedDomain) {
		return Person{}, &RefusedError{"Only people of " + c.HostedDomain + " can sign in with " + c.Title + "."}
	}
	return Person{Subject: claims.text("sub"), Email: claims.text("email"), EmailVerified: claims.isTrue("email_verified"),
		SecondFactor: c.hasSecondFactor(claims), SignedInAt: claims.time("auth_time"), Role: c.Roles.of(claims)}, nil
}

// exchange exchanges the code of an answer for tokens.
func exchange(ctx context.Context, client *oauth2.Config, a Callback, r AuthRequest) (*oauth2.Token, error) {
	token, err := client.Exchange(ctx, a.Code, oauth2.VerifierOption(r.Verifier))
	if err == nil {
		return token, nil
	}
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return nil, fmt.Errorf("%w: exchange of the code: %w", ErrUnavailable, err)
	}
	// The body may contain secrets, so the error has only the status and the error's name.
	cause := ErrUnavailable
	if refusal.ErrorCode == "invalid_grant" || refusal.ErrorCode == "bad_verification_code" {
		cause = ErrInvalid
	}
	return nil, fmt.Errorf("%w: exchange of the code: HTTP %d, error %.100q", cause, refusal.Response.StatusCode, refusal.ErrorCode)
}

// verify checks an ID token and returns its claims.
func (c *connect) verify(ctx context.Context, m *metadata, raw, nonce string) (claims, error) {
	token, err := m.provider.Verifier(&oidc.Config{ClientID: c.ClientID, Now: c.now}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: ID token: %w", ErrInvalid, err)
	}
	if nonce == "" || subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1 {
		return nil, fmt.Errorf("%w: the nonce of the ID token is not that of the request", ErrInvalid)
	}
	all := claims{}
	if err := token.Claims(&all); err != nil {
		return nil, fmt.Errorf("%w: ID token: %w", ErrInvalid, err)
	}
	if azp := all.text("azp"); azp != "" && azp != c.ClientID || azp == "" && len(token.Audience) > 1 {
		return nil, fmt.Errorf("%w: the ID token is for another client (azp %.100q)", ErrInvalid, azp)
	}
	return all, nil
}

// addUserInfo adds the claims about the person that the ID token lacks, from the provider's userinfo.
// Several providers send emails and groups only there.
func (c *connect) addUserInfo(ctx context.Context, m *metadata, token *oauth2.Token, to claims) error {
	lacksRole := c.Roles.Claim != "" && to.values(c.Roles.Claim) == nil
	if m.provider.UserInfoEndpoint() == "" || to.text("email") != "" && !lacksRole {
		return nil
	}
	info, err := m.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("%w: userinfo: %w", ErrUnavailable, err)
	}
	if info.Subject != to.text("sub") {
		return fmt.Errorf("%w: the userinfo is about another person than the ID token", ErrInvalid)
	}
	more := claims{}
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("%w: userinfo: %w", ErrInvalid, err)
	}
	if to.text("email") == "" { // from the same source, so that email_verified is about this email
		to["email"], to["email_verified"] = more["email"], more["email_verified"]
	}
	if lacksRole {
		to[c.Roles.Claim] = more.find(c.Roles.Claim)
	}
	return nil
}

// hasSecondFactor reports whether the operator trusts a sign-in to have a second factor.
func (c *connect) hasSecondFactor(all claims) bool {
	if c.SecondFactor == string(Always) {
		return true
	}
	claim, value, ok := strings.Cut(c.SecondFactor, "=")
	return ok && all.has(claim, value)
}
