package admin

import (
	"encoding/json"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// webhookAnswer is an account's webhook (operator.md, Operator API). An address or level that is
// not set is null.
type webhookAnswer struct {
	URL    *string      `json:"url"`
	Events []string     `json:"events"`
	Low    *json.Number `json:"balance_low_credits"`
	Secret string       `json:"secret"`
}

// webhookTx returns an account's endpoint from package webhook and its balance alert from the ledger.
func webhookTx(tx *store.Tx, id string) (webhookAnswer, error) {
	e, err := webhook.EndpointTx(tx, id)
	if err != nil {
		return webhookAnswer{}, err
	}
	level, set, err := ledger.LowTx(tx, id)
	if err != nil {
		return webhookAnswer{}, err
	}
	out := webhookAnswer{URL: nilIfZero(e.URL), Events: append([]string{}, e.Events...), Secret: e.Secret}
	if set {
		credits := level.Credits()
		out.Low = &credits
	}
	return out, nil
}

// getWebhook is a change, because accounts from before webhooks existed get their secret here.
func (s *server) getWebhook(c *call) (any, error) {
	return change(s, c, func(tx *store.Tx) (any, error) {
		if _, err := account.GetTx(tx, c.id); err != nil {
			return nil, err
		}
		return webhookTx(tx, c.id)
	})
}

func (s *server) putWebhook(c *call) (any, error) {
	body, err := c.readObject()
	if err != nil {
		return nil, err
	}
	e, low, secret, err := readWebhook(body)
	if err != nil {
		return nil, err
	}
	return change(s, c, func(tx *store.Tx) (any, error) {
		err := operator.ChangeWebhookTx(tx, s.actor(c), c.id, func() error { return s.putWebhookTx(tx, c.id, e, low, secret) })
		if err != nil {
			return nil, err
		}
		return webhookTx(tx, c.id)
	})
}

// putWebhookTx sets an account's webhook.
func (s *server) putWebhookTx(tx *store.Tx, id string, e webhook.Endpoint, low *money.Amount, secret *string) error {
	current, err := webhook.EndpointTx(tx, id)
	if err != nil {
		return err
	}
	if secret != nil && *secret != current.Secret {
		return fault.At(fault.InvalidRequest, "secret", "secret cannot be set, only rolled: leave it out, or send the one that GET shows.")
	}
	if e.Events == nil { // optional if the webhook is switched off
		e.Events = current.Events
	}
	if err := ledger.SetLowTx(tx, id, low); err != nil {
		return err
	}
	_, err = s.Webhooks.PutEndpointTx(tx, id, e)
	return err
}

// readWebhook decodes the body of a PUT. A missing balance_low_credits means no alert.
func readWebhook(body object) (e webhook.Endpoint, low *money.Amount, secret *string, err error) {
	var address *string
	if err := body.decode(
		field{name: "url", must: "an address, or null to switch off", set: setter(func(v string) { address = &v })},
		textsField("events", &e.Events),
		field{name: "balance_low_credits", must: "a number of credits from 0 to 200000000000, with at most 7 decimals",
			set: func(raw json.RawMessage) bool { low = parseCredits(raw); return low != nil }},
		optionalTextField("secret", &secret),
	); err != nil {
		return e, nil, nil, err
	}
	_, hasURL := body.members["url"]
	switch {
	case !hasURL, address != nil && *address == "":
		return e, nil, nil, fault.At(fault.InvalidRequest, "url",
			"url is required: the address that receives events, or null to switch them off.")
	case address != nil && e.Events == nil:
		return e, nil, nil, fault.At(fault.InvalidRequest, "events", "events is required with an address: a list of the types that it receives.")
	case address != nil:
		e.URL = *address
	}
	return e, low, secret, nil
}

// parseCredits reads a JSON number of credits exactly. It returns nil if the number is invalid or
// negative.
func parseCredits(raw json.RawMessage) *money.Amount {
	var number json.Number
	if raw[0] == '"' || json.Unmarshal(raw, &number) != nil {
		return nil
	}
	amount, err := money.ParseCredits(number.String())
	if err != nil || amount < 0 {
		return nil
	}
	return &amount
}

func (s *server) rollWebhook(c *call) (any, error) {
	return s.update(c, object{}, func(tx *store.Tx) (any, error) {
		if err := operator.RollWebhookTx(tx, s.actor(c), c.id); err != nil {
			return nil, err
		}
		return webhookTx(tx, c.id)
	})
}

// testAnswer is a receiver's response to a test.
type testAnswer struct {
	Status     *int   `json:"status_code"` // null if the receiver did not answer
	ResponseMS int64  `json:"response_ms"`
	Error      string `json:"error,omitempty"`
}

func (s *server) testWebhook(c *call) (any, error) {
	if _, err := view(s, c, func(tx *store.Tx) (account.Account, error) { return account.GetTx(tx, c.id) }); err != nil {
		return nil, err
	}
	result, err := s.Webhooks.Test(c.ctx, c.id)
	if err != nil {
		return nil, err
	}
	return testAnswer{nilIfZero(result.Status), result.ResponseMS, result.Error}, nil
}

// deliveryAnswer is a delivery (operator.md, Operator API).
type deliveryAnswer struct {
	ID       string          `json:"id"`
	Event    string          `json:"event_id"`
	Type     string          `json:"type"`
	URL      string          `json:"url"`
	State    string          `json:"state"`
	Attempts []attemptAnswer `json:"attempts"`
	Next     int64           `json:"next_attempt_at,omitempty"`
	Created  int64           `json:"created"`
}

type attemptAnswer struct {
	At         int64  `json:"at"`
	Status     int    `json:"status_code,omitempty"`
	ResponseMS int64  `json:"response_ms"`
	Error      string `json:"error,omitempty"`
}

func showDelivery(d webhook.Delivery) deliveryAnswer {
	out := deliveryAnswer{ID: d.ID, Event: d.Event, Type: d.Type, URL: d.URL, State: d.State, Next: seconds(d.NextMS),
		Created: seconds(d.CreatedMS), Attempts: make([]attemptAnswer, len(d.Attempts))}
	for i, a := range d.Attempts {
		out.Attempts[i] = attemptAnswer{At: seconds(a.AtMS), Status: a.Status, ResponseMS: a.TookMS, Error: a.Error}
	}
	return out
}

func (s *server) listDeliveries(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		if _, err := account.GetTx(tx, c.id); err != nil {
			return nil, err
		}
		items, more, err := s.Webhooks.DeliveriesTx(tx, c.id, after, limit)
		return newList(items, more, showDelivery), err
	})
}

func (s *server) resendDelivery(c *call) (any, error) {
	d, err := operator.Resend(c.ctx, s.DB, s.Webhooks, s.actor(c), c.id)
	if err != nil {
		return nil, err
	}
	return showDelivery(d), nil
}
