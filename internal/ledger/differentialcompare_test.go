package ledger

import (
	"maps"
	"slices"
	"time"

	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// compare compares accounts and keys with the model.
func (d *differential) compare() {
	var accounts map[string]AccountState
	var keys map[string]KeyState
	view(d.t, d.db, func(tx *store.Tx) (err error) {
		if accounts, err = AccountsTx(tx, slices.Collect(maps.Keys(d.m.accounts))); err != nil {
			return err
		}
		keys, err = KeysTx(tx, slices.Collect(maps.Keys(d.m.keys)))
		return err
	})
	now := d.c.ms.Load()
	for name, a := range d.m.accounts {
		want := AccountState{Balance: money.Amount(a.balance), Held: money.Amount(d.m.held(name, "", -1)), Floor: money.Amount(a.floor),
			Disabled: a.disabled}
		if accounts[name] != want {
			d.t.Errorf("account %s is %+v, want %+v", name, accounts[name], want)
		}
	}
	for name, k := range d.m.keys {
		got := keys[name]
		want := KeyState{Account: k.account, Limits: got.Limits, Version: k.version, Spent: money.Amount(d.m.spent(name, -1)),
			Held: money.Amount(d.m.held("", name, -1)), SpentToday: money.Amount(d.m.spent(name, now/modelDay)),
			LastUsedMS: got.LastUsedMS, AccountDisabled: d.m.accounts[k.account].disabled}
		if got != want {
			d.t.Errorf("key %s is %+v, want %+v", name, got, want)
		}
	}
}

// compareAll compares the usage, the movements and the requests with the model, and runs the audit.
func (d *differential) compareAll() {
	d.sweep() // else the audit reports the requests of dead nodes
	d.compareUsage()
	for account, a := range d.m.accounts {
		var entries []movement.Entry
		view(d.t, d.db, func(tx *store.Tx) (err error) {
			entries, _, err = movement.ListTx(tx, movement.Selection{Account: account, Limit: 100_000})
			return err
		})
		got := make([]modelMove, len(entries))
		for i, e := range entries {
			got[len(got)-1-i] = modelMove{int64(e.Amount), int64(e.Balance), e.Request, e.Reference}
		}
		if !slices.Equal(got, a.moves) {
			d.t.Errorf("the movements of %s are %+v, want %+v", account, got, a.moves)
		}
	}
	logged := map[string]requestlog.Receipt{}
	for _, r := range d.requests(requestlog.Selection{Limit: 1_000_000}) {
		if r.Outcome != Refused {
			logged[r.ID] = r
		}
	}
	for _, e := range d.m.ended {
		r, ok := logged[e.id]
		delete(logged, e.id)
		if !ok && d.folding {
			continue
		}
		if int64(r.Cost) != e.charged || int64(r.Over) != e.over || int64(r.Held) != e.amount || int64(r.Factor) != e.factor ||
			r.Outcome != e.outcome || r.Key != e.key || r.Quantity != e.use.quantity || r.Model != e.model || r.Job != e.job {
			d.t.Errorf("got the receipt %+v, want that of %+v", r, e)
		}
	}
	if len(logged) > 0 {
		d.t.Errorf("got receipts %+v, want none that the model does not have", logged)
	}
	d.checkAudit()
}

// usageSums are sums of requests.
type usageSums struct {
	requests, billed, failed, prompt, completion, charged int64
	images, videos, tiles                                 measure.Total
}

func (s usageSums) plus(e modelEnd) usageSums {
	s.requests++
	switch e.outcome {
	case Billed:
		s.billed++
	case Failed:
		s.failed++
	}
	for unit, sum := range map[measure.Unit]*measure.Total{measure.Image: &s.images, measure.VideoMS: &s.videos, "tile": &s.tiles} {
		if e.use.quantity.Unit == unit {
			sum.Requests, sum.N = sum.Requests+1, sum.N+e.use.quantity.N
		}
	}
	s.prompt, s.completion, s.charged = s.prompt+e.use.prompt, s.completion+e.use.completion, s.charged+e.charged
	return s
}

// compareUsage compares the usage by day, key and model, and the totals of accounts.
func (d *differential) compareUsage() {
	type series struct{ day, key, model string }
	got, want := map[series]usageSums{}, map[series]usageSums{}
	view(d.t, d.db, func(tx *store.Tx) error {
		rows, err := spending.ReadTx(tx, spending.Query{By: []spending.By{spending.ByDay, spending.ByKey, spending.ByModel}, Limit: 100_000})
		for _, r := range rows {
			got[series{r.Day, r.Key, r.Model}] = usageSums{r.Requests, r.Billed, r.Failed, r.Prompt, r.Completion, int64(r.Charged),
				r.Quantities[measure.Image], r.Quantities[measure.VideoMS], r.Quantities["tile"]}
		}
		return err
	})
	today, totals, todays := d.c.ms.Load()/modelDay, map[string]usageSums{}, map[string]usageSums{}
	for _, e := range d.m.ended {
		at := series{time.UnixMilli(e.day * modelDay).UTC().Format(time.DateOnly), e.key, e.model}
		want[at], totals[e.account] = want[at].plus(e), totals[e.account].plus(e)
		if e.day == today {
			todays[e.account] = todays[e.account].plus(e)
		}
	}
	if !maps.Equal(got, want) {
		d.t.Errorf("the usage is %+v, want %+v", got, want)
	}
	for account := range d.m.accounts {
		total, now := totals[account], todays[account]
		for _, r := range d.m.open { // running jobs count already
			if r.account == account && r.job != "" {
				total.requests++
				if r.day == today {
					now.requests++
				}
			}
		}
		for _, s := range []*usageSums{&total, &now} { // totals have no quantities
			s.images, s.videos, s.tiles = measure.Total{}, measure.Total{}, measure.Total{}
		}
		now.prompt, now.completion = 0, 0 // not shown
		u := d.usage(account)
		for _, c := range []struct {
			what string
			got  Totals
			want usageSums
		}{{"total", u.Total, total}, {"today", u.Today, now}} {
			got := usageSums{requests: c.got.Requests, billed: c.got.Billed, failed: c.got.Failed, prompt: c.got.Prompt,
				completion: c.got.Completion, charged: int64(c.got.Cost)}
			if got != c.want {
				d.t.Errorf("usage.%s of %s is %+v, want %+v", c.what, account, got, c.want)
			}
		}
	}
}
