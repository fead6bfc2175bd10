package audit

import (
	"fmt"
	"strings"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// accountSums has an account's row and the computed sums.
type accountSums struct {
	exists          bool
	namedBy         string // the row that names the account, if the account has no row
	state           accountRow
	seq             int64
	indexedSeq      int64        // segments up to this number are recorded
	computedBalance money.Amount // credits less charges
	held            money.Amount // the sum of the open holds
	chain           Chain
	folded          int64        // number of deleted receipts
	recorded        int64        // number of deleted receipts recorded in the chain
	foldedCost      money.Amount // the cost of deleted receipts
	foldedCharges   money.Amount // the same cost according to the monthly entries
	kept            chargeSums
	firstDay        int64 // the oldest day of a receipt
	models          map[string]*modelSums
}

type accountRow struct{ balance, held, floor money.Amount }

// keySums has a key's row and the computed sums.
type keySums struct {
	exists, closed, disabled bool
	namedBy, otherAccount    string // the row that names a missing key; an account other than the key's
	account                  string
	spent, held              money.Amount
	day                      int64
	daySpent, dayHeld        money.Amount
	hits                     int64
	sumSpent, sumHeld        money.Amount
	sumDaySpent, sumDayHeld  money.Amount
	otherDays                map[int64]*dayRow
	days                     daySet  // days with spent or held sums
	segments                 []int64 // the recorded segments, ascending
	segmentKnown             bool    // segment is the last segment looked up
	segment                  int64
}

// totalNames are the compared figures of usage, in the order of its columns.
var totalNames = [...]string{"cost", "requests", "billed requests", "failed requests", "prompt tokens", "completion tokens", "images",
	"cost of the day", "requests of the day", "billed requests of the day", "failed requests of the day"}

// totals has the figures of totalNames.
type totals [len(totalNames)]int64

// modelSums has an account's figures of a model, stored and computed.
type modelSums struct {
	day                int64 // the day of the daily figures
	recorded, computed totals

	quota          bool // there is a row of a free quota
	freeDay, used  int64
	places, unsure int64 // requests with a place, and requests that may have one
	otherDays      map[int64]*dayRow

	days, freeDays daySet // days with requests, and with places of a free quota
}

// dayRow has the figures of a day that the row no longer has. The used fields depend on the kind of
// row.
type dayRow struct{ recorded, computed, unsure dayFigures }

// dayFigures are the figures of a day: spent and held sums of a key, cost and counts of a model's
// usage, or the places of a free quota.
type dayFigures struct {
	cost, held                       money.Amount
	requests, billed, failed, places int64
}

type openHold struct {
	epoch, account, key, model, job string
	day                             int64
	free                            bool
	amount, cost                    money.Amount
	factor                          money.Factor
	tokens                          books.Tokens
}

// account returns an account's sums. what describes the row that names the account.
func (b *Books) account(id, what string) *accountSums {
	a := b.accounts[id]
	if a == nil {
		a = &accountSums{namedBy: what, models: map[string]*modelSums{}}
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

func (a *accountSums) model(id string) *modelSums {
	m := a.models[id]
	if m == nil {
		m = &modelSums{}
		a.models[id] = m
	}
	return m
}

func (b *Books) readAccounts() error {
	return b.each(func(scan scanner) error {
		var id string
		a := &accountSums{exists: true, models: map[string]*modelSums{}}
		var disabled int64
		if err := scan(&id, &a.state.balance, &a.state.held, &a.state.floor, &disabled, &a.seq, &a.indexedSeq); err != nil {
			return err
		}
		b.accounts[id] = a
		b.Count("accounts", 1)
		return nil
	}, `SELECT id, balance_nano, held_nano, floor_nano, disabled, seq, parted_seq FROM ledger_account`)
}

func (b *Books) readKeys() error {
	return b.each(func(scan scanner) error {
		var id string
		var disabled, closed int64
		k := &keySums{exists: true}
		if err := scan(&id, &k.account, &disabled, &closed, &k.spent, &k.held, &k.day, &k.daySpent, &k.dayHeld, &k.hits); err != nil {
			return err
		}
		k.disabled, k.closed = disabled != 0, closed != 0
		b.keys[id] = k
		b.account(k.account, "a key")
		b.Count("keys", 1)
		return nil
	}, `SELECT id, account, disabled, closed, spent_nano, held_nano, day, day_spent_nano, day_held_nano, hits FROM ledger_key`)
}

func (b *Books) readUsage() error {
	return b.each(func(scan scanner) error {
		var account, model string
		var day int64
		var r totals
		dest := []any{&account, &model, &day}
		for i := range r {
			dest = append(dest, &r[i])
		}
		if err := scan(dest...); err != nil {
			return err
		}
		m := b.account(account, "usage").model(model)
		m.day, m.recorded = day, r
		b.Count("usage totals", 1)
		return nil
	}, `SELECT account, model, day, cost_nano, requests, billed, failed, prompt_tokens, completion_tokens, images,
		day_cost_nano, day_requests, day_billed, day_failed FROM ledger_usage`)
}

func (b *Books) readFree() error {
	return b.each(func(scan scanner) error {
		var account, model string
		var day, used int64
		if err := scan(&account, &model, &day, &used); err != nil {
			return err
		}
		m := b.account(account, "a free quota").model(model)
		m.quota, m.freeDay, m.used = true, day, used
		b.Count("free quotas", 1)
		return nil
	}, `SELECT account, model, day, used FROM ledger_free`)
}

func (b *Books) readFolded() error {
	err := b.each(func(scan scanner) error {
		var account, key, model string
		var r totals
		dest := []any{&account, &key, &model}
		for i := range r[:7] {
			dest = append(dest, &r[i])
		}
		if err := scan(dest...); err != nil {
			return err
		}
		for i := range r[:7] {
			if r[i] < 0 {
				b.Report(Difference{Account: account, Key: key, Model: model, What: "a sum of deleted receipts is negative: " + totalNames[i],
					Recorded: fmt.Sprint(r[i])})
			}
		}
		a := b.account(account, "sums of deleted receipts")
		a.folded = money.Plus(a.folded, r[1])
		a.foldedCost = money.Plus(a.foldedCost, money.Amount(r[0]))
		m := a.model(model)
		for i := range r[:7] {
			m.computed[i] = money.Plus(m.computed[i], r[i])
		}
		k := b.key(key, account, "sums of deleted receipts")
		k.sumSpent = money.Plus(k.sumSpent, money.Amount(r[0]))
		b.Count("sums of deleted receipts", 1)
		return nil
	}, `SELECT account, key, model, cost_nano, requests, billed, failed, prompt_tokens, completion_tokens, images FROM ledger_folded`)
	if err != nil {
		return err
	}
	noted, err := chainsTx(b.tx, "")
	for account, c := range noted {
		a := b.account(account, "sums of deleted receipts")
		a.recorded = c.movements
		a.chain.join(c)
	}
	return err
}

func (b *Books) readHolds() error {
	return b.each(func(scan scanner) error {
		var id string
		var free int64
		h := &openHold{}
		if err := scan(&id, &h.epoch, &h.account, &h.key, &h.model, &h.job, &h.day, &free, &h.amount, &h.cost,
			&h.tokens.Prompt, &h.tokens.Cached, &h.tokens.Completion, &h.factor); err != nil {
			return err
		}
		h.free = free != 0
		b.holds[id] = h
		a := b.account(h.account, "an open hold")
		a.held += h.amount
		k := b.key(h.key, h.account, "an open hold")
		k.sumHeld += h.amount
		if h.amount > 0 {
			k.days.add(h.day)
		}
		if h.day == k.day {
			k.sumDayHeld += h.amount
		}
		if d := k.otherDays[h.day]; d != nil {
			d.computed.held += h.amount
		}
		m := a.model(h.model)
		if h.free {
			m.freeDays.add(h.day)
		}
		if h.free && h.day == m.freeDay {
			m.places++
		}
		if d := m.otherDays[h.day]; d != nil && h.free {
			d.computed.places++
		}
		b.Count("holds", 1)
		return nil
	}, `SELECT id, epoch, account, key, model, job, day, free, amount_nano, cost_nano, prompt_tokens, cached_tokens, completion_tokens,
		price_factor FROM ledger_hold`)
}

func (b *Books) readEntries() error {
	return b.each(func(scan scanner) error {
		var id, account, kind string
		var seq, month int64
		var amount, balance, kept money.Amount
		if err := scan(&id, &account, &seq, &kind, &month, &amount, &balance, &kept); err != nil {
			return err
		}
		a := b.account(account, "a movement")
		a.computedBalance += amount
		a.kept.months = money.Plus(a.kept.months, kept)
		if kind == books.EntryCharges {
			a.foldedCharges = money.Plus(a.foldedCharges, -amount)
		} else {
			a.chain.Move(seq, balance, amount)
		}
		if what := checkEntry(kind, month, amount, balance); what != "" {
			b.Report(Difference{Account: account, Request: id, What: what, Recorded: amount.String()})
		}
		if what := checkKeptSum(kind, amount, kept); what != "" {
			b.Report(Difference{Account: account, Request: id, What: what, Recorded: kept.String(), Computed: amount.String()})
		}
		b.Count("entries", 1)
		return nil
	}, `SELECT id, account, seq, kind, month, amount_nano, balance_nano, kept_nano FROM ledger_entry`)
}

func (b *Books) readHits() error {
	return b.each(func(scan scanner) error {
		var key string
		var n, first, last int64
		if err := scan(&key, &n, &first, &last); err != nil {
			return err
		}
		k := b.keys[key]
		switch {
		case k == nil || !k.exists:
			b.Report(Difference{Key: key, What: "a rate window is of a key that is not there", Recorded: fmt.Sprint(n)})
		case first < 1 || last > k.hits:
			b.Report(Difference{Account: k.account, Key: key, What: "a rate window has hits that the key has not counted",
				Recorded: fmt.Sprintf("%d to %d", first, last), Computed: fmt.Sprint(k.hits)})
		}
		b.Count("rate windows", 1)
		return nil
	}, `SELECT key, COUNT(*), MIN(n), MAX(n) FROM ledger_hit GROUP BY key`)
}

// receipt has the columns of a receipt that the rules and sums need.
type receipt struct {
	seq, day, status, free, endedMS int64
	dated, source, revision         int64
	factor                          money.Factor
	outcome                         books.Outcome
	job                             bool
	code                            bool // the code is not empty
	tokens                          books.Tokens
	cost, over, held, balance       money.Amount
	lineCost                        money.Amount
}

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
		{"images", &r.tokens.Images}, {"clips", &r.tokens.Clips}, {"video_ms", &r.tokens.VideoMS},
		{"cost_nano", (*int64)(&r.cost)}, {"over_nano", (*int64)(&r.over)}, {"held_nano", (*int64)(&r.held)},
		{"balance_nano", (*int64)(&r.balance)}, {"line_cost_nano", (*int64)(&r.lineCost)}, {"price_factor", (*int64)(&r.factor)},
		{"ended_ms", &r.endedMS}, {"source", &r.source}, {"dated", &r.dated}, {"revision", &r.revision},
	}
	// Scanning into any avoids a conversion by reflection for each column, a fifth of the audit's
	// time.
	names, values, dest := make([]string, len(columns)), make([]any, len(columns)), make([]any, len(columns))
	for i := range columns {
		names[i], dest[i] = columns[i].name, &values[i]
	}
	rows, err := b.tx.Query(`SELECT ` + strings.Join(names, ", ") + ` FROM ledger_receipt`)
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
				fn(BilledReceipt{id, account, key, model, endpoint, r.revision, r.factor, r.tokens, r.cost, r.over})
			}
		}
		b.addDated(books.UsageSeries{Account: account, Key: key, Model: model, Line: line, Endpoint: endpoint}, &r)
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
	k := b.key(key, account, "a receipt")
	k.sumSpent = money.Plus(k.sumSpent, r.cost)
	if r.cost > 0 {
		k.days.add(r.day)
	}
	if r.day == k.day {
		k.sumDaySpent = money.Plus(k.sumDaySpent, r.cost)
	}
	if d := k.otherDays[r.day]; d != nil {
		d.computed.cost = money.Plus(d.computed.cost, r.cost)
	}
	if r.outcome == books.Refused {
		return
	}
	a.chain.Move(r.seq, r.balance, -r.cost)
	if a.firstDay == 0 || r.day < a.firstDay {
		a.firstDay = r.day
	}
	m := a.model(model)
	m.add(r)
}

// add adds a receipt to its model's counts. Totals stop at money.Max like those of the books.
func (m *modelSums) add(r *receipt) {
	c := &m.computed
	c[0] = money.Plus(c[0], int64(r.cost))
	c[1]++
	c[4] = money.Plus(c[4], r.tokens.Prompt)
	c[5] = money.Plus(c[5], r.tokens.Completion)
	c[6] = money.Plus(c[6], r.tokens.Images)
	var billed, failed int64
	switch r.outcome {
	case books.Billed:
		billed = 1
	case books.Failed:
		failed = 1
	}
	c[2] += billed
	c[3] += failed
	m.days.add(r.day)
	if r.free == 1 && r.outcome != books.Failed {
		m.freeDays.add(r.day)
	}
	if r.day == m.day {
		c[7] = money.Plus(c[7], int64(r.cost))
		c[8]++
		c[9] += billed
		c[10] += failed
	}
	if d := m.otherDays[r.day]; d != nil {
		d.computed.cost = money.Plus(d.computed.cost, r.cost)
		d.computed.requests++
		d.computed.billed += billed
		d.computed.failed += failed
		if r.outcome != books.Failed {
			d.computed.places += max(0, r.free)
			d.unsure.places += max(0, -r.free)
		}
	}
	if r.day == m.freeDay && r.outcome != books.Failed { // a failed request has returned its place
		switch r.free {
		case 0:
		case 1:
			m.places++
		default:
			m.unsure++
		}
	}
}
