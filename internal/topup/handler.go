package topup

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// Base begins the paths of the providers' messages.
const Base = "/payments"

const (
	// maxMessage bounds the body of a message.
	maxMessage = 1 << 20
	// messageTime bounds the work on a message. Stripe waits 20 seconds or so for the answer.
	messageTime = 15 * time.Second
	// forgedEvery is the shortest time between two log lines about forged messages.
	forgedEvery = time.Minute
)

// Handler returns the handler of the providers' messages. Only configured providers have a path.
func (t *Topups) Handler() http.Handler {
	var routes []httpapi.Route
	for _, p := range t.Providers {
		answer := func(x *httpapi.Exchange) error { return t.receive(x, p) }
		routes = append(routes, httpapi.Route{Pattern: "POST " + p.Info().Path, Handle: answer},
			httpapi.Route{Pattern: "GET " + p.Info().Path, Handle: answer})
	}
	return httpapi.New(httpapi.Options{Log: t.Log}, routes)
}

// receive answers a message of a provider. It reports success once the message has its effect, or can never
// have one. After an error, the provider sends the message again.
func (t *Topups) receive(x *httpapi.Exchange, p PaymentProvider) error {
	body, err := x.Body(maxMessage)
	if err != nil {
		return err
	}
	ctx, done := x.DetachedContext(messageTime)
	defer done()
	n, err := p.Verify(ctx, x.Request, body)
	switch {
	case errors.Is(err, ErrForged):
		t.logForged(x, p, err)
		return fault.New(fault.InvalidRequest, "The signature of this message is not valid.")
	case err != nil:
		return err
	}
	if n.Topup != "" {
		if err := t.syncHint(ctx, p, n); err != nil && !t.setWarning(&n, err) {
			return err
		}
	}
	if n.Warning != "" {
		if err := t.DB.Update(ctx, func(tx *store.Tx) error { return warnTx(tx, p.Info().Name, n) }); err != nil {
			return err
		}
	}
	p.Acknowledge(x)
	return nil
}

// errProvider reports that a provider's message names a top-up of another provider.
var errProvider = errors.New("the top-up is paid at another provider")

// syncHint asks a provider about the top-up in its message. A message about a credited payment has no
// effect, because anyone who has seen the message can repeat it without end.
func (t *Topups) syncHint(ctx context.Context, p PaymentProvider, n Hint) error {
	row, err := store.Read(ctx, t.DB, func(tx *store.Tx) (Topup, error) { return GetTx(tx, n.Topup) })
	switch {
	case err != nil:
		return err
	case row.Provider != p.Info().Name:
		return errProvider
	case n.Payment != "" && n.Payment == row.Payment:
		return nil
	}
	return t.Sync(ctx, n.Topup, n.Session)
}

// setWarning sets a warning for the operator if no repetition of the message can resolve err. Otherwise it
// returns false.
func (t *Topups) setWarning(n *Hint, err error) bool {
	switch {
	case fault.Is(err, fault.NotFound): // an unknown top-up
		n.Warning = "a payment names a missing top-up here"
	case errors.Is(err, errProvider):
		n.Warning = "a message names a top-up of another provider; nothing was credited"
	case errors.Is(err, ErrOff):
		n.Warning = "a message is about a payment in the other mode (test or live)"
	default:
		return false
	}
	return true
}

// warnTx records the warning of a message.
func warnTx(tx *store.Tx, provider string, n Hint) error {
	row, found, err := readTx(tx, n.Topup)
	if err != nil {
		return err
	}
	problem := Problem{Provider: provider, Kind: problemWarning, Object: n.Object, Topup: n.Topup, Account: row.Account, Detail: n.Warning}
	switch {
	case n.Topup == "":
	case !found:
		problem.Kind = problemUnknown
	case row.Provider != provider:
		problem.Kind = problemProvider
	}
	return reportTx(tx, problem)
}

// logForged logs a forged message, at most once a minute, because anyone can send one. A wrong secret in
// the settings looks the same.
func (t *Topups) logForged(x *httpapi.Exchange, p PaymentProvider, err error) {
	now := x.Received.UnixMilli()
	if last := t.forgedMS.Load(); now-last < forgedEvery.Milliseconds() || !t.forgedMS.CompareAndSwap(last, now) {
		return
	}
	t.Log.Warn("topup: refused a message, because its signature is not valid; check the webhook secret if the provider sent it",
		"provider", p.Info().Name, "error", err)
}
