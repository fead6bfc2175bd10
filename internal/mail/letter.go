package mail

import (
	"fmt"
	netmail "net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// LetterKind is the purpose of a mail. Its texts are in the folder texts.
type LetterKind string

// The kinds of mails.
const (
	Test               LetterKind = "test"                // for operators, to check the settings
	Invitation         LetterKind = "invitation"          // a link for a user without a password
	OperatorInvitation LetterKind = "operator_invitation" // the same for a new operator
	Reset              LetterKind = "password_reset"      // a link for a user with a forgotten password
	SignIn             LetterKind = "sign_in"             // a user signed in with a new browser
	SignUp             LetterKind = "sign_up"             // a link that verifies the address of a sign-up
	NewAddress         LetterKind = "new_address"         // a link that verifies the new address of a user
	OldAddress         LetterKind = "old_address"         // to the old address of a user who wants to change it
	KnownUser          LetterKind = "known_user"          // somebody signed up with the address of a user

	IdentityAdded   LetterKind = "identity_added"   // a user can sign in with an identity provider now
	IdentityRemoved LetterKind = "identity_removed" // a user can no longer sign in with an identity provider

	PaymentReceipt  LetterKind = "payment_receipt"  // a top-up is paid and credited
	PaymentRefund   LetterKind = "payment_refund"   // a refund took credit back
	PaymentDispute  LetterKind = "payment_dispute"  // a dispute took credit back
	PaymentRestored LetterKind = "payment_restored" // a refund or dispute has ended and gave credit back

	PaymentProblem LetterKind = "payment_problem" // for operators, about payments that need a person

	AutomaticTopup  LetterKind = "automatic_topup"        // a saved card was charged, and the top-up is credited
	AutomaticPaused LetterKind = "automatic_topup_paused" // no automatic top-up until the customer acts

	Invoice    LetterKind = "invoice"     // an invoice was issued
	CreditNote LetterKind = "credit_note" // a credit note was issued

	LowBalance      LetterKind = "low_balance"       // the balance fell below its level
	BudgetNear      LetterKind = "daily_budget_near" // much of a key's daily budget is spent
	BudgetUsed      LetterKind = "daily_budget_used" // a key's daily budget is used up
	LimitNear       LetterKind = "total_limit_near"  // much of a key's total limit is spent
	LimitUsed       LetterKind = "total_limit_used"  // a key's total limit is used up
	ReceiverFailing LetterKind = "webhook_failing"   // a receiver of webhooks fails

	PriceChange    LetterKind = "price_change"    // prices of models that a customer uses will change
	PriceWithdrawn LetterKind = "price_withdrawn" // an announced change of prices was cancelled

	Alert        LetterKind = "alert"                 // for operators, about a line
	ChangeFailed LetterKind = "catalog_change_failed" // for operators: a scheduled change was not applied
)

// Kinds returns all kinds.
func Kinds() []LetterKind {
	return []LetterKind{Test, Invitation, OperatorInvitation, Reset, SignIn, SignUp, NewAddress, OldAddress, KnownUser,
		IdentityAdded, IdentityRemoved,
		PaymentReceipt, PaymentRefund, PaymentDispute, PaymentRestored, AutomaticTopup, AutomaticPaused, Invoice, CreditNote,
		LowBalance, BudgetNear, BudgetUsed, LimitNear, LimitUsed, ReceiverFailing, PriceChange, PriceWithdrawn,
		Alert, ChangeFailed, PaymentProblem}
}

// hasLink reports whether the mails of a kind have a button.
func (k LetterKind) hasLink() bool {
	return k == PaymentProblem || k != Test && k.Topic() != OperatorTopic
}

// Topic is what a mail is about. Users choose among ChoosableTopics.
type Topic string

// The topics.
const (
	RequestTopic  Topic = "request"  // somebody asked for this mail
	SecurityTopic Topic = "security" // the safety of the reader's sign-in
	OperatorTopic Topic = "operator" // for the addresses in the setting alert_mail
	PaymentTopic  Topic = "payments"
	InvoiceTopic  Topic = "invoices"
	BalanceTopic  Topic = "balance"
	BudgetTopic   Topic = "budgets"
	WebhookTopic  Topic = "webhooks"
	PriceTopic    Topic = "prices"
)

// ChoosableTopics returns the topics that a user can decline, in the order of the console. All of them are
// about the user's account.
func ChoosableTopics() []Topic {
	return []Topic{PaymentTopic, InvoiceTopic, BalanceTopic, BudgetTopic, WebhookTopic, PriceTopic}
}

// Topic returns the topic of a kind.
func (k LetterKind) Topic() Topic {
	switch k {
	case Test, Invitation, OperatorInvitation, Reset, SignUp, KnownUser, NewAddress:
		return RequestTopic
	case SignIn, OldAddress, IdentityAdded, IdentityRemoved:
		return SecurityTopic
	case Alert, ChangeFailed, PaymentProblem:
		return OperatorTopic
	case Invoice, CreditNote:
		return InvoiceTopic
	case LowBalance:
		return BalanceTopic
	case BudgetNear, BudgetUsed, LimitNear, LimitUsed:
		return BudgetTopic
	case ReceiverFailing:
		return WebhookTopic
	case PriceChange, PriceWithdrawn:
		return PriceTopic
	}
	return PaymentTopic
}

// Letter is a mail before its texts are filled in.
type Letter struct {
	Kind LetterKind
	// Subject and Cause identify the mail among all mails of its kind. Subject is the user, key or
	// address, and Cause is the reported event. A second Letter with the same Kind, Subject and Cause is dropped.
	Subject, Cause string
	Account        string // of the reader; empty for an operator
	AccountName    string // replaces {account}; set in mails to the users of an account
	To             string // the reader's address
	Locale         Locale // of the texts; empty means English
	// Values replace the placeholders of the texts, such as {key}.
	Values map[string]string
	// Prices replace the paragraph {prices} of the texts.
	Prices []ModelPrices
	// Link is the address of the mail's button, if its kind has one.
	Link string
	// ExpiresMS is when a single-use Link expires, in Unix milliseconds; 0 for other links. After this
	// time, the mail is not sent. The text of the mail is deleted when the mail is sent or given up.
	ExpiresMS int64
}

// ModelPrices are the changed prices of a model.
type ModelPrices struct {
	Model   string
	Unit    string // one of PriceUnits, or a word that mails show as it is
	Changes []PriceRow
}

// PriceRow is a price before and after a change.
type PriceRow struct {
	Item          string // the text of the price has the key price.ITEM
	Name          string // replaces {name} in that text
	Tokens        string // the price is for prompts with more tokens; empty for all prompts
	Before, After string // empty if there is no such price
}

// USD formats an amount of credit for mails, in whole cents. The result is rounded half away from zero, as in the console.
func USD(a money.Amount) string {
	const cent = money.USD / 100
	cents, sign := a.Round(cent)/cent, ""
	if cents < 0 {
		cents, sign = -cents, "-"
	}
	return fmt.Sprintf("%s$%d.%02d", sign, cents/100, cents%100)
}

// Time formats a time for mails.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }

// maxAddress is the maximum length of an address in bytes, and maxLocal that of its part before the @
// (RFC 5321, 4.5.3.1).
const (
	maxAddress = 254
	maxLocal   = 64
)

// preferencesPath is the console's page on which users choose their mails.
const preferencesPath = "/console/settings/mails"

// ParseAddress checks a plain address such as name@example.com, without a name, brackets, spaces or an
// address literal.
func ParseAddress(text string) (string, error) {
	parsed, err := netmail.ParseAddress(text)
	local, domain, _ := strings.Cut(text, "@")
	if err != nil || parsed.Name != "" || parsed.Address != text || !utf8.ValidString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) ||
		len(text) > maxAddress || local == "" || len(local) > maxLocal || domain == "" || strings.ContainsAny(domain, "@[]") ||
		strings.HasPrefix(domain, ".") || strings.HasSuffix(domain, ".") {
		return "", fmt.Errorf("must be a plain address like name@example.com, at most %d bytes", maxAddress)
	}
	return text, nil
}

// EnqueueTx adds a mail to the outbox in the transaction of its cause. It does nothing if mail is off,
// or if the outbox has a mail of the same kind, subject and cause.
func (m *Mailer) EnqueueTx(tx *store.Tx, l Letter) error {
	if !m.On() {
		return nil
	}
	_, err := m.insertTx(tx, l)
	return err
}

const insertText = `INSERT INTO mail_outbox
	(id, cause, kind, account, recipient, subject, body_text, body_html, once, state, attempts, resends, error,
	created_ms, due_ms, ended_ms, expires_ms, lease, epoch, until_ms)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, '', $10, $10, 0, $11, '', '', 0) ON CONFLICT (cause) DO NOTHING`

// insertTx adds a mail and returns its id, or an empty id if the cause has a mail already.
func (m *Mailer) insertTx(tx *store.Tx, l Letter) (string, error) {
	if _, err := ParseAddress(l.To); err != nil {
		return "", fmt.Errorf("write a mail: %w", err)
	}
	now, err := tx.NowMS()
	if err != nil {
		return "", err
	}
	c, err := m.texts.render(m.opts, strings.TrimRight(m.opts.PublicURL, "/")+preferencesPath, l)
	if err != nil {
		return "", fmt.Errorf("write a mail: %w", err)
	}
	mailID := id.At("mail_", time.UnixMilli(now))
	added, err := tx.Exec(insertText, mailID, fmt.Sprintf("%s %s %s", l.Kind, l.Subject, l.Cause), string(l.Kind), l.Account, l.To,
		c.subject, c.text, c.html, store.Bool(l.ExpiresMS != 0), now, l.ExpiresMS)
	if err != nil {
		return "", fmt.Errorf("write a mail: %w", err)
	}
	if added == 0 {
		return "", nil
	}
	return mailID, nil
}
