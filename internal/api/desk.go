package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
)

// desk is the front desk: it finds out who calls, has a request judged, and
// notes its refusal.
type desk struct {
	Options
	fetches *fetches
	memory  *httpapi.Budget
	counts  *limit.Buckets[string] // counts of tokens by account; nil if they have no limit
}

// exchange is one request of somebody with a key, and its answer.
type exchange struct {
	*httpapi.Exchange

	from      netip.Addr        // the client's address
	principal account.Principal // who calls, once the key is known
	fresh     bool              // principal is what the database said after the request came
	model     string            // what the client asked for, for the request log
	handed    bool              // the request was handed on: from here its log row is the ledger's
}

// query answers a request that reads the account: nothing of it is recorded.
func (d *desk) query(handle func(*exchange) error) func(*httpapi.Exchange) error {
	return func(h *httpapi.Exchange) error {
		x := &exchange{Exchange: h}
		return d.slowed(x, d.attend(x, true, handle))
	}
}

// modelCall answers a request that runs a model: its refusal stands in the
// request log too.
func (d *desk) modelCall(handle func(*exchange) error) func(*httpapi.Exchange) error {
	return func(h *httpapi.Exchange) error {
		x := &exchange{Exchange: h}
		err := d.attend(x, false, handle)
		if err != nil && !x.handed && !errors.Is(err, ledger.ErrUnknown) {
			d.record(x, fault.Of(err))
		}
		return d.slowed(x, err)
	}
}

// attend judges key and address, in this order, and lets the route do the rest.
// Where nobody knows what became of the request, the error cuts its connection.
// fresh: see identify.
func (d *desk) attend(x *exchange, fresh bool, handle func(*exchange) error) error {
	x.from = httpapi.ClientAddress(x.Request, d.TrustedProxies)
	if err := d.identify(x, fresh); err != nil {
		return err
	}
	x.Memory = d.memory.Body(x.principal.Account)
	x.Account, x.Key = x.principal.Account, x.principal.Key
	err := handle(x)
	x.Model = fault.Shown(x.model)
	if errors.Is(err, ledger.ErrUnknown) {
		return &httpapi.Cut{Cause: err}
	}
	return err
}

// noKey is the refusal of a request without a key. What stands in the headers may be one
// all the same, and is not repeated.
func noKey(h http.Header, native bool) error {
	sent := strings.Fields(h.Get("Authorization"))
	switch {
	case len(sent) == 1 && !strings.EqualFold(sent[0], "Bearer"):
		return fault.New(fault.MissingAPIKey,
			"The header `Authorization` has no scheme: the word Bearer and a space belong before the key. "+
				"Send `Authorization: Bearer <API_KEY>`.")
	case len(sent) > 1 && !strings.EqualFold(sent[0], "Bearer"):
		return fault.New(fault.MissingAPIKey,
			"The header `Authorization` has another scheme than Bearer. Send `Authorization: Bearer <API_KEY>`.")
	case native:
		return fault.New(fault.MissingAPIKey, "No API key was sent. Send it in the header `x-api-key: <API_KEY>`.")
	}
	return fault.New(fault.MissingAPIKey, "No API key was sent. Send it in the header `Authorization: Bearer <API_KEY>`.")
}

// identify finds out whose key the request carries and whether it may be used
// from where the request comes. Without fresh it may go by what is remembered
// of the key: that is for requests that go through admission, which checks the
// key's version. A refusal always has the database's word.
func (d *desk) identify(x *exchange, fresh bool) error {
	if named, ok := x.Request.Context().Value(namedKey{}).(namedKey); ok {
		return d.identifyNamed(x, named)
	}
	native := fault.IsNative(x.Request.URL.Path)
	secret := httpapi.Bearer(x.Request.Header)
	if native {
		secret = nativeKey(x.Request.Header)
	}
	if secret == "" {
		return noKey(x.Request.Header, native)
	}
	ctx, done := x.Outliving(readTimeout)
	defer done()
	var err error
	if fresh {
		x.principal, err = d.Keys.Authenticate(ctx, secret, x.from, true)
	} else {
		x.principal, err = d.Keys.AuthenticateCall(ctx, secret, x.from)
	}
	x.fresh = fresh
	switch {
	case err != nil:
		return err
	case x.principal.AllowsAddress(x.from):
		return nil
	case !fresh:
		return d.identify(x, true)
	}
	return foreignAddress(x)
}

// identifyNamed is identify for a key that is named and not sent: what may be done
// with it always has the database's word.
func (d *desk) identifyNamed(x *exchange, named namedKey) (err error) {
	ctx, done := x.Outliving(readTimeout)
	defer done()
	x.fresh = true
	if x.principal, err = d.Keys.Named(ctx, named.account, named.key); err != nil {
		return err
	}
	if !x.principal.AllowsAddress(x.from) {
		return foreignAddress(x)
	}
	return nil
}

// foreignAddress is the refusal of a key that may not be used from where the request
// comes.
func foreignAddress(x *exchange) error {
	return fault.New(fault.PermissionDenied,
		"This API key may not be used from the address %s. Add it to the key's allowed addresses or use another key.", x.from)
}

// record notes a refusal in the request log.
func (d *desk) record(x *exchange, f *fault.Error) {
	d.Ledger.Refused(ledger.Refusal{
		Request: x.ID, Account: x.principal.Account, Key: x.principal.Key,
		Model: fault.Shown(x.model), Endpoint: x.Endpoint(),
		Status: f.Status(), Code: string(f.Code),
		Received: x.Received, Duration: d.Now().Sub(x.Received),
	})
}

// slowed keeps the answer to a wrong key waiting where its address has sent many.
// A good key is never here, whatever others behind its address do.
func (d *desk) slowed(x *exchange, err error) error {
	_, named := x.Request.Context().Value(namedKey{}).(namedKey) // nothing was guessed
	if err == nil || d.WrongKeys == nil || x.handed || named || fault.Of(err).Code != fault.InvalidAPIKey {
		return err
	}
	x.DropBody()
	if !d.WrongKeys(context.WithoutCancel(x.Request.Context()), x.from) { // who hangs up does not wait less
		x.Header().Set("Connection", "close")
	}
	return err
}

// away is the 503 for a database that does not answer.
func away(err error) error {
	f := fault.Unavailable(err)
	f.RetryAfter = time.Second
	return f
}
