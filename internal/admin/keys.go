package admin

import (
	"fmt"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// keyAnswer is a key (operator.md, Operator API). A limit or list that is not set is null.
type keyAnswer struct {
	ID            string        `json:"id"`
	Account       string        `json:"account"`
	Name          string        `json:"name"`
	Hint          string        `json:"hint"`
	Disabled      bool          `json:"disabled"`
	RPM           *int64        `json:"rpm"`
	DailyBudget   *money.Amount `json:"daily_budget_usd"`
	TotalLimit    *money.Amount `json:"total_limit_usd"`
	AllowedModels []string      `json:"allowed_models"`
	AllowedIPs    []string      `json:"allowed_ips"`
	Wait          bool          `json:"wait_for_pictures"`
	SpentToday    money.Amount  `json:"spent_today_usd"`
	Spent         money.Amount  `json:"spent_usd"`
	Held          money.Amount  `json:"held_usd"`
	Over          money.Amount  `json:"over_hold_usd"`
	LastUsed      *int64        `json:"last_used"`
	Created       int64         `json:"created"`
}

func showKey(k account.Key) keyAnswer {
	l := k.Ledger
	return keyAnswer{ID: k.ID, Account: k.Account, Name: k.Name, Hint: k.Hint, Disabled: l.Limits.Disabled,
		RPM: l.Limits.RPM, DailyBudget: l.Limits.DailyBudget, TotalLimit: l.Limits.TotalLimit,
		AllowedModels: k.AllowedModels, AllowedIPs: account.ShowIPs(k.AllowedIPs), Wait: k.WaitForPictures,
		SpentToday: l.SpentToday, Spent: l.Spent, Held: l.Held, Over: k.Over, LastUsed: nilIfZero(seconds(l.LastUsedMS)),
		Created: seconds(k.CreatedMS)}
}

// keyWithWarnings is a new or changed key with warnings about probable mistakes.
type keyWithWarnings struct {
	keyAnswer
	Warnings []string `json:"warnings,omitempty"`
}

// newKeyAnswer is a new key with its secret. Only the first answer has the secret.
type newKeyAnswer struct {
	keyWithWarnings
	Secret string `json:"key"`
}

func (k newKeyAnswer) withoutSecret() any { return k.keyWithWarnings }

// keyFields are the settable fields of a key. null clears a limit or a list.
func keyFields(k *account.KeySettings) []field {
	return []field{
		textField("name", &k.Name),
		countField("rpm", &k.RPM),
		moneyField("daily_budget_usd", &k.DailyBudget),
		moneyField("total_limit_usd", &k.TotalLimit),
		textsField("allowed_models", &k.AllowedModels),
		textsField("allowed_ips", &k.AllowedIPs),
		switchField("wait_for_pictures", &k.WaitForPictures),
	}
}

func (s *server) createKey(c *call) (any, error) {
	var settings account.KeySettings
	body, err := c.decodeBody(keyFields(&settings)...)
	if err != nil {
		return nil, err
	}
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		k, secret, err := operator.CreateKeyTx(tx, s.actor(c), c.id, settings)
		if err != nil {
			return nil, err
		}
		key, err := s.withWarningsTx(tx, body, k)
		return newKeyAnswer{key, secret}, err
	})
}

// withWarningsTx returns a key with a warning for each model of a new allowlist that is missing in the
// current catalog. Such a model is allowed, because a later catalog may add the model. Before the
// first catalog there are no warnings.
func (s *server) withWarningsTx(tx *store.Tx, body object, k account.Key) (keyWithWarnings, error) {
	out := keyWithWarnings{keyAnswer: showKey(k)}
	if _, isSet := body.members["allowed_models"]; !isSet {
		return out, nil
	}
	head, err := catalog.HeadTx(tx)
	if err != nil || head == 0 {
		return out, err
	}
	for _, model := range k.AllowedModels {
		m, err := s.archive.ModelTx(tx, head, model)
		if err != nil {
			return out, err
		}
		if m == nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("allowed_models: the catalog has no model %s, so the key cannot use it "+
				"until the catalog has it", model))
		}
	}
	return out, nil
}

func (s *server) listKeys(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := account.ListKeysTx(tx, c.id, after, limit)
		return newList(items, more, showKey), err
	})
}

// findKeys answers GET /keys with the keys of all accounts with a hint.
func (s *server) findKeys(c *call) (any, error) {
	values, after, limit, err := c.page("hint")
	if err != nil {
		return nil, err
	}
	hint := strings.TrimSpace(values.Get("hint"))
	if hint == "" {
		return nil, fault.At(fault.InvalidRequest, "hint",
			"hint is required: the visible part of a key, for example sk-ab12...wxyz. GET /admin/v1/accounts/{id}/keys lists keys.")
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := account.KeysByHintTx(tx, hint, after, limit)
		return newList(items, more, showKey), err
	})
}

func (s *server) getKey(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		k, err := account.GetKeyTx(tx, c.id)
		return showKey(k), err
	})
}

func (s *server) changeKey(c *call) (any, error) {
	body, err := c.readObject()
	if err != nil {
		return nil, err
	}
	// Also after an error, because the transaction may have been committed.
	defer s.Keys.Forget(c.id)
	return change(s, c, func(tx *store.Tx) (any, error) {
		k, err := operator.ChangeKeyTx(tx, s.actor(c), c.id, func(k *account.KeySettings) error {
			return body.decode(append(keyFields(k), switchField("disabled", &k.Disabled))...)
		})
		if err != nil {
			return nil, err
		}
		return s.withWarningsTx(tx, body, k)
	})
}

func (s *server) deleteKey(c *call) (any, error) {
	defer s.Keys.Forget(c.id)
	return change(s, c, func(tx *store.Tx) (any, error) {
		return deletedAnswer{c.id, true}, operator.DeleteKeyTx(tx, s.actor(c), c.id)
	})
}
