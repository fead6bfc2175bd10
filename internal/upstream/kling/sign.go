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

// How long a token holds, and how long before now it begins, for clocks that
// differ.
const (
	tokenLife = 30 * time.Minute
	tokenEdge = 5 * time.Second
)

// signTokens makes the tokens of a line that has a pair of keys, as Kling wants
// them: signed with the secret key by HS256, in the name of the access key.
func signTokens(access, secret string, now func() time.Time) credential.Fetch {
	return func(context.Context) (*credential.Credential, error) {
		at := now()
		ends := at.Add(tokenLife)
		claims, err := json.Marshal(map[string]any{"iss": access, "exp": ends.Unix(), "nbf": at.Add(-tokenEdge).Unix()})
		if err != nil {
			return nil, credential.Refused(0, fmt.Errorf("the claims of a token: %w", err))
		}
		text := segment([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + segment(claims)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(text))
		return credential.Bearer(text+"."+segment(mac.Sum(nil)), ends), nil
	}
}

// segment is a part of a token.
func segment(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
