package audit

import (
	"fmt"
	"strings"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// accountSums has an account's row and the computed sums.
type accountSums struct {
	exists          bool
	namedBy         string // the row that names the account, if the account has no row
	state           accountRow
	seq             int64
	computedBalance money.Amount // credits less charges
	chain           Chain
	folded          int64        // number of deleted receipts
	charged         money.Amount // the sum of the receipts and the kept charges
	daysCharged     money.Amount // the sum of the days
	kept            chargeSums
	days            map[int64]struct{} // the days of receipts
	firstDay        int64              // the oldest of them
}

type accountRow struct{ balance, floor money.Amount }

// keySums has a key's row and the computed sums.
type keySums struct {
	exists, closed, disabled bool
	outside                  bool   // the key belongs to an account outside the range
	namedBy, otherAccount    string // the row that names a missing key; an account other than the key's
	account                  string
	spent, sumSpent          money.Amount
	limited                  bool    // the key has a daily budget
	segments                 []int64 // the recorded segments, ascending
	segmentKnown             bool    // segment is the last segment looked up
	segment                  int64
}

type openHold struct {
	epoch, account, key, model, job string
	day                             int64
	free                            bool
	amount, cost                    money.Amount
	factor                          money.Factor
	tokens                          books.Tokens
	quantity                        int64
}

// account returns an account's sums. what describes the row that names the account.
func (b *Books) account(id, what string) *accountSums {
	a := b.accounts[id]
	if a == nil {
		a = &accountSums{namedBy: what}
		b.accounts[id] = a
	}
	return a
}

// key returns the sums of a key that a row of an account names.
func (b *Books) key(id, account, what string) *keySums {
	k := b.keys[id]
	if k == nil {
		k = &keySums{namedBy: what, account: account}
		b.keys[id] = k
	}
	if k.account != account && k.otherAccount == "" {
		k.otherAccount, k.namedBy = account, what
	}
	return k
}

func (b *Books) readAccounts() error {
	where, args := b.Where("id")
	return b.each(func(scan scanner) error {
		var id string
		a := &accountSums{exists: true}
		var disabled int64
		if err := scan(&id, &a.state.balance, &a.state.floor, &disabled, &a.seq); err != nil {
			return err
		}
		b.accounts[id] = a
		b.Count("accounts", 1)
		return nil
	}, `SELECT id, balance_nano, floor_nano, disabled, seq FROM ledger_account WHERE `+where, args...)
}

func (b *Books) readKeys() error {
	where, args := b.Where("account")
	return b.each(func(scan scanner) error {
		var id string
		var disabled, closed, budget int64
		k := &keySums{exists: true}
		if err := scan(&id, &k.account, &disabled, &closed, &budget, &k.spent); err != nil {
			return err
		}
		k.disabled, k.closed, k.limited = disabled != 0, closed != 0, budget >= 0
		b.keys[id] = k
		b.account(k.account, "a key")
		b.Count("keys", 1)
		return nil
	}, `SELECT id, account, disabled, closed, daily_budget_nano, spent_nano FROM ledger_key WHERE `+where, args...)
}

// readOtherKeys looks up the keys that rows of the range name but that belong to accounts outside the
// range.
func (b *Books) readOtherKeys() error {
	var missing []string
	for id, k := range b.keys {
		if !k.exists {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return b.each(func(scan scanner) error {
		var id, account string
		if err := scan(&id, &account); err != nil {
			return err
		}
		k := b.keys[id]
		k.exists, k.outside, k.account, k.otherAccount = true, true, account, k.account
		return nil
	}, `SELECT id, account FROM ledger_key WHERE `+b.tx.In("id", 1), store.List(missing))
}

// readChains reads the checksums of deleted receipts.
func (b *Books) readChains() error {
	where, args := b.Where("account")
	chains, err := chainsTx(b.tx, where, args...)
	for account, c := range chains {
		a := b.account(account, "the checksum of deleted receipts")
		a.folded = c.movements
		a.chain.join(c.Chain)
		b.Count("accounts with deleted receipts", 1)
	}
	return err
}

func (b *Books) readHolds() error {
	where, args := b.Where("account")
	return b.each(func(scan scanner) error {
		var id string
		var free int64
		h := &openHold{}
		if err := scan(&id, &h.epoch, &h.account, &h.key, &h.model, &h.job, &h.day, &free, &h.amount, &h.cost,
			&h.tokens.Prompt, &h.tokens.Cached, &h.tokens.Completion, &h.quantity, &h.factor); err != nil {
			return err
		}
		h.free = free != 0
		b.holds[id] = h
		b.account(h.account, "an open hold")
		b.key(h.key, h.account, "an open hold")
		if h.free {
			b.limit(books.LimitKey{Subject: books.FreeSubject(h.account, h.model), Day: h.day}, h.account).computed.Used++
		}
		b.Count("holds", 1)
		return nil
	}, `SELECT id, epoch, account, key, model, job, day, free, amount_nano, cost_nano, prompt_tokens, cached_tokens, completion_tokens,
		quantity, price_factor FROM ledger_hold WHERE `+where, args...)
}

func (b *Books) readEntries() error {
	where, args := b.Where("account")
	return b.each(func(scan scanner) error {
		var id, account, kind string
		var seq int64
		var amount, balance money.Amount
		if err := scan(&id, &account, &seq, &kind, &amount, &balance); err != nil {
			return err
		}
		a := b.account(account, "a movement")
		a.computedBalance += amount
		a.chain.Move(seq, balance, amount)
		if what := checkEntry(kind, amount, balance); what != "" {
			b.Report(Difference{Account: account, Request: id, What: what, Recorded: amount.String()})
		}
		b.Count("entries", 1)
		return nil
	}, `SELECT id, account, seq, kind, amount_nano, balance_nano FROM ledger_entry WHERE `+where, args...)
}

func (b *Books) readHits() error {
	where, args := b.Where("k.account")
	return b.each(func(scan scanner) error {
		var key string
		var n, first, last int64
		if err := scan(&key, &n, &first, &last); err != nil {
			return err
		}
		// If the key's row cannot be read, that is a difference already.
		if k := b.keys[key]; k != nil && (first < 1 || n != last-first+1) {
			b.Report(Difference{Account: k.account, Key: key, What: "the hits of a rate window are not numbered one after the other",
				Recorded: fmt.Sprint(n), Computed: fmt.Sprintf("%d to %d", first, last)})
		}
		b.Count("rate windows", 1)
		return nil
	}, `SELECT h.key, COUNT(*), MIN(h.n), MAX(h.n) FROM ledger_key k JOIN ledger_hit h ON h.key = k.id WHERE `+where+` GROUP BY h.key`,
		args...)
}

// receipt has the columns of a receipt that the rules and sums need.
type receipt struct {
	seq, day, status, free, endedMS int64
	source, revision                int64
	factor                          money.Factor
	outcome                         books.Outcome
	job                             bool
	code                            bool // the code is not empty
	tokens                          books.Tokens
	quantity                        measure.Quantity
	cost, over, held, balance       money.Amount
	lineCost                        money.Amount
}

// Unfolded is the text after FROM that selects the receipts of ledger_receipt_old, except receipts that
// count as deleted because their charges are kept. Further conditions may follow with AND. A join would
// prevent the use of the index's order.
const Unfolded = `ledger_receipt_old WHERE (account, seq, id) > ((SELECT after_account FROM ledger_folding WHERE name = 'current'),
	(SELECT after_seq FROM ledger_folding WHERE name = 'current'), (SELECT after_id FROM ledger_folding WHERE name = 'current'))`

func (b *Books) readReceipts() error {
	var r receipt
	var id, account, key, model, job, line, endpoint string
	var hasCode int64
	columns := []struct {
		name string
		dest any
	}{
		{"id", &id}, {"account", &account}, {"key", &key}, {"model", &model}, {"job", &job}, {"line", &line}, {"endpoint", &endpoint},
		{"seq", &r.seq}, {"day", &r.day}, {"outcome", (*int64)(&r.outcome)}, {"status", &r.status}, {"free", &r.free},
		{"CASE WHEN code = '' THEN 0 ELSE 1 END", &hasCode},
		{"prompt_tokens", &r.tokens.Prompt}, {"cached_tokens", &r.tokens.Cached}, {"completion_tokens", &r.tokens.Completion},
		{"unit", (*string)(&r.quantity.Unit)}, {"quantity", &r.quantity.N},
		{"cost_nano", (*int64)(&r.cost)}, {"over_nano", (*int64)(&r.over)}, {"held_nano", (*int64)(&r.held)},
		{"balance_nano", (*int64)(&r.balance)}, {"line_cost_nano", (*int64)(&r.lineCost)}, {"price_factor", (*int64)(&r.factor)},
		{"ended_ms", &r.endedMS}, {"source", &r.source}, {"revision", &r.revision},
	}
	// Scanning into any avoids a conversion by reflection for each column, a fifth of the audit's
	// time.
	names, values, dest := make([]string, len(columns)), make([]any, len(columns)), make([]any, len(columns))
	for i := range columns {
		names[i], dest[i] = columns[i].name, &values[i]
	}
	where, args := b.Where("account")
	list := strings.Join(names, ", ")
	rows, err := b.tx.Query(`SELECT `+list+` FROM ledger_receipt WHERE `+where+` UNION ALL SELECT `+list+` FROM `+Unfolded+` AND `+where,
		args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var n int64
	for ; rows.Next(); n++ {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		valid := true
		for i := range columns {
			var ok bool
			switch to := columns[i].dest.(type) {
			case *string:
				*to, ok = values[i].(string)
			case *int64:
				*to, ok = values[i].(int64)
			}
			valid = valid && ok
		}
		if !valid { // SQLite stores a value of any type
			b.Report(Difference{Account: account, Request: id, What: "a receipt has a column of another type"})
			continue
		}
		r.job, r.code = job != "", hasCode != 0
		if what, recorded := r.check(); what != "" {
			b.Report(Difference{Account: account, Key: key, Model: model, Request: id, What: what, Recorded: recorded})
		}
		if h := b.holds[id]; h != nil && r.outcome != books.Refused { // a repeated request may be refused under the same id
			b.Report(Difference{Account: account, Key: key, Model: model, Request: id,
				What: "an open hold has a receipt", Recorded: h.amount.String(), Computed: r.cost.String()})
		}
		b.add(account, key, model, &r)
		if r.outcome != books.Refused {
			b.checkSegment(b.account(account, "a receipt"), b.key(key, account, "a receipt"), id, key, r.seq)
			b.addOver(overKey{account, key, line}, r.over)
		}
		if r.outcome == books.Billed && !r.job {
			for _, fn := range b.billed {
				fn(BilledReceipt{id, account, key, model, endpoint, r.revision, r.factor, r.tokens, r.quantity, r.cost, r.over})
			}
		}
		b.addToSeries(books.UsageSeries{Account: account, Key: key, Model: model, Line: line, Endpoint: endpoint}, &r)
		if r.job && r.outcome != books.Refused {
			jobReceipt := JobReceipt{Request: id, Job: job, Account: account, Key: key, Billed: r.outcome == books.Billed,
				Cost: r.cost, Held: r.held, Factor: r.factor, EndedMS: r.endedMS}
			for _, fn := range b.receipts {
				fn(jobReceipt)
			}
		}
	}
	b.Count("receipts", n)
	return rows.Err()
}

// add adds a receipt to the sums. A refused request counts in no sum unless it has a charge, which
// is a fault.
func (b *Books) add(account, key, model string, r *receipt) {
	if r.outcome == books.Refused && r.cost == 0 {
		return
	}
	a := b.account(account, "a receipt")
	a.computedBalance -= r.cost
	a.charged = money.Plus(a.charged, r.cost)
	b.key(key, account, "a receipt")
	if r.outcome == books.Refused {
		return
	}
	a.chain.Move(r.seq, r.balance, -r.cost)
	if _, known := a.days[r.day]; !known {
		if a.days == nil {
			a.days = map[int64]struct{}{}
		}
		if a.days[r.day] = struct{}{}; a.firstDay == 0 || r.day < a.firstDay {
			a.firstDay = r.day
		}
	}
	if r.free == 1 && r.outcome != books.Failed { // a failed request has returned its place
		b.limit(books.LimitKey{Subject: books.FreeSubject(account, model), Day: r.day}, account).computed.Used++
	}
}
