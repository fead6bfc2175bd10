package audit

import (
	"strconv"
	"strings"
	"time"

	"tollgate/internal/ledger/books"
)

// limitSums has the stored and the computed sums of a subject on a day.
type limitSums struct {
	account            string
	exists             bool // there is a row
	recorded, computed books.LimitRow
}

// limit returns the sums of a subject of an account on a day.
func (b *Books) limit(k books.LimitKey, account string) *limitSums {
	s := b.limits[k]
	if s == nil {
		s = &limitSums{account: account}
		b.limits[k] = s
	}
	return s
}

const keyWithoutBudget = "a day of a daily budget is of a key without one"

func (b *Books) readLimits() error {
	read := func(where string, args ...any) error {
		return b.each(func(scan scanner) error {
			var k books.LimitKey
			s := &limitSums{exists: true}
			if err := scan(&k.Subject, &k.Day, &s.recorded.Spent, &s.recorded.Used); err != nil {
				return err
			}
			b.Count("days of limits", 1)
			if account, _, free := strings.Cut(k.Subject, "/"); free {
				s.account = account
				b.account(account, "a free quota")
			} else if key := b.keys[k.Subject]; key == nil {
				return nil // the key's row cannot be read, which is a difference already
			} else if key.limited {
				s.account = key.account
			} else {
				b.Report(Difference{Account: key.account, Key: k.Subject, What: keyWithoutBudget,
					Recorded: s.recorded.Spent.String()})
				return nil
			}
			b.limits[k] = s
			return nil
		}, `SELECT subject, day, spent_nano, used FROM ledger_limit WHERE `+where, args...)
	}
	where, args := b.Where("k.account")
	if err := read(`subject IN (SELECT k.id FROM ledger_key k WHERE `+where+`)`, args...); err != nil {
		return err
	}
	where, args = b.whereFree()
	return read(where, args...)
}

// compareLimits compares the sums of daily budgets and free quotas. A missing row equals a row of
// zeros. When the first receipts of a day are deleted, the day's rows are deleted too. Receipts are
// deleted in the order of their ids, so around midnight a receipt of the day before may be left.
func (b *Books) compareLimits() {
	for k, s := range b.limits {
		a := b.accounts[s.account]
		if a == nil || s.recorded == s.computed {
			continue
		}
		_, hasReceipts := a.days[k.Day]
		deleted := a.folded > 0 && k.Day < b.today && (!hasReceipts || k.Day <= a.firstDay+1)
		if deleted && !s.exists {
			continue
		}
		d := Difference{Account: s.account, Key: k.Subject}
		if _, model, free := strings.Cut(k.Subject, "/"); free {
			d.Key, d.Model = "", model
		}
		day := " on " + time.UnixMilli(0).UTC().AddDate(0, 0, int(k.Day)).Format(time.DateOnly)
		d.What = "spent is not the sum of the key's charges" + day
		b.compareMoney(d, s.recorded.Spent, s.computed.Spent)
		if s.recorded.Used != s.computed.Used && !(deleted && s.recorded.Used > s.computed.Used) {
			d.What = "the used part of a free quota is not the count of its requests" + day
			d.Recorded, d.Computed = strconv.FormatInt(s.recorded.Used, 10), strconv.FormatInt(s.computed.Used, 10)
			b.Report(d)
		}
	}
}
