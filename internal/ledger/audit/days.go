package audit

// readDays reads the figures of the days before the day in the row of a key, a usage or a free
// quota.
func (b *Books) readDays() error {
	err := b.each(func(scan scanner) error {
		var key string
		var day int64
		var d dayRow
		if err := scan(&key, &day, &d.recorded.cost, &d.recorded.held); err != nil {
			return err
		}
		k := b.keys[key]
		if k == nil {
			k = b.key(key, "", "figures of a day")
		}
		if k.otherDays == nil {
			k.otherDays = map[int64]*dayRow{}
		}
		k.otherDays[day] = &d
		b.Count("days of keys", 1)
		return nil
	}, `SELECT key, day, spent_nano, held_nano FROM ledger_key_day`)
	if err != nil {
		return err
	}
	err = b.each(func(scan scanner) error {
		var account, model string
		var day int64
		var r dayFigures
		if err := scan(&account, &model, &day, &r.cost, &r.requests, &r.billed, &r.failed); err != nil {
			return err
		}
		f := &b.account(account, "usage of a day").model(model).otherDay(day).recorded
		f.cost, f.requests, f.billed, f.failed = r.cost, r.requests, r.billed, r.failed
		b.Count("days of usage", 1)
		return nil
	}, `SELECT account, model, day, cost_nano, requests, billed, failed FROM ledger_usage_day`)
	if err != nil {
		return err
	}
	return b.each(func(scan scanner) error {
		var account, model string
		var day, used int64
		if err := scan(&account, &model, &day, &used); err != nil {
			return err
		}
		b.account(account, "a free quota of a day").model(model).otherDay(day).recorded.places = used
		b.Count("days of free quotas", 1)
		return nil
	}, `SELECT account, model, day, used FROM ledger_free_day`)
}

// otherDay returns the figures of a day that is not in the model's row.
func (m *modelSums) otherDay(day int64) *dayRow {
	if m.otherDays == nil {
		m.otherDays = map[int64]*dayRow{}
	}
	if m.otherDays[day] == nil {
		m.otherDays[day] = &dayRow{}
	}
	return m.otherDays[day]
}
