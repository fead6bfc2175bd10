package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"tollgate/internal/fault"
)

// Challenge is a service that checks whether a person sends a form: Cloudflare Turnstile, or a service with the
// same widget and protocol.
type Challenge struct {
	SiteKey, Secret string
	// ScriptURL is the address of the script that shows the widget. VerifyURL is the address that verifies an
	// answer of the widget.
	ScriptURL, VerifyURL string
	HTTP                 *http.Client
}

// challengeField is the name of the widget's input.
const challengeField = "cf-turnstile-response"

// maxVerdict bounds a response of VerifyURL, in bytes.
const maxVerdict = 64 << 10

// check returns an error unless VerifyURL confirms the widget's answer. An answer is valid once. If the service
// cannot be reached, the error is a 503 fault.
func (c *Challenge) check(ctx context.Context, answer string, addr netip.Addr) error {
	if answer == "" {
		return fault.At(fault.InvalidRequest, challengeField, "The check that you are not a program is missing. Wait until the box below "+
			"is ticked, and send the form again.")
	}
	form := url.Values{"secret": {c.Secret}, "response": {answer}, "remoteip": {addr.String()}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.VerifyURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("ask the challenge service: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var verdict struct {
		Success bool     `json:"success"`
		Errors  []string `json:"error-codes"`
	}
	resp, err := c.HTTP.Do(r)
	if err == nil {
		defer resp.Body.Close()
		err = json.NewDecoder(io.LimitReader(resp.Body, maxVerdict)).Decode(&verdict)
		if err == nil && resp.StatusCode >= http.StatusInternalServerError {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	for _, code := range verdict.Errors {
		if strings.HasSuffix(code, "-input-secret") || code == "internal-error" {
			err = fmt.Errorf("the service answers %s", code)
		}
	}
	switch {
	case err != nil:
		return fault.Unavailable(fmt.Errorf("ask the challenge service: %w", err))
	case !verdict.Success:
		return fault.At(fault.InvalidRequest, challengeField, "The check that you are not a program has failed or has expired. Try again.")
	}
	return nil
}

// challengePolicy returns the content policy of a page with a challenge. It allows the script and the frame of
// the service, and leaves out Trusted Types, because the script does not support them.
func challengePolicy(policy, origin string) string {
	policy, _, _ = strings.Cut(policy, "; require-trusted-types-for")
	return strings.Replace(policy, "script-src 'self'", "script-src 'self' "+origin, 1) + "; frame-src " + origin
}
