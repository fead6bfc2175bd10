// Package fakepayment owns fakes of payment providers: Stripe Checkout and an EPay site.
//
// Invariants: a fake refuses parameters and signatures that its original would refuse, keeps its state
// behind one lock, and sends messages signed as the original signs them.
package fakepayment

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Settings of a Stripe account.
const (
	StripeKey    = "sk_test_0123456789abcdef"
	StripeSecret = "whsec_0123456789abcdef0123456789abcdef"
)

// object is a JSON object of Stripe.
type object = map[string]any

// Stripe is a Stripe account with its API and its payment page.
type Stripe struct {
	URL string
	// Now is the clock of sessions and signatures.
	Now func() time.Time

	t        testing.TB
	mu       sync.Mutex
	next     int
	sessions []object // oldest first, like the other lists
	intents  map[string]object
	charges  []object          // the payment intents, oldest first
	methods  map[string]object // saved cards
	card     string            // the code with which charges of saved cards fail, or empty
	refunds  []object
	disputes []object
	saved    map[string]savedAnswer // by idempotency key
	events   []Event
	webhook  string      // address of the webhook endpoint; empty sends nothing
	down     int         // the status of all answers, if not 0
	noCards  bool        // the key may not read saved cards
	refusal  savedAnswer // of new sessions, if its status is not 0
	hook     func(method, path string)
	calls    map[string]int // answered calls by method and path without ids
}

type savedAnswer struct {
	params string
	status int
	body   object
}

// Event is a message of Stripe.
type Event struct {
	Type string
	Body []byte
}

// NewStripe starts an account.
func NewStripe(t testing.TB) *Stripe {
	s := &Stripe{t: t, Now: time.Now, intents: map[string]object{}, methods: map[string]object{},
		saved: map[string]savedAnswer{}, calls: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// SendTo sets the address of the webhook endpoint.
func (s *Stripe) SendTo(address string) { s.mu.Lock(); s.webhook = address; s.mu.Unlock() }

// SetDown makes all calls of the API answer with a status. Zero ends this.
func (s *Stripe) SetDown(status int) { s.mu.Lock(); s.down = status; s.mu.Unlock() }

// RefuseSessions makes Stripe refuse new sessions with a status and a code. The status 0 ends this.
func (s *Stripe) RefuseSessions(status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal.status = status
	_, s.refusal.body = failure(status, code, "Stripe says why.")
}

// OnCall sets a function that is called after each call of the API has had its effect and before it is
// answered.
func (s *Stripe) OnCall(hook func(method, path string)) { s.mu.Lock(); s.hook = hook; s.mu.Unlock() }

// Calls returns the number of answered calls of a method and path. Ids in the path are `{id}`.
func (s *Stripe) Calls(call string) int { s.mu.Lock(); defer s.mu.Unlock(); return s.calls[call] }

var pathID = regexp.MustCompile(`(cs_test|pi|re|dp|pm)_[0-9]+`)

func (s *Stripe) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/pay/") {
		s.page(w, r)
		return
	}
	_ = r.ParseForm()
	s.mu.Lock()
	status, body := s.answer(r)
	s.calls[r.Method+" "+pathID.ReplaceAllString(r.URL.Path, "{id}")]++
	hook := s.hook
	raw, err := json.Marshal(body) // before the hook changes the objects
	s.mu.Unlock()
	if err != nil {
		panic(err)
	}
	if hook != nil {
		hook(r.Method, r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

func failure(status int, code, message string) (int, object) {
	return status, object{"error": object{"code": code, "message": message, "type": "invalid_request_error"}}
}

func (s *Stripe) answer(r *http.Request) (int, object) {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case s.down != 0:
		return failure(s.down, "", "down")
	case key != StripeKey:
		return failure(http.StatusUnauthorized, "", "Invalid API Key provided")
	case r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") != "":
		saved, ok := s.saved[r.Header.Get("Idempotency-Key")]
		params := r.URL.Path + "?" + r.PostForm.Encode()
		if ok && saved.params != params {
			return http.StatusBadRequest, object{"error": object{"type": "idempotency_error",
				"message": "Keys for idempotent requests can only be used with the same parameters they were first used with."}}
		}
		if !ok {
			saved.params = params
			saved.status, saved.body = s.create(r)
			s.saved[r.Header.Get("Idempotency-Key")] = saved
		}
		return saved.status, saved.body
	case r.Method == http.MethodPost:
		return s.create(r)
	}
	return s.read(r)
}

// sessionParams are the parameters of a new session that the fake knows.
var sessionParams = regexp.MustCompile(`^(mode|client_reference_id|success_url|cancel_url|expires_at|customer_email|` +
	`metadata\[[\w-]+\]|payment_intent_data\[metadata\]\[[\w-]+\]|adaptive_pricing\[enabled\]|automatic_tax\[enabled\]|` +
	`customer_creation|payment_method_types\[0\]|payment_intent_data\[setup_future_usage\]|line_items\[0\]\[quantity\]|` +
	`line_items\[0\]\[price_data\]\[(currency|unit_amount|tax_behavior|product_data\]\[name)\])$`)

var refundParams = regexp.MustCompile(`^(payment_intent|amount|metadata\[[\w-]+\])$`)

func unknown(form url.Values, known *regexp.Regexp) string {
	for name, values := range form {
		if !known.MatchString(name) || len(values) != 1 || values[0] == "" {
			return name
		}
	}
	return ""
}

// metadataOf returns the metadata in a form.
func metadataOf(form url.Values, prefix string) object {
	data := object{}
	for name := range form {
		if rest, ok := strings.CutPrefix(name, prefix+"["); ok {
			data[strings.TrimSuffix(rest, "]")] = form.Get(name)
		}
	}
	return data
}

func (s *Stripe) create(r *http.Request) (int, object) {
	switch r.URL.Path {
	case "/v1/checkout/sessions":
		return s.createSession(r.PostForm)
	case "/v1/refunds":
		return s.createRefund(r.PostForm)
	case "/v1/payment_intents":
		return s.charge(r.PostForm)
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/payment_methods/"); ok {
		return s.detach(strings.TrimSuffix(id, "/detach"))
	}
	return failure(http.StatusNotFound, "", "Unrecognized request URL")
}

// Tax is the tax of a session with Stripe Tax, in percent.
const Tax = 20

func (s *Stripe) createSession(form url.Values) (int, object) {
	if name := unknown(form, sessionParams); name != "" {
		return failure(http.StatusBadRequest, "parameter_unknown", "Received unknown parameter: "+name)
	}
	amount, err := strconv.ParseInt(form.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	expires, err2 := strconv.ParseInt(form.Get("expires_at"), 10, 64)
	left := time.Unix(expires, 0).Sub(s.Now())
	switch {
	case err != nil || amount <= 0 || form.Get("mode") != "payment" || form.Get("line_items[0][quantity]") != "1":
		return failure(http.StatusBadRequest, "parameter_invalid", "Invalid line item")
	case s.refusal.status != 0:
		return s.refusal.status, s.refusal.body
	case err2 != nil || left < 30*time.Minute || left > 24*time.Hour:
		return failure(http.StatusBadRequest, "parameter_invalid", "expires_at must be between 30 minutes and 24 hours from now")
	case len(form.Get("client_reference_id")) > 200 || form.Get("success_url") == "":
		return failure(http.StatusBadRequest, "parameter_invalid", "Invalid parameter")
	}
	tax := int64(0)
	if form.Get("automatic_tax[enabled]") == "true" {
		tax = amount * Tax / 100
	}
	id := s.newID("cs_test_")
	session := object{"id": id, "object": "checkout.session", "url": s.URL + "/pay/" + id, "status": "open", "payment_status": "unpaid",
		"client_reference_id": form.Get("client_reference_id"), "metadata": metadataOf(form, "metadata"), "livemode": false,
		"currency": form.Get("line_items[0][price_data][currency]"), "amount_subtotal": amount, "amount_total": amount + tax,
		"total_details": object{"amount_tax": tax, "amount_discount": int64(0), "amount_shipping": int64(0)}, "payment_intent": nil,
		"saves_card": form.Get("payment_intent_data[setup_future_usage]") == "off_session" && form.Get("customer_creation") == "always",
		"customer":   nil, "created": s.Now().Unix(), "expires_at": expires, "success_url": form.Get("success_url"),
		"cancel_url":      form.Get("cancel_url"),
		"intent_metadata": metadataOf(form, "payment_intent_data[metadata]")}
	s.sessions = append(s.sessions, session)
	return http.StatusOK, copyOf(session)
}

func (s *Stripe) createRefund(form url.Values) (int, object) {
	if name := unknown(form, refundParams); name != "" {
		return failure(http.StatusBadRequest, "parameter_unknown", "Received unknown parameter: "+name)
	}
	intent := s.intents[form.Get("payment_intent")]
	amount, err := strconv.ParseInt(form.Get("amount"), 10, 64)
	if intent == nil || err != nil || amount <= 0 {
		return failure(http.StatusBadRequest, "resource_missing", "No such payment_intent")
	}
	left := intent["amount"].(int64)
	for _, r := range s.refunds {
		if r["payment_intent"] == intent["id"] && r["status"] != "failed" {
			left -= r["amount"].(int64)
		}
	}
	if amount > left {
		return failure(http.StatusBadRequest, "charge_already_refunded", "Refund amount is greater than unrefunded amount on charge")
	}
	refund := s.newRefund(intent, amount, metadataOf(form, "metadata"))
	return http.StatusOK, copyOf(refund)
}

func (s *Stripe) newRefund(intent object, amount int64, data object) object {
	refund := object{"id": s.newID("re_"), "object": "refund", "amount": amount, "currency": intent["currency"],
		"payment_intent": intent["id"], "status": "succeeded", "metadata": data, "created": s.Now().Unix()}
	s.refunds = append(s.refunds, refund)
	s.addEvent("refund.created", refund)
	s.addEvent("charge.refunded", object{"id": "ch_" + intent["id"].(string), "object": "charge", "payment_intent": intent["id"],
		"amount_refunded": amount, "metadata": object{}})
	return refund
}

// newID returns the next id. The caller holds the lock.
func (s *Stripe) newID(prefix string) string {
	s.next++
	return prefix + strconv.Itoa(1000+s.next)
}

func (s *Stripe) read(r *http.Request) (int, object) {
	query := r.URL.Query()
	switch {
	case s.noCards && strings.Contains(query.Get("expand[]"), "payment_method"):
		return failure(http.StatusForbidden, "", "The provided key does not have the required permissions for this endpoint")
	case r.URL.Path == "/v1/checkout/sessions":
		since, _ := strconv.ParseInt(query.Get("created[gte]"), 10, 64)
		return s.list(query, s.sessions, func(o object) bool { return o["created"].(int64) >= since })
	case r.URL.Path == "/v1/payment_intents":
		since, _ := strconv.ParseInt(query.Get("created[gte]"), 10, 64)
		return s.list(query, s.charges, func(o object) bool {
			return o["created"].(int64) >= since && (query.Get("customer") == "" || o["customer"] == query.Get("customer"))
		})
	case r.URL.Path == "/v1/refunds", r.URL.Path == "/v1/disputes":
		list := s.refunds
		if r.URL.Path == "/v1/disputes" {
			list = s.disputes
		}
		return s.list(query, list, func(o object) bool { return o["payment_intent"] == query.Get("payment_intent") })
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/payment_intents/"); ok && s.intents[id] != nil {
		return http.StatusOK, copyOf(s.intents[id])
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/checkout/sessions/"); ok {
		if session := find(s.sessions, id); session != nil {
			return http.StatusOK, s.expanded(session)
		}
	}
	return failure(http.StatusNotFound, "resource_missing", "No such object")
}

// expanded returns a session with its payment intent as an object.
func (s *Stripe) expanded(session object) object {
	session = copyOf(session)
	if id, ok := session["payment_intent"].(string); ok {
		intent := copyOf(s.intents[id])
		if m, ok := intent["payment_method"].(string); ok {
			intent["payment_method"] = copyOf(s.methods[m])
		}
		session["payment_intent"] = intent
	}
	return session
}

func (s *Stripe) list(query url.Values, all []object, selects func(object) bool) (int, object) {
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		return failure(http.StatusBadRequest, "parameter_invalid", "limit must be from 1 to 100")
	}
	data, started := []object{}, query.Get("starting_after") == ""
	for _, o := range slices.Backward(all) {
		if started && selects(o) {
			data = append(data, s.expanded(o))
		}
		started = started || o["id"] == query.Get("starting_after")
	}
	more := len(data) > limit
	return http.StatusOK, object{"object": "list", "data": data[:min(len(data), limit)], "has_more": more}
}

func find(list []object, id string) object {
	for _, o := range list {
		if o["id"] == id {
			return o
		}
	}
	return nil
}

func copyOf(o object) object {
	c := object{}
	for name, value := range o {
		c[name] = value
	}
	return c
}

// page is the payment page of a session.
func (s *Stripe) page(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/pay/")
	s.mu.Lock()
	session := find(s.sessions, id)
	s.mu.Unlock()
	if session == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost {
		s.Pay(id)
		http.Redirect(w, r, session["success_url"].(string), http.StatusSeeOther)
		return
	}
	fmt.Fprintf(w, `<!doctype html><title>Pay</title><h1>Pay %v %v</h1><form method="post"><button>Pay</button></form><a href="%s">Back</a>`,
		session["amount_total"], session["currency"], html.EscapeString(session["cancel_url"].(string)))
}

// addEvent records a message. The caller holds the lock and calls send afterwards.
func (s *Stripe) addEvent(kind string, o object) {
	body, err := json.Marshal(object{"id": s.newID("evt_"), "object": "event", "type": kind, "api_version": "2026-08-26.dahlia",
		"created": s.Now().Unix(), "livemode": false, "data": object{"object": copyOf(o)}})
	if err != nil {
		panic(err) // a bug of the fake
	}
	s.events = append(s.events, Event{kind, body})
}

// Events returns all messages so far, in order.
func (s *Stripe) Events() []Event { s.mu.Lock(); defer s.mu.Unlock(); return slices.Clone(s.events) }

// Sign returns the header Stripe-Signature of a body.
func Sign(secret string, body []byte, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s,v0=00", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// Send sends a message to the endpoint and returns the status of the answer, or 0 without an answer.
func (s *Stripe) Send(e Event) int {
	s.mu.Lock()
	address := s.webhook
	s.mu.Unlock()
	if address == "" {
		return 0
	}
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(e.Body))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	req.Header.Set("Stripe-Signature", Sign(StripeSecret, e.Body, s.Now()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// change runs a change and sends its messages.
func (s *Stripe) change(fn func()) {
	s.mu.Lock()
	before := len(s.events)
	fn()
	events := slices.Clone(s.events[before:])
	s.mu.Unlock()
	for _, e := range events {
		s.Send(e)
	}
}

// complete completes a session. A delayed payment is not paid yet.
func (s *Stripe) complete(id string, paid bool) {
	session := find(s.sessions, id)
	if session == nil || session["status"] != "open" {
		return
	}
	intent := object{"id": s.newID("pi_"), "object": "payment_intent", "status": "processing", "amount": session["amount_total"],
		"currency": session["currency"], "metadata": session["intent_metadata"], "livemode": false,
		"created": s.Now().Unix(), "amount_received": int64(0), "customer": nil, "payment_method": nil}
	if session["saves_card"] == true {
		session["customer"] = s.newID("cus_")
		m := object{"id": s.newID("pm_"), "object": "payment_method", "type": "card", "customer": session["customer"],
			"card": object{"brand": "visa", "last4": "4242"}}
		s.methods[m["id"].(string)] = m
		intent["customer"], intent["payment_method"] = session["customer"], m["id"]
	}
	s.intents[intent["id"].(string)] = intent
	s.charges = append(s.charges, intent)
	session["payment_intent"], session["status"] = intent["id"], "complete"
	if paid {
		intent["status"], session["payment_status"] = "succeeded", "paid"
		s.addEvent("payment_intent.succeeded", intent)
	}
	s.addEvent("checkout.session.completed", session)
}

// Pay pays a session.
func (s *Stripe) Pay(session string) { s.change(func() { s.complete(session, true) }) }

// PayLater completes a session with a delayed method.
func (s *Stripe) PayLater(session string) { s.change(func() { s.complete(session, false) }) }

// EndDelay ends the delay of a session.
func (s *Stripe) EndDelay(session string, paid bool) {
	s.change(func() {
		o := find(s.sessions, session)
		intent := s.intents[o["payment_intent"].(string)]
		if !paid {
			intent["status"] = "requires_payment_method"
			s.addEvent("checkout.session.async_payment_failed", o)
			return
		}
		intent["status"], o["payment_status"] = "succeeded", "paid"
		s.addEvent("checkout.session.async_payment_succeeded", o)
	})
}

// Expire ends an open session.
func (s *Stripe) Expire(session string) {
	s.change(func() {
		if o := find(s.sessions, session); o["status"] == "open" {
			o["status"], o["url"] = "expired", nil
			s.addEvent("checkout.session.expired", o)
		}
	})
}

// Set changes a field of a session without a message.
func (s *Stripe) Set(session, field string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	find(s.sessions, session)[field] = value
}

// RefundElsewhere refunds a part of a session's payment on Stripe's own pages, and returns the refund.
func (s *Stripe) RefundElsewhere(session string, amount int64) (id string) {
	s.change(func() {
		intent := s.intents[find(s.sessions, session)["payment_intent"].(string)]
		id = s.newRefund(intent, amount, object{})["id"].(string)
	})
	return id
}

// FailRefund makes a refund fail.
func (s *Stripe) FailRefund(id string) {
	s.change(func() {
		r := find(s.refunds, id)
		r["status"] = "failed"
		s.addEvent("refund.failed", r)
	})
}

// Refunds returns the number of refunds that have not failed.
func (s *Stripe) Refunds() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.refunds {
		if r["status"] != "failed" {
			n++
		}
	}
	return n
}

// DisputeTime is the time for the answer to a dispute.
const DisputeTime = 7 * 24 * time.Hour

// Dispute opens a dispute about the whole payment of a session, and returns its id.
func (s *Stripe) Dispute(session, status string) (id string) {
	s.change(func() {
		intent := s.intents[find(s.sessions, session)["payment_intent"].(string)]
		d := object{"id": s.newID("dp_"), "object": "dispute", "amount": intent["amount"], "payment_intent": intent["id"],
			"status": status, "metadata": object{}, "evidence_details": object{"due_by": s.Now().Add(DisputeTime).Unix()}}
		s.disputes, id = append(s.disputes, d), d["id"].(string)
		s.addEvent("charge.dispute.created", d)
	})
	return id
}

// EndDispute decides a dispute.
func (s *Stripe) EndDispute(id, status string) {
	s.change(func() {
		d := find(s.disputes, id)
		d["status"] = status
		s.addEvent("charge.dispute.closed", d)
	})
}

// Session returns the id of the newest session of a top-up, or an empty string.
func (s *Stripe) Session(topup string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.sessions) {
		if o["client_reference_id"] == topup {
			return o["id"].(string)
		}
	}
	return ""
}

// Sessions returns the number of sessions.
func (s *Stripe) Sessions() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sessions) }
