package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
)

// defaultService is the service name in signatures.
const defaultService = "bedrock"

// fetchKeys returns a function that fetches a line's signing keys. The keys are in the line's options,
// or come from the SDK's chain (variables, shared files, web identity, container, instance).
func fetchKeys(options map[string]any, secret string, now func() time.Time) credential.Fetch {
	region := exchange.TextOption(options, "region", "")
	return func(ctx context.Context) (*credential.Credential, error) {
		keys := aws.Credentials{AccessKeyID: exchange.TextOption(options, "access_key_id", ""), SecretAccessKey: secret}
		if keys.AccessKeyID == "" {
			chain, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithHTTPClient(client()),
				config.WithSharedConfigProfile(exchange.TextOption(options, "profile", "")), config.WithRetryMaxAttempts(1))
			if err != nil {
				return nil, credential.FetchFailure(http.StatusUnauthorized, err)
			}
			if keys, err = chain.Credentials.Retrieve(ctx); err != nil {
				return nil, credential.FetchFailure(statusOf(err), fmt.Errorf("the chain of credentials: %w", err))
			}
		}
		// A signer caches keys by their ids alone, so each credential gets its own signer.
		sign := signature{region: region, service: exchange.TextOption(options, "service", defaultService), now: now, signer: v4.NewSigner()}
		c := &credential.Credential{Secrets: []string{keys.SecretAccessKey}}
		if keys.SessionToken != "" {
			c.Secrets = append(c.Secrets, keys.SessionToken)
		}
		if keys.CanExpire {
			c.Expires = keys.Expires
		}
		c.Authorize = func(r *http.Request) error { return sign.sign(r, keys) }
		return c, nil
	}
}

// client returns the HTTP client for the SDK's chain. It is the SDK's own client, because only that
// client uses the roots of AWS_CA_BUNDLE. It uses no proxy and keeps no connections.
func client() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy, t.DisableKeepAlives = nil, true })
}

// statusOf returns the HTTP status of a rejected request for keys, or 0 without a response.
func statusOf(err error) int {
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

// signature signs a line's calls.
type signature struct {
	region, service string
	now             func() time.Time
	signer          *v4.Signer
}

// sign signs a request: its address, content type and body. Other headers stay unsigned, so that
// proxies may change them.
func (s signature) sign(r *http.Request, keys aws.Credentials) error {
	sum := sha256.New()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return err
		}
		_, err = io.Copy(sum, body)
		_ = body.Close() // the body was read, or is not needed
		if err != nil {
			return err
		}
	}
	signed := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, ContentLength: r.ContentLength,
		Header: http.Header{"Content-Type": r.Header["Content-Type"]}}
	if err := s.signer.SignHTTP(r.Context(), keys, signed, hex.EncodeToString(sum.Sum(nil)), s.service, s.region, s.now()); err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	for name, values := range signed.Header {
		r.Header[name] = values
	}
	return nil
}
