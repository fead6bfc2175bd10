package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tollgate/internal/invoice"
	"tollgate/internal/topup"
	"tollgate/internal/topup/epay"
	"tollgate/internal/topup/stripe"
)

// paymentTimeout bounds one exchange with a payment provider.
const paymentTimeout = 20 * time.Second

// termsOf returns the terms of top-ups in the settings. The error is a *SettingError.
func termsOf(s *Settings) (topup.Terms, error) {
	p, err := topup.NewTerms(s.Topup)
	if e, ok := errors.AsType[*topup.TermsError](err); ok {
		return p, &SettingError{"topup_" + e.Field, e.Err}
	}
	return p, err
}

// checkPayments checks the settings of payments. Settings for only a part of a provider are an error,
// because a provider without its secret would accept forged messages.
func checkPayments(s *Settings) error {
	switch {
	case s.StripeKey != "" && s.StripeWebhookSecret == "":
		return &SettingError{"stripe_webhook_secret", errors.New("must be set, because stripe_key is set: create a webhook endpoint at Stripe " +
			"for the address in public_url with the path " + stripe.Path + ", and copy its signing secret")}
	case s.StripeKey == "" && s.StripeWebhookSecret != "":
		return &SettingError{"stripe_key", errors.New("must be set, because stripe_webhook_secret is set")}
	}
	if err := checkEPay(s); err != nil {
		return err
	}
	if _, err := termsOf(s); err != nil {
		return err
	}
	return checkInvoices(s)
}

// checkInvoices checks the settings of invoices.
func checkInvoices(s *Settings) error {
	terms, err := s.Invoice.Check()
	if e, ok := errors.AsType[*invoice.SellerTermsError](err); ok {
		return &SettingError{"invoice_" + e.Field, e.Err}
	}
	s.Invoice = terms
	return err
}

// checkEPay checks the settings of an EPay site.
func checkEPay(s *Settings) error {
	required := []struct{ key, value string }{{"epay_url", s.EPayURL}, {"epay_pid", s.EPayPID}, {"epay_key", s.EPayKey}}
	isOn := false
	for _, r := range required {
		isOn = isOn || r.value != ""
	}
	if !isOn {
		return nil
	}
	for _, r := range required {
		if r.value == "" {
			return &SettingError{r.key, errors.New("must be set, because another setting of EPay is set: address, pid and key are on the pages " +
				"of your EPay site")}
		}
	}
	if s.Topup.Currency != epay.CurrencyCode {
		return &SettingError{"topup_currency", errors.New("must be cny, because EPay sites take payments in CNY only")}
	}
	return nil
}

// startTopups starts the payments, if a provider is configured, and the invoices.
func (r *rooms) startTopups(context.Context) error {
	s := r.settings
	var providers []topup.PaymentProvider
	if s.StripeKey != "" {
		providers = append(providers, stripe.New(stripe.Options{URL: s.StripeURL, Key: s.StripeKey, Secret: s.StripeWebhookSecret,
			Tax: s.StripeTax, HTTP: r.guard.Client(paymentTimeout)}))
	}
	if s.EPayKey != "" {
		providers = append(providers, epay.New(epay.Options{URL: s.EPayURL, PID: s.EPayPID, Key: s.EPayKey, Methods: s.EPayMethods,
			Refunds: s.EPayRefunds, HTTP: r.guard.Client(paymentTimeout)}))
	}
	if len(providers) > 0 || s.Invoice.On() {
		r.invoices = &invoice.Issuer{Terms: s.Invoice, Mails: r.mails, PublicURL: r.Base()}
	}
	if len(providers) == 0 {
		return nil
	}
	terms, err := termsOf(s)
	if err != nil {
		return err
	}
	for _, p := range providers {
		if info := p.Info(); !info.Live {
			r.log.Warn("a payment provider is in test mode: test cards buy credit that can be spent", "provider", info.Name)
		}
	}
	r.topups = topup.New(topup.Options{DB: r.db, Terms: terms, Providers: providers, PublicURL: r.Base(),
		DisableOnDispute: s.TopupDisputeDisables, Webhooks: r.webhooks, Mails: r.mails, ForgetAccount: r.keys.ForgetAccount,
		Settled: r.invoices.IssueTx, AlertMail: s.AlertMail, Registry: r.metrics.Registry(), Log: r.log})
	r.life.loop("top-ups", r.topups.Run)
	return nil
}

// payments returns the handler of the providers' messages, or nil if customers cannot pay.
func (r *rooms) payments() http.Handler {
	if r.topups == nil {
		return nil
	}
	return r.topups.Handler()
}
