package admin

import (
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// accountAnswer is an account (operator.md, Operator API).
type accountAnswer struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Email    *string      `json:"email"`
	Disabled bool         `json:"disabled"`
	Balance  money.Amount `json:"balance_usd"`
	Held     money.Amount `json:"held_usd"`
	Over     money.Amount `json:"over_hold_usd"`
	Floor    money.Amount `json:"overdraft_floor_usd"`
	// Factor and Prices multiply the catalog's prices for the account.
	Factor money.Factor            `json:"price_factor"`
	Prices map[string]money.Factor `json:"prices"`
	// Unreadable is the error in the stored prices.
	Unreadable string `json:"prices_unreadable,omitempty"`
	Test       bool   `json:"test"`
	Created    int64  `json:"created"`
}

func showAccount(a account.Account) accountAnswer {
	prices := a.Prices.Models
	if prices == nil {
		prices = map[string]money.Factor{}
	}
	return accountAnswer{ID: a.ID, Name: a.Name, Email: nilIfZero(a.Email), Disabled: a.Money.Disabled,
		Balance: a.Money.Balance, Held: a.Money.Held, Over: a.Over, Floor: a.Money.Floor, Factor: a.Prices.Factor, Prices: prices,
		Unreadable: a.Prices.Unreadable, Test: a.Test, Created: seconds(a.CreatedMS)}
}

func (s *server) createAccount(c *call) (any, error) {
	var o account.NewAccount
	var password *string
	var floor *money.Amount
	var test *bool
	body, err := c.decodeBody(textField("name", &o.Name), textField("email", &o.Email),
		optionalTextField("password", &password), moneyField("overdraft_floor_usd", &floor),
		factorField("price_factor", &o.Factor), factorsField("prices", func(v map[string]money.Factor) { o.Prices = v }),
		flagField("test", &test))
	if err != nil {
		return nil, err
	}
	if floor != nil {
		o.Floor = *floor
	}
	o.Test = test != nil && *test
	if password != nil {
		if o.PasswordHash, err = s.Passwords.Hash(c.ctx, *password); err != nil {
			return nil, err
		}
	}
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		a, err := operator.CreateAccountTx(tx, s.actor(c), o)
		return showAccount(a), err
	})
}

func (s *server) listAccounts(c *call) (any, error) {
	values, after, limit, err := c.page("q")
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		if q := strings.TrimSpace(values.Get("q")); q != "" {
			items, more, err := account.SearchTx(tx, q, after, limit)
			return newList(items, more, showAccount), err
		}
		items, more, err := account.ListTx(tx, after, limit)
		return newList(items, more, showAccount), err
	})
}

func (s *server) getAccount(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		a, err := account.GetTx(tx, c.id)
		return showAccount(a), err
	})
}

func (s *server) changeAccount(c *call) (any, error) {
	var ch account.Patch
	if _, err := c.decodeBody(optionalTextField("name", &ch.Name), optionalTextField("email", &ch.Email), flagField("disabled", &ch.Disabled),
		moneyField("overdraft_floor_usd", &ch.Floor), factorField("price_factor", &ch.Factor),
		factorsField("prices", func(v map[string]money.Factor) { ch.Prices = &v }),
		flagField("test", &ch.Test)); err != nil {
		return nil, err
	}
	// Also after an error, because the transaction may have been committed.
	defer s.Keys.ForgetAccount(c.id)
	return change(s, c, func(tx *store.Tx) (any, error) {
		a, err := operator.ChangeAccountTx(tx, s.actor(c), c.id, ch)
		return showAccount(a), err
	})
}
