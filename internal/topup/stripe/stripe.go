// Package stripe owns the payments of Stripe Checkout: the calls of Stripe's API that a top-up needs, and
// the signature of Stripe's messages.
//
// Invariants: the metadata of a session and of its payment name the top-up. A message must have a valid
// signature, and only names the object to read again. Each call that creates something has an idempotency
// key made of our ids. No secret is in an error.
package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/topup"
)

// apiVersion is the version of Stripe's API that this package reads.
const apiVersion = "2026-08-26.dahlia"

// Path is the path of Stripe's messages.
const Path = topup.Base + "/stripe/webhook"

// Name is the name of the provider.
const Name = "stripe"

// DefaultURL is the base address of Stripe's API.
const DefaultURL = "https://api.stripe.com"

// Options configure a Service. All fields but Tax and Now are required.
type Options struct {
	URL    string // base address of the API
	Key    string // sk_… or rk_…; see CheckKey
	Secret string // of the webhook endpoint: whsec_…
	Tax    bool   // Stripe Tax computes a tax on top of the amount
	HTTP   *http.Client
	// Now is the clock for the age of messages. If nil, time.Now is used.
	Now func() time.Time
}

// Service implements topup.CardProvider for Stripe.
type Service struct {
	o    Options
	live bool
}

// New returns a service. The key must have passed CheckKey and the secret CheckSecret.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.URL = strings.TrimRight(o.URL, "/")
	return &Service{o, strings.HasPrefix(o.Key[2:], "_live_")}
}

// CheckKey returns an error unless a text looks like a secret or restricted key of Stripe.
func CheckKey(key string) error {
	for _, prefix := range []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"} {
		if len(key) > len(prefix) && strings.HasPrefix(key, prefix) {
			return nil
		}
	}
	return errors.New("must be a secret or restricted key of Stripe: sk_live_…, rk_live_…, sk_test_… or rk_test_…")
}

// CheckSecret returns an error unless a text looks like the signing secret of a webhook endpoint.
func CheckSecret(secret string) error {
	if rest, ok := strings.CutPrefix(secret, "whsec_"); !ok || len(rest) < 16 {
		return errors.New("must be the signing secret of Stripe's webhook endpoint: whsec_…")
	}
	return nil
}

// Info implements topup.PaymentProvider.
func (c *Service) Info() topup.ProviderInfo {
	return topup.ProviderInfo{Name: Name, Title: "Stripe", Path: Path, Live: c.live,
		SavesCards: !c.o.Tax} // a charge of a saved card has no Stripe Tax
}

// Acknowledge implements topup.PaymentProvider.
func (c *Service) Acknowledge(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }

// Keys of Stripe's metadata. Their values are the id of the top-up, a mark of the payment intents of automatic
// top-ups, and the id of an operator's refund.
const (
	metadata  = "tollgate-topup"
	automatic = "tollgate-automatic"
	refundKey = "tollgate-refund"
)

// Begin implements topup.PaymentProvider. It creates a Checkout session. A wrong key or a missing
// permission is a refusal, because the customer waits.
func (c *Service) Begin(ctx context.Context, o topup.Order) (topup.Checkout, error) {
	q := url.Values{
		"mode":                       {"payment"},
		"client_reference_id":        {o.ID},
		"metadata[" + metadata + "]": {o.ID},
		"payment_intent_data[metadata][" + metadata + "]": {o.ID},
		"line_items[0][quantity]":                         {"1"},
		"line_items[0][price_data][currency]":             {o.Currency.Code},
		"line_items[0][price_data][unit_amount]":          {strconv.FormatInt(o.Minor, 10)},
		"line_items[0][price_data][product_data][name]":   {"API credit"},
		"success_url":               {o.ReturnURL},
		"cancel_url":                {o.ReturnURL},
		"expires_at":                {strconv.FormatInt(o.ExpiresMS/1000, 10)},
		"adaptive_pricing[enabled]": {"false"},
	}
	if o.Email != "" {
		q.Set("customer_email", o.Email)
	}
	if o.SavesCard {
		q.Set("customer_creation", "always")
		q.Set("payment_method_types[0]", "card")
		q.Set("payment_intent_data[setup_future_usage]", "off_session")
	}
	if c.o.Tax {
		q.Set("automatic_tax[enabled]", "true")
		q.Set("line_items[0][price_data][tax_behavior]", "exclusive")
	}
	var s session
	err := c.call(ctx, http.MethodPost, "/v1/checkout/sessions", q, o.ID, &s)
	if e, ok := errors.AsType[*statusError](err); ok {
		switch {
		case e.kind == keyReused:
			s, err = c.earlierSession(ctx, o, err)
		case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
			err = e.refusal()
		}
	}
	return topup.Checkout{Session: s.ID, Address: s.URL}, err
}

// keyReused is the type of the error about a repeated idempotency key with other parameters.
const keyReused = "idempotency_error"

// earlierSession returns the session that an earlier call created for an order. The answer to that call was
// lost, and then the settings or the customer's address have changed. Without such a session,
// earlierSession returns refusal.
func (c *Service) earlierSession(ctx context.Context, o topup.Order, refusal error) (session, error) {
	sessions, err := all[session](ctx, c, "/v1/checkout/sessions", since(o.CreatedMS), topup.MaxListed)
	if err != nil {
		return session{}, err
	}
	for _, s := range sessions {
		if s.Metadata[metadata] == o.ID {
			return s, nil
		}
	}
	return session{}, refusal
}

// since selects the objects of a list that were created after a time, in Unix milliseconds, with a margin for
// the difference between the clocks of the database and of Stripe.
func since(ms int64) url.Values {
	const margin = time.Hour
	return url.Values{"created[gte]": {strconv.FormatInt((ms-margin.Milliseconds())/1000, 10)}}
}

// session is a Checkout session.
type session struct {
	ID            string            `json:"id"`
	URL           string            `json:"url"`
	Status        string            `json:"status"`         // open, complete or expired
	PaymentStatus string            `json:"payment_status"` // paid, unpaid or no_payment_required
	Reference     string            `json:"client_reference_id"`
	Metadata      map[string]string `json:"metadata"`
	Currency      string            `json:"currency"`
	Total         int64             `json:"amount_total"`
	Details       struct {
		Tax int64 `json:"amount_tax"`
	} `json:"total_details"`
	Customer string  `json:"customer"`
	Intent   *intent `json:"payment_intent"`
	Live     bool    `json:"livemode"`
	Created  int64   `json:"created"`
}

// intent is a payment intent. Stripe sends only the id, unless a call expands the intent.
type intent struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Live     bool              `json:"livemode"`
	Currency string            `json:"currency"`
	Received int64             `json:"amount_received"`
	Created  int64             `json:"created"`
	Failure  struct {
		Code string `json:"code"`
	} `json:"last_payment_error"`
	Method *method `json:"payment_method"`
}

// method is a payment method. Stripe sends only the id, unless a call expands the method.
type method struct {
	ID   string `json:"id"`
	Card struct {
		Brand string `json:"brand"`
		Last  string `json:"last4"`
	} `json:"card"`
}

// UnmarshalJSON reads an id or an object.
func (m *method) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &m.ID)
	}
	type plain method
	return json.Unmarshal(raw, (*plain)(m))
}

// UnmarshalJSON reads an id or an object.
func (i *intent) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &i.ID)
	}
	type plain intent
	return json.Unmarshal(raw, (*plain)(i))
}

// Query implements topup.PaymentProvider.
func (c *Service) Query(ctx context.Context, t topup.Topup) (topup.ProviderPayment, error) {
	if t.Session == "" {
		return topup.ProviderPayment{State: topup.Missing}, nil
	}
	p, err := c.readPayment(ctx, t)
	if isMissing(err) {
		return topup.ProviderPayment{State: topup.Missing}, nil
	}
	if err != nil || p.State != topup.Succeeded {
		return p, err
	}
	filter := url.Values{"payment_intent": {p.ID}}
	refunds, err := all[refund](ctx, c, "/v1/refunds", filter, topup.MaxListed)
	if err != nil {
		return topup.ProviderPayment{}, err
	}
	for _, r := range refunds {
		p.Refunds = append(p.Refunds, topup.ProviderRefund{ID: r.ID, Key: r.Metadata[refundKey], Minor: r.Amount,
			Failed: r.Status == "failed" || r.Status == "canceled"})
	}
	disputes, err := all[dispute](ctx, c, "/v1/disputes", filter, topup.MaxListed)
	if err != nil {
		return topup.ProviderPayment{}, err
	}
	for _, d := range disputes {
		p.Disputes = append(p.Disputes, d.report())
	}
	return p, nil
}

// readPayment reads the payment of a top-up without its refunds and disputes. The session of an automatic
// top-up is a payment intent.
func (c *Service) readPayment(ctx context.Context, t topup.Topup) (topup.ProviderPayment, error) {
	if t.IsAutomatic() {
		var i intent
		err := c.call(ctx, http.MethodGet, "/v1/payment_intents/"+url.PathEscape(t.Session), url.Values{}, "", &i)
		return i.payment(), err
	}
	expand := "payment_intent"
	if t.SavesCard { // needs another permission of a restricted key
		expand = "payment_intent.payment_method"
	}
	var s session
	err := c.call(ctx, http.MethodGet, "/v1/checkout/sessions/"+url.PathEscape(t.Session), url.Values{"expand[]": {expand}}, "", &s)
	p := s.payment()
	if s.Intent != nil && s.Intent.Method != nil && s.Customer != "" {
		m := s.Intent.Method
		p.Card = topup.Card{Customer: s.Customer, ID: m.ID, Brand: m.Card.Brand, Last: m.Card.Last}
	}
	return p, err
}

// payment returns the payment of a session.
func (s session) payment() topup.ProviderPayment {
	p := topup.ProviderPayment{Topup: s.Reference, Session: s.ID, State: topup.Open, Live: s.Live, Currency: s.Currency, Total: s.Total,
		Amount: s.Total - s.Details.Tax, CreatedMS: s.Created * 1000}
	if s.Intent == nil {
		s.Intent = &intent{}
	}
	switch {
	case s.Status == "complete" && s.PaymentStatus == "paid":
		p.State, p.ID = topup.Succeeded, s.Intent.ID
	case s.Status == "expired":
		p.State = topup.Lapsed
	case s.Status == "complete" && (s.Intent.Status == "requires_payment_method" || s.Intent.Status == "canceled"):
		p.State = topup.Unsuccessful // a delayed method has failed
	}
	return p
}

// refund is Stripe's object of a refund.
type refund struct {
	ID       string            `json:"id"`
	Amount   int64             `json:"amount"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Created  int64             `json:"created"`
}

// dispute is Stripe's object of a dispute.
type dispute struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
	Status string `json:"status"`
	// Evidence has the deadline of the answer in Unix seconds; 0 if none is needed.
	Evidence struct {
		Due int64 `json:"due_by"`
	} `json:"evidence_details"`
}

// report returns the dispute for topup. An inquiry (warning_…) takes no money.
func (d dispute) report() topup.ProviderDispute {
	p := topup.ProviderDispute{ID: d.ID, Minor: d.Amount}
	if strings.HasSuffix(d.Status, "needs_response") {
		p.DueMS = d.Evidence.Due * 1000
	}
	switch d.Status {
	case "needs_response", "under_review":
		p.Taken, p.Open = true, true
	case "lost":
		p.Taken = true
	case "warning_needs_response", "warning_under_review":
		p.Open = true
	}
	return p
}

// Refund implements topup.PaymentProvider.
func (c *Service) Refund(ctx context.Context, t topup.Topup, minor int64, key string) error {
	existing, err := all[refund](ctx, c, "/v1/refunds", url.Values{"payment_intent": {t.Payment}}, topup.MaxListed)
	if err != nil {
		return err
	}
	for _, r := range existing { // Stripe forgets an idempotency key after a day
		if r.Metadata[refundKey] == key {
			return nil
		}
	}
	var r refund
	return c.call(ctx, http.MethodPost, "/v1/refunds", url.Values{"payment_intent": {t.Payment}, "amount": {strconv.FormatInt(minor, 10)},
		"metadata[" + refundKey + "]": {key}, "metadata[" + metadata + "]": {t.ID}}, key, &r)
}

// List implements topup.PaymentProvider.
func (c *Service) List(ctx context.Context, sinceMS int64) ([]topup.ProviderPayment, error) {
	sessions, err := all[session](ctx, c, "/v1/checkout/sessions",
		url.Values{"created[gte]": {strconv.FormatInt(sinceMS/1000, 10)}, "expand[]": {"data.payment_intent"}}, topup.MaxListed)
	if err != nil {
		return nil, err
	}
	intents, err := all[intent](ctx, c, "/v1/payment_intents", url.Values{"created[gte]": {strconv.FormatInt(sinceMS/1000, 10)}},
		topup.MaxListed)
	if err != nil {
		return nil, err
	}
	var list []topup.ProviderPayment
	for _, i := range intents {
		if i.Metadata[automatic] != "" {
			list = append(list, i.payment())
		}
	}
	for _, s := range sessions {
		if s.Metadata[metadata] != "" {
			list = append(list, s.payment())
		}
	}
	return list, nil
}

// item is an object of a list.
type item interface{ identifier() string }

func (r refund) identifier() string  { return r.ID }
func (d dispute) identifier() string { return d.ID }
func (s session) identifier() string { return s.ID }
func (i intent) identifier() string  { return i.ID }

// pageSize is the largest page of Stripe's lists.
const pageSize = 100

// all reads a list, oldest first. It returns an error if the list goes on after limit objects, rounded up
// to a page.
func all[T item](ctx context.Context, c *Service, path string, q url.Values, limit int) (list []T, err error) {
	q.Set("limit", strconv.Itoa(pageSize))
	for {
		var page struct {
			Data []T  `json:"data"`
			More bool `json:"has_more"`
		}
		if err := c.call(ctx, http.MethodGet, path, q, "", &page); err != nil {
			return nil, err
		}
		list = append(list, page.Data...)
		if !page.More || len(page.Data) == 0 {
			break
		}
		if len(list) >= limit {
			return nil, fmt.Errorf("read %s: more than %d objects", path, limit)
		}
		q.Set("starting_after", page.Data[len(page.Data)-1].identifier())
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 { // Stripe lists the newest first
		list[i], list[j] = list[j], list[i]
	}
	return list, nil
}

// maxAnswer bounds an answer of the API, in bytes.
const maxAnswer = 4 << 20

// call sends a call and reads its answer. An error wraps topup.ErrRefused if a repetition cannot succeed.
func (c *Service) call(ctx context.Context, method, path string, q url.Values, key string, answer any) error {
	header := http.Header{"Authorization": {"Bearer " + c.o.Key}, "Stripe-Version": {apiVersion}}
	if method == http.MethodPost {
		header.Set("Idempotency-Key", key)
	}
	status, raw, err := topup.ProviderCall{Method: method, URL: c.o.URL + path, Params: q, Header: header, MaxAnswer: maxAnswer}.
		Send(ctx, c.o.HTTP)
	switch {
	case err != nil:
		return fmt.Errorf("call stripe: %s: %w", path, err)
	case status != http.StatusOK:
		return callError(path, status, raw)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("call stripe: the answer of %s is not valid: %w", path, err)
	}
	return nil
}

// callError returns the error of a failed call. A wrong key (401, 403), a conflict (409) and too many
// calls (429) can be cured, so such a call is repeated.
func callError(path string, status int, raw []byte) error {
	var answer struct {
		Error struct {
			Type    string `json:"type"`
			Code    string `json:"code"`
			Param   string `json:"param"`
			Message string `json:"message"`
			Intent  intent `json:"payment_intent"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &answer) // the status alone is enough
	e := answer.Error
	err := &statusError{path: path, status: status, kind: e.Type, code: cmp.Or(e.Code, e.Param, e.Type), message: e.Message,
		intent: e.Intent.ID}
	if status == http.StatusBadRequest || status == http.StatusPaymentRequired {
		return err.refusal()
	}
	return err
}

// statusError is the answer to a failed call.
type statusError struct {
	path    string
	status  int
	kind    string // the error's type
	code    string // or, without a code, the faulty parameter or the type
	message string
	intent  string // id of the payment intent that failed; may be empty
}

// refusal returns the error as a final refusal.
func (e *statusError) refusal() error {
	return &topup.RefusalError{Code: strings.TrimSpace(strconv.Itoa(e.status) + " " + e.code), Err: e}
}

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("call stripe: %s answers %d %s: %.300s", e.path, e.status, e.code, e.message)
}

// isMissing reports whether a call asked for an unknown object.
func isMissing(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.status == http.StatusNotFound
}
