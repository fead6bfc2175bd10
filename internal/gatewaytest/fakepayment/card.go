package fakepayment

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
)

// FailCharges makes charges of saved cards fail with a code, such as card_declined or
// authentication_required. An empty code ends this.
func (s *Stripe) FailCharges(code string) { s.mu.Lock(); s.card = code; s.mu.Unlock() }

// Charges returns the number of charges of saved cards that succeeded.
func (s *Stripe) Charges() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.charges {
		if i["off_session"] == true && i["status"] == "succeeded" {
			n++
		}
	}
	return n
}

// Cards returns the number of saved cards.
func (s *Stripe) Cards() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.methods) }

// DisputeIntent opens a dispute about a payment intent.
func (s *Stripe) DisputeIntent(id, status string) {
	s.change(func() {
		d := object{"id": s.newID("dp_"), "object": "dispute", "amount": s.intents[id]["amount"], "payment_intent": id, "status": status,
			"metadata": object{}}
		s.disputes = append(s.disputes, d)
		s.addEvent("charge.dispute.created", d)
	})
}

// HideCards takes the permission for payment methods from the key, so that no call may expand one.
func (s *Stripe) HideCards() { s.mu.Lock(); s.noCards = true; s.mu.Unlock() }

// ForgetKeys makes Stripe forget all idempotency keys, as it does after a day.
func (s *Stripe) ForgetKeys() { s.mu.Lock(); clear(s.saved); s.mu.Unlock() }

var chargeParams = regexp.MustCompile(`^(amount|currency|customer|payment_method|off_session|confirm|description|metadata\[[\w-]+\])$`)

// charge creates and confirms a payment intent with a saved card.
func (s *Stripe) charge(form url.Values) (int, object) {
	if name := unknown(form, chargeParams); name != "" {
		return failure(http.StatusBadRequest, "parameter_unknown", "Received unknown parameter: "+name)
	}
	amount, err := strconv.ParseInt(form.Get("amount"), 10, 64)
	m := s.methods[form.Get("payment_method")]
	switch {
	case err != nil || amount <= 0 || form.Get("off_session") != "true" || form.Get("confirm") != "true":
		return failure(http.StatusBadRequest, "parameter_invalid", "Invalid parameter")
	case m == nil || m["customer"] != form.Get("customer"):
		return failure(http.StatusBadRequest, "resource_missing", "No such PaymentMethod")
	}
	intent := object{"id": s.newID("pi_"), "object": "payment_intent", "status": "succeeded", "amount": amount, "amount_received": amount,
		"currency": form.Get("currency"), "metadata": metadataOf(form, "metadata"), "livemode": false, "created": s.Now().Unix(),
		"customer": form.Get("customer"), "payment_method": m["id"], "off_session": true, "last_payment_error": nil}
	s.intents[intent["id"].(string)] = intent
	s.charges = append(s.charges, intent)
	if s.card == "" {
		s.addEvent("payment_intent.succeeded", intent)
		return http.StatusOK, copyOf(intent)
	}
	intent["status"], intent["amount_received"] = "requires_payment_method", int64(0)
	intent["last_payment_error"] = object{"code": s.card, "type": "card_error"}
	s.addEvent("payment_intent.payment_failed", intent)
	return http.StatusPaymentRequired, object{"error": object{"code": s.card, "type": "card_error", "message": "Your card was declined.",
		"payment_intent": copyOf(intent)}}
}

// detach removes a saved card.
func (s *Stripe) detach(id string) (int, object) {
	m := s.methods[id]
	if m == nil {
		return failure(http.StatusBadRequest, "payment_method_unexpected_state", "The payment method is not attached to a customer")
	}
	delete(s.methods, id)
	return http.StatusOK, copyOf(m)
}
