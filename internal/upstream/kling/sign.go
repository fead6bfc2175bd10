package kling

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"tollgate/internal/upstream/credential"
)

// Lifetime of a token, and the time before now at which a token begins, to allow for differences
// between clocks.
const (
	tokenLife = 30 * time.Minute
	clockSkew = 5 * time.Second
)

// signTokens returns a function that creates a token for a line with a pair of keys. In Kling's format,
// a token is signed with the secret key by HS256 and issued by the access key.
func signTokens(access, secret string, now func() time.Time) credential.Fetch {
	return func(context.Context) (*credential.Credential, error) {
		issuedAt := now()
		expires := issuedAt.Add(tokenLife)
		claims, err := json.Marshal(map[string]any{"iss": access, "exp": expires.Unix(), "nbf": issuedAt.Add(-clockSkew).Unix()})
		if err != nil {
			return nil, credential.FetchFailure(0, fmt.Errorf("the claims of a token: %w", err))
		}
		text := segment([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + segment(claims)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(text))
		return credential.Bearer(text+"."+segment(mac.Sum(nil)), expires), nil
	}
}

// segment returns a part of a token.
func segment(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
