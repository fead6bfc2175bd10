package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/upstream/exchange"
)

// Bounds of a test call.
const (
	maxList      = 8 << 20 // bytes
	maxModels    = 2000
	exchangeWait = 10 * time.Second // for each exchange of a test call
)

// NewClient returns the client for test calls. Like the requests of lines, it may reach private
// addresses. It returns redirects like any other answer, and keeps no connection open.
func NewClient() *http.Client {
	transport := exchange.NewStandardTransport()
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport, Timeout: exchangeWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Connection is a vendor's API with the operator's key.
type Connection struct {
	Vendor  ChatVendor
	BaseURL string // without a slash at the end
	Key     string // may be empty for a server without keys
}

// ListModels is the test call. It requests the list of models and returns their ids in alphabetical
// order. If the API has no list, ListModels requests one token from a model and returns
// Vendor.ListedModels. The error is a *fault.Error; its Param is the field of the form to correct,
// base_url or key.
func (c Connection) ListModels(ctx context.Context, client *http.Client) ([]string, error) {
	status, body, err := c.do(ctx, client, http.MethodGet, c.listPath(), nil)
	if err != nil {
		return nil, err
	}
	known := c.Vendor.ListedModels()
	if (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) && c.Vendor.Provider == "openai" && len(known) > 0 {
		question, err := json.Marshal(map[string]any{"model": known[0], "max_tokens": 1,
			"messages": []map[string]string{{"role": "user", "content": "Hi"}}})
		if err != nil {
			return nil, err
		}
		if status, body, err = c.do(ctx, client, http.MethodPost, "/chat/completions", question); err != nil {
			return nil, err
		}
		return known, c.refusal(status, body)
	}
	if err := c.refusal(status, body); err != nil {
		return nil, err
	}
	return c.readList(body)
}

// listPath returns the path of the list of models.
func (c Connection) listPath() string {
	switch c.Vendor.Provider {
	case "anthropic":
		return "/v1/models?limit=1000"
	case "gemini":
		return "/models?pageSize=1000"
	}
	return "/models"
}

// do sends one request and reads the answer.
func (c Connection) do(ctx context.Context, client *http.Client, method, path string, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, badAddress("This is not an address.")
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.Key == "":
	case c.Vendor.Provider == "anthropic":
		r.Header.Set("X-Api-Key", c.Key)
		r.Header.Set("Anthropic-Version", "2023-06-01")
	case c.Vendor.Provider == "gemini":
		r.Header.Set("X-Goog-Api-Key", c.Key)
	default:
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, badAddress(fmt.Sprintf("The provider did not answer: %s. Check the address and this machine's network.", explain(err)))
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case err != nil:
		return 0, nil, badAddress(fmt.Sprintf("The provider's answer broke off: %s. Try again.", explain(err)))
	case len(answer) > maxList:
		return 0, nil, badAddress(fmt.Sprintf("The answer has more than %d MiB, so it is no list of models. Check the address.", maxList>>20))
	case kind == "text/html" || bytes.HasPrefix(bytes.TrimSpace(answer), []byte("<")):
		return 0, nil, badAddress("The answer is a web page and not an API. Check the address: it usually ends in /v1.")
	}
	return resp.StatusCode, answer, nil
}

// explain is egress.Explain for the operator, who may learn that a name does not exist.
func explain(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "the host's name does not exist"
	}
	return egress.Explain(err)
}

func badAddress(text string) error { return fault.At(fault.InvalidRequest, "base_url", "%s", text) }

// refusal returns the error for a status other than 2xx. It repeats no words of the provider, because
// they may contain the key.
func (c Connection) refusal(status int, body []byte) error {
	words := strings.ToLower(string(body[:min(len(body), 4096)]))
	namesKey := strings.Contains(words, "api key") || strings.Contains(words, "api_key") || strings.Contains(words, "apikey")
	badKey := func(text string) error { return fault.At(fault.InvalidRequest, "key", "%s", text) }
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusBadRequest && namesKey:
		if c.Key == "" {
			return badKey("The provider wants a key.")
		}
		return badKey(fmt.Sprintf("The provider refused the key (status %d). Copy it again from the provider's page, whole.", status))
	case status == http.StatusPaymentRequired:
		return badKey("The provider accepted the key, but its account has no credit (status 402). Pay there first.")
	case status == http.StatusTooManyRequests:
		return badKey("The provider accepts no more requests with this key for now (status 429): too many, or no credit. Look at its page.")
	case status >= 300 && status < 400:
		return badAddress(fmt.Sprintf("The address leads to another one (status %d). Enter the address that the provider documents.", status))
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return badAddress(fmt.Sprintf("There is no list of models below this address (status %d). It usually ends in /v1.", status))
	case status >= 500:
		return badAddress(fmt.Sprintf("The provider has a problem of its own (status %d). Try again later.", status))
	}
	return badAddress(fmt.Sprintf("The provider answered with status %d. Check address and key.", status))
}

// readList reads the IDs in a list of models. Names that a catalog cannot have are left out.
func (c Connection) readList(body []byte) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, badAddress("The answer is not a list of models. Check the address: it usually ends in /v1.")
	}
	var ids []string
	add := func(id string) {
		if catalog.IsModelID(id) {
			ids = append(ids, id)
		}
	}
	for _, m := range list.Data {
		add(m.ID)
	}
	for _, m := range list.Models {
		add(strings.TrimPrefix(m.Name, "models/"))
	}
	if len(ids) == 0 {
		return nil, badAddress("The answer names no models. Check the address, and whether the key may use models.")
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), maxModels)], nil
}
