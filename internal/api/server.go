package api

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
)

// server authenticates callers, validates requests and records refusals.
type server struct {
	Options
	fetches *fetches
	memory  *httpapi.Budget
	counts  *limit.Buckets[string] // token counts by account; nil without a limit
}

// apiRequest is one request with a key, and its response.
type apiRequest struct {
	*httpapi.Exchange

	clientAddress  netip.Addr        // the client's address
	caller         account.Principal // the caller, once authenticated
	fresh          bool              // caller was read from the database for this request
	model          string            // requested model, for the request log
	loggedByLedger bool              // whether the ledger writes the request log row
}

// query wraps a handler that reads the account. Rejections are not recorded.
func (s *server) query(handle func(*apiRequest) error) func(*httpapi.Exchange) error {
	return func(h *httpapi.Exchange) error {
		x := &apiRequest{Exchange: h}
		return s.delayWrongKey(x, s.serve(x, true, handle))
	}
}

// modelCall wraps a handler that runs a model. Rejections are recorded in the request log.
func (s *server) modelCall(handle func(*apiRequest) error) func(*httpapi.Exchange) error {
	return func(h *httpapi.Exchange) error {
		x := &apiRequest{Exchange: h}
		err := s.serve(x, false, handle)
		if err != nil && !x.loggedByLedger && !errors.Is(err, ledger.ErrUnknown) {
			s.logRefusal(x, fault.Of(err))
		}
		return s.delayWrongKey(x, err)
	}
}

// serve checks key and address, then calls handle. If the outcome of the request is unknown, it
// closes the connection, because a response would claim an outcome. See authenticate for fresh.
func (s *server) serve(x *apiRequest, fresh bool, handle func(*apiRequest) error) error {
	x.clientAddress = httpapi.ClientAddress(x.Request, s.TrustedProxies)
	if err := s.authenticate(x, fresh); err != nil {
		return err
	}
	x.Memory = s.memory.Body(x.caller.Account)
	x.Account, x.Key = x.caller.Account, x.caller.Key
	err := handle(x)
	x.Model = fault.Excerpt(x.model)
	if errors.Is(err, ledger.ErrUnknown) {
		x.Abort(err)
	}
	return err
}

// keyOf returns the API key of a request, or "" without one. The path decides which header or
// parameter has the key.
func keyOf(r *http.Request) string {
	switch path := r.URL.Path; {
	case fault.IsNative(path):
		return nativeKey(r.Header)
	case fault.IsGoogle(path), (path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")) && isGoogleClient(r):
		return googleKey(r)
	}
	return httpapi.Bearer(r.Header)
}

// noKey returns the error for a request without a key. The error does not repeat header values,
// which may be keys.
func noKey(r *http.Request) error {
	h := r.Header
	sent := strings.Fields(h.Get("Authorization"))
	switch {
	case len(sent) == 1 && !strings.EqualFold(sent[0], "Bearer"):
		return fault.New(fault.MissingAPIKey,
			"The header `Authorization` has no scheme: the word Bearer and a space belong before the key. "+
				"Send `Authorization: Bearer <API_KEY>`.")
	case len(sent) > 1 && !strings.EqualFold(sent[0], "Bearer"):
		return fault.New(fault.MissingAPIKey,
			"The header `Authorization` has another scheme than Bearer. Send `Authorization: Bearer <API_KEY>`.")
	case fault.IsNative(r.URL.Path):
		return fault.New(fault.MissingAPIKey, "No API key was sent. Send it in the header `x-api-key: <API_KEY>`.")
	case fault.IsGoogle(r.URL.Path):
		return fault.New(fault.MissingAPIKey, "No API key was sent. Send it in the header `x-goog-api-key: <API_KEY>`.")
	}
	return fault.New(fault.MissingAPIKey, "No API key was sent. Send it in the header `Authorization: Bearer <API_KEY>`.")
}

// authenticate authenticates the request's key and checks its address list. Unless fresh, it may use
// the cached key; this is safe for requests that go through admission, which compares the key's
// version. A refusal is always based on the database.
func (s *server) authenticate(x *apiRequest, fresh bool) error {
	if k, ok := x.Request.Context().Value(sessionKey{}).(sessionKey); ok {
		return s.authenticateSession(x, k)
	}
	secret := keyOf(x.Request)
	if secret == "" {
		return noKey(x.Request)
	}
	ctx, done := x.DetachedContext(readTimeout)
	defer done()
	var err error
	if fresh {
		x.caller, err = s.Keys.Authenticate(ctx, secret, x.clientAddress, true)
	} else {
		x.caller, err = s.Keys.AuthenticateCall(ctx, secret, x.clientAddress)
	}
	x.fresh = fresh
	switch {
	case err != nil:
		return err
	case x.caller.AllowsAddress(x.clientAddress):
		return nil
	case !fresh:
		return s.authenticate(x, true)
	}
	return foreignAddress(x)
}

// authenticateSession is authenticate for a key of ServeAs. It always reads the database.
func (s *server) authenticateSession(x *apiRequest, k sessionKey) (err error) {
	ctx, done := x.DetachedContext(readTimeout)
	defer done()
	x.fresh = true
	if x.caller, err = s.Keys.ByID(ctx, k.account, k.key); err != nil {
		return err
	}
	if !x.caller.AllowsAddress(x.clientAddress) {
		return foreignAddress(x)
	}
	return nil
}

// foreignAddress returns the error for a client address outside the key's list.
func foreignAddress(x *apiRequest) error {
	return fault.New(fault.PermissionDenied,
		"This API key may not be used from the address %s. Add it to the key's allowed addresses or use another key.", x.clientAddress)
}

// logRefusal writes a rejection to the request log.
func (s *server) logRefusal(x *apiRequest, f *fault.Error) {
	s.Ledger.Refused(ledger.Refusal{
		Request: x.ID, Account: x.caller.Account, Key: x.caller.Key,
		Model: fault.Excerpt(x.model), Endpoint: x.Endpoint(),
		Status: f.Status(), Code: string(f.Code),
		Received: x.Received, Duration: s.Now().Sub(x.Received),
	})
}

// delayWrongKey delays the response to a wrong key if the client's address has sent many wrong keys.
// Valid keys are never delayed, even if others send wrong keys from the same address.
func (s *server) delayWrongKey(x *apiRequest, err error) error {
	_, isSession := x.Request.Context().Value(sessionKey{}).(sessionKey) // a session's key cannot be guessed
	if err == nil || s.WrongKeys == nil || x.loggedByLedger || isSession || fault.Of(err).Code != fault.InvalidAPIKey {
		return err
	}
	x.DropBody()
	s.WrongKeys.Slow(x, x.Request, x.clientAddress)
	return err
}
