package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"tollgate/internal/topup"
)

// Charge implements topup.CardProvider. It first looks for the payment intent of an earlier call, because
// Stripe forgets an idempotency key after a day.
func (c *Service) Charge(ctx context.Context, t topup.Topup, ended bool) (string, error) {
	q := since(t.CreatedMS)
	q.Set("customer", t.Customer)
	existing, err := all[intent](ctx, c, "/v1/payment_intents", q, topup.MaxListed)
	if err != nil {
		return "", err
	}
	for _, i := range existing {
		if i.Metadata[metadata] == t.ID {
			return i.ID, nil
		}
	}
	if ended {
		return "", fmt.Errorf("%w: the order has ended", topup.ErrRefused)
	}
	var i intent
	err = c.call(ctx, http.MethodPost, "/v1/payment_intents", url.Values{"amount": {strconv.FormatInt(t.Minor, 10)},
		"currency": {t.Currency.Code}, "customer": {t.Customer}, "payment_method": {t.Card}, "off_session": {"true"}, "confirm": {"true"},
		"description": {"API credit"}, "metadata[" + metadata + "]": {t.ID}, "metadata[" + automatic + "]": {"1"}}, t.ID, &i)
	if e, ok := errors.AsType[*statusError](err); ok && e.intent != "" {
		return e.intent, nil // declined; Query reads why
	}
	return i.ID, err
}

// Forget implements topup.CardProvider.
func (c *Service) Forget(ctx context.Context, card topup.Card) error {
	var ignored struct{}
	err := c.call(ctx, http.MethodPost, "/v1/payment_methods/"+url.PathEscape(card.ID)+"/detach", url.Values{}, "detach-"+card.ID, &ignored)
	if errors.Is(err, topup.ErrRefused) || isMissing(err) { // it is detached already
		return nil
	}
	return err
}

// payment returns the payment of an automatic top-up.
func (i intent) payment() topup.ProviderPayment {
	p := topup.ProviderPayment{Topup: i.Metadata[metadata], Session: i.ID, State: topup.Open, Live: i.Live, Currency: i.Currency,
		Amount: i.Received, Total: i.Received, CreatedMS: i.Created * 1000}
	switch i.Status {
	case "succeeded":
		p.State, p.ID = topup.Succeeded, i.ID
	case "requires_payment_method", "requires_action", "canceled":
		p.State = topup.Unsuccessful
		if i.Failure.Code == "authentication_required" || i.Status == "requires_action" {
			p.Pause = topup.PauseAuthentication
		}
	}
	return p
}
