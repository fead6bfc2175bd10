package operator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// mailedAccounts is the number of accounts with mails in one transaction.
const mailedAccounts = 50

// priceNews are the next mails about an announced change.
type priceNews struct {
	change   string
	mailedTo string           // the last account of the step before
	accounts []string         // the accounts of this step
	models   map[string][]int // by account: indexes in before and after of the models it has used
	before   []catalog.Model
	after    []catalog.Model
	done     bool // no account follows
}

// MailPrices writes the mails about announced prices, in steps. The readers are the users of accounts
// that have used one of the models in the last usageDays days.
func (s *Scheduler) MailPrices(ctx context.Context) error {
	for {
		news, err := store.Read(ctx, s.DB, priceNewsTx)
		if err != nil || news.change == "" {
			return err
		}
		if err := s.DB.Update(ctx, func(tx *store.Tx) error { return s.mailTx(tx, news) }); err != nil {
			return fmt.Errorf("mail the prices of the change %s: %w", news.change, err)
		}
	}
}

func priceNewsTx(tx *store.Tx) (news priceNews, err error) {
	if news.change, news.mailedTo, err = catalog.UnmailedChangeTx(tx); err != nil || news.change == "" {
		return news, err
	}
	c, err := catalog.ScheduledChangeTx(tx, news.change)
	if err != nil {
		return news, err
	}
	news.before, news.after, err = c.NewPricesTx(tx)
	if err != nil {
		return news, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return news, fmt.Errorf("read the clock: %w", err)
	}
	news.models = map[string][]int{}
	for i, m := range news.after {
		if len(offer.PriceChanges(&news.before[i], &m, 0)) == 0 { // only the text of the catalog changes
			continue
		}
		rows, err := spending.ReadTx(tx, spending.Query{Model: m.ID, Since: books.DayOf(now) - usageDays, Until: books.DayOf(now) + 1,
			By: []spending.By{spending.ByAccount}, Limit: maxUsageRows})
		if err != nil {
			return news, fmt.Errorf("read who uses %s: %w", m.ID, err)
		}
		for _, r := range rows {
			if r.Requests > 0 && r.Account > news.mailedTo {
				if news.models[r.Account] == nil {
					news.accounts = append(news.accounts, r.Account)
				}
				news.models[r.Account] = append(news.models[r.Account], i)
			}
		}
	}
	slices.Sort(news.accounts)
	news.done = len(news.accounts) <= mailedAccounts
	news.accounts = news.accounts[:min(len(news.accounts), mailedAccounts)]
	return news, nil
}

// mailTx writes the mails of a step. It does nothing if another node was faster, or if the change has
// ended.
func (s *Scheduler) mailTx(tx *store.Tx, news priceNews) error {
	c, err := catalog.LockChangeTx(tx, news.change)
	if err != nil {
		return err
	}
	if first, err := catalog.RecordMailedTx(tx, news.change, news.mailedTo, news.accounts, news.done); err != nil || !first {
		return err
	}
	for _, id := range news.accounts {
		prices, err := account.PricesTx(tx, id)
		if err != nil {
			return err
		}
		if err := account.MailUsersTx(tx, s.Mails, id, mail.Letter{Kind: mail.PriceChange, Cause: c.ID, Link: s.modelsLink(),
			Values: map[string]string{"time": mail.Time(c.AtMS)}, Prices: news.pricesOf(id, prices)}); err != nil {
			return err
		}
	}
	return nil
}

// pricesOf returns the changed prices of the models that an account has used, as the account pays them.
func (n priceNews) pricesOf(id string, prices account.Prices) (all []mail.ModelPrices) {
	for _, i := range n.models[id] {
		m := &n.after[i]
		list := mail.ModelPrices{Model: m.ID, Unit: offer.PriceUnit(m)}
		for _, c := range offer.PriceChanges(&n.before[i], m, prices.FactorOf(m.ID)) {
			p := mail.PriceRow{Item: string(c.Item), Name: c.Name, Before: c.Before, After: c.After}
			if c.Above > 0 {
				p.Tokens = strconv.FormatInt(c.Above, 10)
			}
			list.Changes = append(list.Changes, p)
		}
		all = append(all, list)
	}
	return all
}

// MailWithdrawals writes the mails about cancelled changes to the users who have mails about their prices,
// in steps.
func (s *Scheduler) MailWithdrawals(ctx context.Context) error {
	for {
		accounts, err := store.Read(ctx, s.DB, func(tx *store.Tx) ([]catalog.MailedAccount, error) {
			return catalog.WithdrawnTx(tx, mailedAccounts)
		})
		if err != nil || len(accounts) == 0 {
			return err
		}
		if err := s.DB.Update(ctx, func(tx *store.Tx) error { return s.withdrawTx(tx, accounts) }); err != nil {
			return fmt.Errorf("mail withdrawn prices: %w", err)
		}
	}
}

// withdrawTx writes the mails of a step. It leaves out accounts for which another node was faster.
func (s *Scheduler) withdrawTx(tx *store.Tx, accounts []catalog.MailedAccount) error {
	for _, a := range accounts {
		c, err := catalog.ScheduledChangeTx(tx, a.Change)
		if err != nil {
			return err
		}
		first, err := catalog.EndWithdrawalTx(tx, a)
		if err == nil && first {
			err = account.MailUsersTx(tx, s.Mails, a.Account, mail.Letter{Kind: mail.PriceWithdrawn, Cause: c.ID, Link: s.modelsLink(),
				Values: map[string]string{"time": mail.Time(c.AtMS)}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// modelsLink returns the address of the page with the prices.
func (s *Scheduler) modelsLink() string {
	return strings.TrimRight(s.PublicURL, "/") + "/console/models"
}
