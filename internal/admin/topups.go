package admin

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/sheet"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// topupAnswer is a top-up (operator.md, Operator API). Amount and Total are decimal numbers in the currency of
// the payment.
type topupAnswer struct {
	ID        string           `json:"id"`
	Account   string           `json:"account"`
	Provider  string           `json:"provider"`
	Method    *string          `json:"method"`
	State     topup.TopupState `json:"state"`
	Test      bool             `json:"test"`
	Automatic bool             `json:"automatic"`
	Currency  string           `json:"currency"`
	Amount    string           `json:"amount"`
	Total     *string          `json:"total"`
	Credit    money.Amount     `json:"credit_usd"`
	Rate      money.Amount     `json:"rate_usd"`
	Payment   *string          `json:"payment"`
	Created   int64            `json:"created"`
	Paid      *int64           `json:"paid"`
}

func showTopup(t topup.Topup) topupAnswer {
	a := topupAnswer{ID: t.ID, Account: t.Account, Provider: t.Provider, Method: nilIfZero(t.Method), State: t.State, Test: !t.Live,
		Automatic: t.IsAutomatic(), Currency: t.Currency.Code, Amount: t.Currency.Decimal(t.Minor), Credit: t.Credit, Rate: money.Amount(t.Rate),
		Payment: nilIfZero(t.Payment), Created: seconds(t.CreatedMS), Paid: nilIfZero(seconds(t.PaidMS))}
	if t.IsPaid() {
		a.Total = new(t.Currency.Decimal(t.Total))
	}
	return a
}

// reversalAnswer is a refund or a dispute. State is requested, active (the money is with the customer) or ended.
type reversalAnswer struct {
	ID      string             `json:"id"`
	Kind    topup.ReversalKind `json:"kind"`
	State   string             `json:"state"`
	Amount  string             `json:"amount"`
	Credit  money.Amount       `json:"credit_usd"`
	Reason  *string            `json:"reason"`
	Created int64              `json:"created"`
}

// wholeTopupAnswer is a top-up with its refunds and disputes.
type wholeTopupAnswer struct {
	topupAnswer
	Reversals []reversalAnswer `json:"reversals"`
}

func showReversal(t topup.Topup, r topup.Reversal) reversalAnswer {
	state := "ended"
	switch {
	case r.Requested:
		state = "requested"
	case r.Active:
		state = "active"
	}
	return reversalAnswer{ID: r.ID, Kind: r.Kind, State: state, Amount: t.Currency.Decimal(r.Minor), Credit: r.Taken,
		Reason: nilIfZero(r.Reason), Created: seconds(r.CreatedMS)}
}

func (s *server) getTopup(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		t, err := topup.GetTx(tx, c.id)
		if err != nil {
			return nil, err
		}
		reversals, err := topup.ReversalsTx(tx, t.ID)
		a := wholeTopupAnswer{topupAnswer: showTopup(t), Reversals: []reversalAnswer{}}
		for _, r := range reversals {
			a.Reversals = append(a.Reversals, showReversal(t, r))
		}
		return a, err
	})
}

func (s *server) listTopups(c *call) (any, error) {
	values, after, limit, err := c.page("account", "state", "provider", "payment", "since", "until", "format")
	if err != nil {
		return nil, err
	}
	f := topup.ListFilter{Account: values.Get("account"), State: topup.TopupState(values.Get("state")), Provider: values.Get("provider"),
		Payment: values.Get("payment"), After: after, Limit: limit}
	if f.State != "" && !slices.Contains(topup.States(), f.State) {
		return nil, fault.At(fault.InvalidRequest, "state", "state must be one of %s.",
			strings.Join(names(topup.States(), func(state topup.TopupState) string { return string(state) }), ", "))
	}
	if f.SinceMS, f.UntilMS, err = requestlog.Span(values.Get("since"), values.Get("until")); err != nil {
		return nil, err
	}
	asCSV, err := c.wantsCSV(values.Get("format"))
	if err != nil {
		return nil, err
	}
	if asCSV {
		return s.topupRows(c, f), nil
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := topup.ListTx(tx, f)
		return newList(items, more, showTopup), err
	})
}

// topupRows returns all top-ups of a filter as CSV, for example those of a month.
func (s *server) topupRows(c *call, f topup.ListFilter) rows {
	f.Limit = csvBatch
	optional := func(v *string) string {
		if v == nil {
			return ""
		}
		return *v
	}
	return rows{columns: []string{"id", "account", "provider", "state", "test", "automatic", "currency", "amount", "total", "credit_usd",
		"payment", "created", "paid"}, next: func() (cells [][]string, more bool, err error) {
		list, err := view(s, c, func(tx *store.Tx) (list []topup.Topup, err error) {
			list, more, err = topup.ListTx(tx, f)
			return list, err
		})
		for _, t := range list {
			a, paid := showTopup(t), ""
			if t.IsPaid() {
				paid = csvTime(t.PaidMS)
			}
			cells = append(cells, []string{a.ID, a.Account, a.Provider, string(a.State), strconv.FormatBool(a.Test),
				strconv.FormatBool(a.Automatic), a.Currency, a.Amount, optional(a.Total), a.Credit.String(), sheet.Cell(optional(a.Payment)),
				csvTime(t.CreatedMS), paid})
			f.After = t.ID
		}
		return cells, more, err
	}}
}

// csvTime returns a time in a CSV answer.
func csvTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// problemAnswer is trouble with a payment. An operator must examine it.
type problemAnswer struct {
	ID       string  `json:"id"`
	Provider string  `json:"provider"`
	Kind     string  `json:"kind"`
	Object   string  `json:"object"`
	Topup    *string `json:"top_up"`
	Account  *string `json:"account"`
	Detail   string  `json:"detail"`
	Count    int64   `json:"count"`
	First    int64   `json:"first_seen"`
	Last     int64   `json:"last_seen"`
	Due      *int64  `json:"due"`
}

// listProblems lists the open problems of payments.
func (s *server) listProblems(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := topup.ProblemsTx(tx, after, limit)
		return newList(items, more, showProblem), err
	})
}

func showProblem(p topup.Problem) problemAnswer {
	return problemAnswer{ID: p.ID, Provider: p.Provider, Kind: string(p.Kind), Object: p.Object, Topup: nilIfZero(p.Topup),
		Account: nilIfZero(p.Account), Detail: p.Detail, Count: p.Count, First: seconds(p.FirstMS), Last: seconds(p.LastMS),
		Due: nilIfZero(seconds(p.DueMS))}
}

// closedProblemAnswer is a problem that an operator has closed.
type closedProblemAnswer struct {
	problemAnswer
	Closed int64 `json:"closed"`
}

// closeProblem closes a problem. A repetition answers the time of the first call.
func (s *server) closeProblem(c *call) (any, error) {
	return change(s, c, func(tx *store.Tx) (any, error) {
		p, err := operator.CloseProblemTx(tx, s.actor(c), c.id)
		return closedProblemAnswer{showProblem(p), seconds(p.ClosedMS)}, err
	})
}

// checkPayments returns an error if customers cannot pay here.
func (s *server) checkPayments() error {
	if s.Topups == nil {
		return fault.New(fault.InvalidRequest, "This service takes no payments. Set up a payment provider in the settings.")
	}
	return nil
}

// refundTopup takes the credit of a refund back, commits, and asks the provider to pay. If the provider does
// not answer, the refund stays requested, and the gateway asks again by itself.
func (s *server) refundTopup(c *call) (any, error) {
	if err := s.checkPayments(); err != nil {
		return nil, err
	}
	var amount, reason string
	body, err := c.readObject()
	if err == nil {
		err = body.decode(textField("amount", &amount), textField("reason", &reason))
	}
	if err != nil {
		return nil, err
	}
	t, err := view(s, c, func(tx *store.Tx) (topup.Topup, error) { return topup.GetTx(tx, c.id) })
	if err != nil {
		return nil, err
	}
	minor, err := t.Currency.Parse(strings.TrimSpace(amount))
	if err != nil {
		return nil, fault.At(fault.InvalidRequest, "amount", "amount %s.", err)
	}
	var refund topup.Reversal // zero for a repetition
	_, err = s.update(c, body, func(tx *store.Tx) (any, error) {
		var err error
		refund, err = operator.RefundTopupTx(tx, s.actor(c), s.Topups, t.ID, minor, reason)
		return refund.ID, err
	})
	if err != nil {
		return nil, err
	}
	if err := s.Topups.PayBack(c.ctx, refund); err != nil {
		if !errors.Is(err, topup.ErrNoAnswer) {
			return nil, err
		}
		s.Log.Warn("admin: a payment provider did not answer", "topup", t.ID, "error", err)
	}
	return s.getTopup(c)
}

// checkTopup asks the provider about a top-up now.
func (s *server) checkTopup(c *call) (any, error) {
	if err := s.checkPayments(); err != nil {
		return nil, err
	}
	if err := s.Topups.Sync(c.ctx, c.id, ""); err != nil {
		return nil, err
	}
	return s.getTopup(c)
}

// differenceAnswer is a payment that differs between the provider and the gateway.
type differenceAnswer struct {
	Topup   *string `json:"top_up"`
	Payment *string `json:"payment"`
	What    string  `json:"what"`
	Here    *string `json:"here"`
	There   *string `json:"there"`
}

// reconciliationAnswer compares a provider's payments with the top-ups.
type reconciliationAnswer struct {
	Provider    string             `json:"provider"`
	Since       int64              `json:"since"`
	Payments    int                `json:"payments"`
	Topups      int                `json:"top_ups"`
	Differences []differenceAnswer `json:"differences"`
}

// Days of a reconciliation.
const (
	defaultReconcileDays = 7
	maxReconcileDays     = 90
)

func (s *server) reconcileTopups(c *call) (any, error) {
	if err := s.checkPayments(); err != nil {
		return nil, err
	}
	values, err := c.query("provider", "days")
	if err != nil {
		return nil, err
	}
	infos := s.Topups.Infos()
	providers := names(infos, func(i topup.ProviderInfo) string { return i.Name })
	provider, days := providers[0], defaultReconcileDays
	if values.Has("provider") {
		if provider = values.Get("provider"); !slices.Contains(providers, provider) {
			return nil, fault.At(fault.InvalidRequest, "provider", "provider must be one of %s.", strings.Join(providers, ", "))
		}
	}
	if values.Has("days") {
		if days, err = strconv.Atoi(values.Get("days")); err != nil || days < 1 || days > maxReconcileDays {
			return nil, fault.At(fault.InvalidRequest, "days", "days must be a whole number from 1 to %d.", maxReconcileDays)
		}
	}
	now, err := view(s, c, (*store.Tx).NowMS)
	if err != nil {
		return nil, err
	}
	since := time.UnixMilli(now).AddDate(0, 0, -days).UnixMilli()
	r, err := s.Topups.Reconcile(c.ctx, provider, since)
	if err != nil {
		return nil, err
	}
	a := reconciliationAnswer{Provider: provider, Since: seconds(since), Payments: r.Payments, Topups: r.Topups,
		Differences: []differenceAnswer{}}
	for _, d := range r.Differences {
		a.Differences = append(a.Differences, differenceAnswer{nilIfZero(d.Topup), nilIfZero(d.Payment), d.What,
			nilIfZero(d.Here), nilIfZero(d.There)})
	}
	return a, nil
}
