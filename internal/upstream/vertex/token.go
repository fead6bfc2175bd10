package vertex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"tollgate/internal/upstream/credential"
)

// scope is the scope of requested tokens.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// fetchToken returns a function that fetches a line's token. text is the value of the line's key: the
// JSON of the account.
func fetchToken(auth, text string, now func() time.Time, transport http.RoundTripper) credential.Fetch {
	if auth == authMetadata {
		return func(ctx context.Context) (*credential.Credential, error) { return hostToken(ctx, now, transport) }
	}
	// The option decides the type, not the file: a file of another type may name addresses to call
	// and programs to run.
	kind := google.ServiceAccount
	if auth == authWorkloadIdentity {
		kind = google.ExternalAccount
	}
	return func(ctx context.Context) (*credential.Credential, error) {
		if err := checkAccount(text, kind); err != nil {
			return nil, credential.FetchFailure(http.StatusUnauthorized, err)
		}
		ctx = context.WithValue(ctx, oauth2.HTTPClient, credential.Client(ctx, transport))
		account, err := google.CredentialsFromJSONWithType(ctx, []byte(text), kind, scope)
		if err != nil {
			return nil, credential.FetchFailure(http.StatusUnauthorized, fmt.Errorf("%s: %w", auth, err))
		}
		token, err := account.TokenSource.Token()
		if err != nil {
			return nil, credential.FetchFailure(statusOf(err), fmt.Errorf("%s: %w", auth, err))
		}
		return credential.Bearer(token.AccessToken, token.Expiry), nil
	}
}

// hostToken returns the token of this node's machine, pod or service. The library's own token
// source ignores the context and would wait forever for a host without a response.
func hostToken(ctx context.Context, now func() time.Time, transport http.RoundTripper) (*credential.Credential, error) {
	text, err := metadata.NewClient(credential.Client(ctx, transport)).
		GetWithContext(ctx, "instance/service-accounts/default/token?scopes="+url.QueryEscape(scope))
	if err != nil {
		return nil, credential.FetchFailure(statusOf(err), fmt.Errorf("%s: %w", authMetadata, err))
	}
	var token struct {
		Access string `json:"access_token"`
		Lasts  int64  `json:"expires_in"` // seconds
	}
	if err := json.Unmarshal([]byte(text), &token); err != nil || token.Access == "" || token.Lasts <= 0 {
		return nil, credential.FetchFailure(0, errors.New("metadata: an answer without a token"))
	}
	return credential.Bearer(token.Access, now().Add(time.Duration(token.Lasts)*time.Second)), nil
}

// checkAccount checks the JSON of an account before the library reads it. The library explains some
// errors badly, and its messages may contain the JSON.
func checkAccount(text string, kind google.CredentialsType) error {
	var account struct {
		Type   string `json:"type"`
		Source struct {
			Executable json.RawMessage `json:"executable"`
		} `json:"credential_source"`
	}
	switch err := json.Unmarshal([]byte(text), &account); {
	case err != nil:
		return fmt.Errorf("api_key must stand for the JSON of a Google account of type %s", kind)
	case account.Type != string(kind):
		return fmt.Errorf("api_key stands for an account of type %.40q, and auth wants one of type %s", account.Type, kind)
	case account.Source.Executable != nil:
		return errors.New("an account that has its token from a program is not taken")
	}
	return nil
}

// statusOf returns the HTTP status of a rejected token request, or 0 without a response.
func statusOf(err error) int {
	var (
		retrieveErr *oauth2.RetrieveError
		host        *metadata.Error
		none        metadata.NotDefinedError
	)
	switch {
	case errors.As(err, &retrieveErr) && retrieveErr.Response != nil:
		return retrieveErr.Response.StatusCode
	case errors.As(err, &host):
		return host.Code
	case errors.As(err, &none):
		return http.StatusNotFound
	}
	return 0
}
