package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/oauth2"
)

// GitHubURL is the address of GitHub.
const GitHubURL = "https://github.com"

// github is GitHub, or GitHub Enterprise Server at Issuer. It speaks OAuth 2 without ID tokens.
type github struct {
	Config
	http *http.Client
}

// apiURL returns the address of a path of the API.
func (g *github) apiURL(path string) string {
	if g.Issuer == GitHubURL {
		return "https://api.github.com" + path
	}
	return g.Issuer + "/api/v3" + path
}

func (g *github) client(redirectURI string) *oauth2.Config {
	return &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, RedirectURL: redirectURI,
		Endpoint: oauth2.Endpoint{AuthURL: g.Issuer + "/login/oauth/authorize", TokenURL: g.Issuer + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams},
		Scopes: append([]string{"user:email"}, g.Scopes...)}
}

func (g *github) authorizationURL(_ context.Context, r AuthRequest) (string, error) {
	return g.client(r.RedirectURI).AuthCodeURL(r.State, oauth2.S256ChallengeOption(r.Verifier)), nil
}

func (g *github) identify(ctx context.Context, a Callback, r AuthRequest) (Person, error) {
	if a.Issuer != "" && a.Issuer != g.Issuer+"/login/oauth" {
		return Person{}, fmt.Errorf("%w: the parameter iss of the answer is not GitHub's", ErrInvalid)
	}
	token, err := exchange(context.WithValue(ctx, oauth2.HTTPClient, g.http), g.client(r.RedirectURI), a, r)
	if err != nil {
		return Person{}, err
	}
	var user struct {
		ID int64 `json:"id"`
	}
	if err := g.get(ctx, "/user", token, &user); err != nil {
		return Person{}, err
	}
	if user.ID <= 0 {
		return Person{}, fmt.Errorf("%w: the user has no id", ErrInvalid)
	}
	var emails []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if err := g.get(ctx, "/user/emails", token, &emails); err != nil {
		return Person{}, err
	}
	p := Person{Subject: strconv.FormatInt(user.ID, 10), SecondFactor: g.SecondFactor == string(Always)}
	for _, e := range emails {
		if e.Primary {
			p.Email, p.EmailVerified = e.Email, e.Verified
		}
	}
	return p, nil
}

// get reads a document of the API.
func (g *github) get(ctx context.Context, path string, token *oauth2.Token, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.apiURL(path), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	req.Header.Set("Authorization", "Bearer "+token.AccessToken)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("User-Agent", "tollgate")
	resp, err := g.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: GET %s: HTTP %d", ErrUnavailable, path, resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		return fmt.Errorf("%w: GET %s: %w", ErrUnavailable, path, err)
	}
	return nil
}
