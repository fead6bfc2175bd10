package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
)

// Defaults of options.
const (
	defaultScope     = "https://cognitiveservices.azure.com/.default"
	defaultAuthority = "https://login.microsoftonline.com"
)

// fetchToken returns a function that fetches a line's Entra ID token. It creates a new credential of the
// library each time, because such credentials cache their tokens.
func fetchToken(options map[string]any, secret string, transport http.RoundTripper) credential.Fetch {
	return func(ctx context.Context) (*credential.Credential, error) {
		entra, err := identity(options, secret, credential.Client(ctx, transport))
		if err != nil { // a variable or file is missing on the node
			return nil, credential.FetchFailure(http.StatusUnauthorized, err)
		}
		token, err := entra.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{exchange.TextOption(options, "scope", defaultScope)}})
		if err != nil {
			return nil, rejection(authOption(options), err)
		}
		return credential.Bearer(token.Token, token.ExpiresOn), nil
	}
}

// identity returns the Entra ID credential for the options. The library reads missing options from
// Azure's variables (AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE).
func identity(options map[string]any, secret string, client *http.Client) (azcore.TokenCredential, error) {
	text := func(name string) string { return exchange.TextOption(options, name, "") }
	common := azcore.ClientOptions{
		Cloud:     cloud.Configuration{ActiveDirectoryAuthorityHost: exchange.TextOption(options, "authority", defaultAuthority)},
		Transport: client,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the next call, or the next line, is the retry
	}
	switch authOption(options) {
	case authClientSecret:
		return azidentity.NewClientSecretCredential(text("tenant"), text("client_id"), secret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: common, DisableInstanceDiscovery: true})
	case authWorkloadIdentity:
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: common, DisableInstanceDiscovery: true,
			TenantID: text("tenant"), ClientID: text("client_id"), TokenFilePath: text("token_file"),
		})
	default:
		identityOptions := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: common}
		if id := text("client_id"); id != "" {
			identityOptions.ID = azidentity.ClientID(id)
		}
		return azidentity.NewManagedIdentityCredential(identityOptions)
	}
}

// rejection returns the failure of a rejected token request.
func rejection(auth string, err error) error {
	var failed *azidentity.AuthenticationFailedError
	if !errors.As(err, &failed) || failed.RawResponse == nil {
		return credential.FetchFailure(0, fmt.Errorf("%s: %w", auth, err))
	}
	status := failed.RawResponse.StatusCode
	return credential.FetchFailure(status, fmt.Errorf("%s: Entra ID answered %d: %s", auth, status, excerpt(failed.RawResponse)))
}

// maxExcerpt is the maximum length read from a rejection, in bytes.
const maxExcerpt = 4 << 10

// excerpt returns the beginning of a rejection's body.
func excerpt(r *http.Response) string {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxExcerpt))
	if err != nil {
		return "a body that cannot be read"
	}
	return string(body)
}
