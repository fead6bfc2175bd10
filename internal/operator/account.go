package operator

import (
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
	"tollgate/internal/webhook"
)

func accountDetails(a account.Account) Details {
	f := Details{"name": a.Name, "email": a.Email, "disabled": a.Money.Disabled, "overdraft_floor_usd": a.Money.Floor,
		"price_factor": a.Prices.Factor}
	if len(a.Prices.Models) > 0 {
		f["prices"] = a.Prices.Models
	}
	if a.Test {
		f["test"] = true
	}
	if a.Note != "" {
		f["note"] = a.Note
	}
	return f
}

// CreateAccountTx opens an account and creates its webhook secret.
func CreateAccountTx(tx *store.Tx, by Actor, o account.NewAccount) (account.Account, error) {
	a, err := account.CreateTx(tx, o)
	if err != nil {
		return a, err
	}
	if err := webhook.OpenTx(tx, a.ID); err != nil {
		return a, err
	}
	after := accountDetails(a)
	after["sign_in"] = o.PasswordHash != ""
	return a, writeLogTx(tx, by, LogRow{Act: AccountCreate, Object: a.ID, Account: a.ID, After: after})
}

// ChangeAccountTx changes an account. Call Keys.ForgetAccount after the commit.
func ChangeAccountTx(tx *store.Tx, by Actor, id string, p account.Patch) (account.Account, error) {
	before, err := account.LockTx(tx, id)
	if err != nil {
		return before, err
	}
	after, err := account.ChangeTx(tx, id, p)
	if err != nil {
		return after, err
	}
	return after, writeLogTx(tx, by, LogRow{Act: AccountChange, Object: id, Account: id,
		Before: accountDetails(before), After: accountDetails(after)})
}

// Limits of a credit's texts in characters.
const (
	maxNote      = 500
	maxReference = 200
)

// Credit is an amount given by an operator, or taken back if negative. The account's users can read
// its note and its reference.
type Credit struct {
	USD       money.Amount
	Note      string
	Reference string // see ledger.Payment
	Paid      bool   // the customer has paid the credit
}

// Check normalizes the texts. It returns the joined errors of the fields usd, note and reference.
func (c *Credit) Check() error {
	var usd, note error
	if c.USD == 0 {
		usd = fault.At(fault.InvalidRequest, "usd",
			"The amount (usd) must not be 0. Send the US dollars to add, or a negative amount to subtract.")
	}
	c.Note, note = checkLine("note", c.Note, maxNote)
	if note == nil && account.IsCodeNote(c.Note) {
		note = fault.At(fault.InvalidRequest, "note", "note begins like the note of a redeemed code, so the audit would look for that code. "+
			"Use other words, for example: in place of %s", strings.Fields(c.Note)[1])
	}
	if note == nil && topup.IsNote(c.Note) {
		note = fault.At(fault.InvalidRequest, "note", "note begins like the note of a top-up, so the audit would look for that top-up. "+
			"Use other words.")
	}
	var reference error
	c.Reference, reference = checkLine("reference", c.Reference, maxReference)
	return errors.Join(usd, note, reference)
}

// checkLine returns a text without surrounding blanks. It returns an error unless the text is one
// visible line of at most limit characters.
func checkLine(param, text string, limit int) (string, error) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return text, fault.At(fault.InvalidRequest, param, "{param} must be one line of at most %d characters.", limit)
	}
	return text, account.CheckVisible(param, text)
}

// CreditResult is the result of CreditTx.
type CreditResult struct {
	Balance  money.Amount // after the credit
	Repeated bool         // an earlier credit had this reference, account and amount; nothing was moved
	Low      bool         // CreditTx has written a balance.low event: call Webhooks.Wake after the commit
}

// CreditTx books a credit that has passed Check. A repetition of a credit with a reference returns
// the balance after that credit and changes nothing.
func CreditTx(tx *store.Tx, by Actor, id string, c Credit) (CreditResult, error) {
	if _, err := account.GetTx(tx, id); err != nil {
		return CreditResult{}, err
	}
	m, err := ledger.MoveTx(tx, id, ledger.Payment{Amount: c.USD, Note: c.Note, Reference: c.Reference, Paid: c.Paid})
	var used *ledger.ReferenceError
	switch {
	case errors.Is(err, ledger.ErrRange):
		return CreditResult{}, fault.At(fault.InvalidRequest, "usd",
			"This would move the balance out of its range, -%[1]s to %[1]s US dollars. Choose a smaller amount.", money.Max)
	case errors.As(err, &used):
		return CreditResult{}, referenceUsed(used)
	case err != nil || m.Repeated:
		return CreditResult{Balance: m.Balance, Repeated: m.Repeated}, err
	case m.Low != nil:
		if err := webhook.EmitLowTx(tx, m.Low.Account, m.Low.Balance, m.Low.Level); err != nil {
			return CreditResult{}, err
		}
	}
	after := Details{"balance_usd": m.Balance, "usd": c.USD, "note": c.Note}
	if c.Reference != "" {
		after["reference"] = c.Reference
	}
	if c.Paid {
		after["paid"] = true
	}
	return CreditResult{Balance: m.Balance, Low: m.Low != nil}, writeLogTx(tx, by, LogRow{Act: AccountCredit, Object: id, Account: id,
		Before: Details{"balance_usd": m.Balance - c.USD}, After: after})
}

// referenceUsed returns the error for a reference of another movement.
func referenceUsed(e *ledger.ReferenceError) error {
	return fault.At(fault.InvalidRequest, "reference", "This reference already belongs to a credit of %s USD to account %s (%s UTC), "+
		"and a payment can be credited only once. Nothing was moved. If this is another payment, send its own reference.",
		e.Amount, e.Account, time.UnixMilli(e.CreatedMS).UTC().Format("2006-01-02 15:04:05"))
}

// keyDetails describes the settings of a key, without unset limits.
func keyDetails(s *account.KeySettings) Details {
	f := Details{"name": s.Name, "disabled": s.Disabled}
	if s.WaitForPictures {
		f["wait_for_pictures"] = true
	}
	if s.RPM != nil {
		f["rpm"] = *s.RPM
	}
	if s.DailyBudget != nil {
		f["daily_budget_usd"] = *s.DailyBudget
	}
	if s.TotalLimit != nil {
		f["total_limit_usd"] = *s.TotalLimit
	}
	if s.AllowedModels != nil {
		f["allowed_models"] = s.AllowedModels
	}
	if s.AllowedIPs != nil {
		f["allowed_ips"] = s.AllowedIPs
	}
	return f
}

// CreateKeyTx creates a key and returns it with its secret. The secret is not stored.
func CreateKeyTx(tx *store.Tx, by Actor, id string, s account.KeySettings) (account.Key, string, error) {
	k, secret, err := account.CreateKeyTx(tx, id, s)
	if err != nil {
		return k, "", err
	}
	return k, secret, writeLogTx(tx, by, LogRow{Act: KeyCreate, Object: k.ID, Account: k.Account, After: keyDetails(&s)})
}

// ImportKeyTx creates a key with a secret of another program; see account.ImportKeyTx.
func ImportKeyTx(tx *store.Tx, by Actor, id string, s account.KeySettings, p account.Proof) (account.Key, error) {
	k, err := account.ImportKeyTx(tx, id, s, p)
	if err != nil {
		return k, err
	}
	after := keyDetails(&s)
	after["imported"] = true
	return k, writeLogTx(tx, by, LogRow{Act: KeyCreate, Object: k.ID, Account: k.Account, After: after})
}

// ChangeKeyTx applies edit to the settings of a key; see account.ChangeKeyTx.
func ChangeKeyTx(tx *store.Tx, by Actor, key string, edit func(*account.KeySettings) error) (account.Key, error) {
	var before, after Details
	k, err := account.ChangeKeyTx(tx, key, func(s *account.KeySettings) error {
		before = keyDetails(s)
		err := edit(s)
		after = keyDetails(s)
		return err
	})
	if err != nil {
		return k, err
	}
	return k, writeLogTx(tx, by, LogRow{Act: KeyChange, Object: key, Account: k.Account, Before: before, After: after})
}

// DeleteKeyTx deletes a key permanently. Call Keys.Forget after the commit.
func DeleteKeyTx(tx *store.Tx, by Actor, key string) error {
	k, err := account.GetKeyTx(tx, key)
	if err != nil {
		return err
	}
	if err := account.DeleteKeyTx(tx, key); err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: KeyDelete, Object: key, Account: k.Account, Before: Details{"name": k.Name, "hint": k.Hint}})
}

// ChangeWebhookTx runs change and logs the difference. change sets the webhook of an account.
// ChangeWebhookTx returns an error if the account does not exist.
func ChangeWebhookTx(tx *store.Tx, by Actor, id string, change func() error) error {
	if _, err := account.LockTx(tx, id); err != nil {
		return err
	}
	before, err := webhookDetailsTx(tx, id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := webhookDetailsTx(tx, id)
	if err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: WebhookChange, Object: id, Account: id, Before: before, After: after})
}

func webhookDetailsTx(tx *store.Tx, id string) (Details, error) {
	e, err := webhook.EndpointTx(tx, id)
	if err != nil {
		return nil, err
	}
	level, set, err := ledger.LowTx(tx, id)
	if err != nil {
		return nil, err
	}
	f := Details{"url": e.URL, "events": append([]string{}, e.Events...)}
	if set {
		f["balance_low_credits"] = level.Credits()
	}
	return f, nil
}

// RollWebhookTx gives an account a new signing secret. It returns an error if the account does not
// exist.
func RollWebhookTx(tx *store.Tx, by Actor, id string) error {
	if _, err := account.GetTx(tx, id); err != nil {
		return err
	}
	if _, err := webhook.RollTx(tx, id); err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: WebhookRoll, Object: id, Account: id})
}
