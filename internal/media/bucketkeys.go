package media

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	keysTimeout      = 20 * time.Second // for finding credentials once
	keysExpiryWindow = 5 * time.Minute  // credentials are fetched again this long before they expire
)

// bucketKeys finds the credentials of a bucket as the AWS CLI does: in environment variables, shared
// files, a web identity, the container or the instance. It fetches new credentials before the old
// ones expire. If this fails, it uses the old credentials until they expire. It is a
// credentials.Provider and safe for concurrent use.
type bucketKeys struct {
	now func() time.Time

	mu        sync.Mutex
	chain     aws.CredentialsProvider
	lastCreds aws.Credentials
}

// loadChain reads the environment and the shared files.
func loadChain(ctx context.Context) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion(defaultRegion), config.WithHTTPClient(keysClient()),
		config.WithCredentialsCacheOptions(func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = keysExpiryWindow }))
	if err != nil {
		return c, fmt.Errorf("media: the settings of AWS cannot be read: %w", err)
	}
	return c, nil
}

// keysClient returns the SDK's client, because it supports AWS_CA_BUNDLE. It uses no proxy and keeps
// no connection open.
func keysClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy, t.DisableKeepAlives = nil, true })
}

// get returns valid credentials.
func (k *bucketKeys) get(ctx context.Context) (aws.Credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	creds, err := k.chain.Retrieve(ctx)
	switch {
	case err == nil:
		k.lastCreds = creds
	case k.lastCreds.HasKeys() && (!k.lastCreds.CanExpire || k.now().Before(k.lastCreds.Expires.Add(keysExpiryWindow))):
		// The SDK's cache has subtracted keysExpiryWindow from Expires.
		return k.lastCreds, nil
	}
	return creds, err
}

// reread reads the environment and the shared files again. If this fails, reread keeps the old
// credentials and returns the error.
func (k *bucketKeys) reread(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	c, err := loadChain(ctx)
	if err != nil {
		return err
	}
	creds, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.chain, k.lastCreds = c.Credentials, creds
	return nil
}

// Retrieve implements credentials.Provider.
func (k *bucketKeys) Retrieve() (credentials.Value, error) { return k.RetrieveWithCredContext(nil) }

// RetrieveWithCredContext implements credentials.Provider.
func (k *bucketKeys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keysTimeout)
	defer cancel()
	creds, err := k.get(ctx)
	if err != nil {
		return credentials.Value{}, fmt.Errorf("fetch the credentials of the bucket: %w", err)
	}
	return credentials.Value{AccessKeyID: creds.AccessKeyID, SecretAccessKey: creds.SecretAccessKey, SessionToken: creds.SessionToken,
		SignerType: credentials.SignatureV4}, nil
}

// IsExpired implements credentials.Provider. It returns true, because the chain caches credentials.
func (k *bucketKeys) IsExpired() bool { return true }

// keySources are the variables for sources of credentials. A source may be unavailable for a while.
var keySources = []string{"AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}

// missingKeysError returns the error for missing credentials. If a variable names a source, err may
// be temporary, so the error wraps err.
func missingKeysError(err error, lookup func(string) (string, bool)) error {
	for _, name := range keySources {
		if value, _ := lookup(name); value != "" {
			return fmt.Errorf("media: the bucket's credentials cannot be fetched from the source in %s: %w", name, err)
		}
	}
	return errors.New("media in a bucket needs credentials, and there are none in the variables AWS_ACCESS_KEY_ID and " +
		"AWS_SECRET_ACCESS_KEY, in ~/.aws, from a web identity, or from a role of the container or the instance: " + err.Error())
}
