package userpages

import (
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// mailsPath is the path of the page with a user's choices about mails. The page exists only if mail is on.
const mailsPath = "/settings/mails"

// topicLabels describe the topics of mails.
var topicLabels = map[mail.Topic]ui.Words{
	mail.PaymentTopic: "payments: receipts, refunds and disputes",
	mail.InvoiceTopic: "invoices and credit notes",
	mail.BalanceTopic: "a low balance",
	mail.BudgetTopic:  "budgets of keys: 80 % is spent, or all of it",
	mail.WebhookTopic: "a webhook receiver that fails",
	mail.PriceTopic:   "new prices of models that you use",
}

func (c *console) mailsForm() ui.PostForm {
	fallback := ui.Words("Leave empty for no warning.")
	if c.LowBalance > 0 {
		fallback = ui.Sayf("Leave empty for %s.", ui.USD(c.LowBalance))
	}
	form := ui.PostForm{Action: page.Base + mailsPath, Submit: "Save", Cancel: page.Base + "/settings", Fields: []ui.FormField{
		{Name: "topics", Label: "You get mails about", Kind: ui.Checks,
			Hint: "Mails about the security of your sign-in are always sent. Your colleagues choose for themselves."},
		{Name: "locale", Label: "Language of mails and of the console", Kind: ui.Choice},
		{Name: "level", Label: "Low balance", After: "USD", Numeric: true,
			Hint: ui.Sayf("Mails are sent when the balance falls below this amount. It counts for all users of the account, and for "+
				"the webhook event balance.low. %s", fallback)},
	}}
	for _, topic := range mail.ChoosableTopics() {
		topics := form.Field("topics")
		topics.Options = append(topics.Options, ui.Option{Value: string(topic), Label: topicLabels[topic]})
	}
	locales := form.Field("locale")
	locales.Options = []ui.Option{{Value: "", Label: "As in your browser"}}
	for _, locale := range mail.Locales() {
		locales.Options = append(locales.Options, ui.Option{Value: string(locale), Label: page.LanguageName(locale)})
	}
	return form
}

func mailsPage(form ui.PostForm) page.FullPage { return page.FormPage("Your mails", form) }

// showMails shows the visitor's choices about mails.
func (c *console) showMails(v *page.Visit) (page.Responder, error) {
	form := c.mailsForm()
	err := v.View(func(tx *store.Tx) error {
		p, err := account.MailPreferencesTx(tx, v.Session.User.ID)
		if err != nil {
			return err
		}
		topics := form.Field("topics")
		for i, o := range topics.Options {
			topics.Options[i].Selected = !slices.Contains(p.Declined, mail.Topic(o.Value))
		}
		locales := form.Field("locale")
		for i, o := range locales.Options {
			locales.Options[i].Selected = o.Value == string(p.Locale)
		}
		level, isSet, err := ledger.LowTx(tx, v.Account())
		if isSet {
			form.Field("level").Value = level.String()
		}
		return err
	})
	return mailsPage(form).WithNotice(v, map[string]ui.Words{"saved": "Saved."}), err
}

func (c *console) saveMails(v *page.Visit) (page.Responder, error) {
	form := c.mailsForm()
	return v.Submit(&form, func() (page.Responder, error) {
		if !slices.ContainsFunc(form.Field("locale").Options, func(o ui.Option) bool { return o.Selected }) {
			return nil, fault.At(fault.InvalidRequest, "locale", "Choose one of the languages.")
		}
		p := account.MailPreferences{Locale: mail.Locale(form.Field("locale").Value)}
		for _, o := range form.Field("topics").Options {
			if !o.Selected {
				p.Declined = append(p.Declined, mail.Topic(o.Value))
			}
		}
		var level *money.Amount
		if text := strings.TrimSpace(form.Field("level").Value); text != "" {
			amount, err := money.Parse(text)
			if err != nil || amount < 0 {
				return nil, fault.At(fault.InvalidRequest, "level", "level must be an amount in USD, for example 5, or empty.")
			}
			level = &amount
		}
		return v.Done(mailsPath, "saved", func(tx *store.Tx) error {
			if err := account.SetMailPreferencesTx(tx, v.Session.User.ID, p); err != nil {
				return err
			}
			old, isSet, err := ledger.LowTx(tx, v.Account())
			if err != nil || isSet == (level != nil) && (level == nil || old == *level) {
				return err // SetLowTx would reset the state of an unchanged level
			}
			return ledger.SetLowTx(tx, v.Account(), level)
		})
	}, func() (page.FullPage, error) { return mailsPage(form), nil })
}
