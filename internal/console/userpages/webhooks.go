package userpages

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// webhooksPage has the receiver of an account's events and the log of deliveries.
type webhooksPage struct {
	Form       ui.PostForm
	Secret     *ui.CopyField // nil unless the visitor has asked for it
	HasAddress bool          // an address is set
	Roll       ui.Confirm
	Receivers  ui.Snippets // example programs for receiving events
	IsNew      bool        // there are no deliveries yet
	Tabs       ui.Tabs
	Log        ui.DataTable
	Pager      ui.Pager
	Empty      *ui.EmptyState
}

// deliveryPage is one delivery with its attempts.
type deliveryPage struct {
	State    ui.Badge
	Facts    ui.Facts
	Attempts ui.DataTable
	Body     ui.Snippets // body of the event
	Resend   ui.Button
}

// eventLabels describe the events to choose from.
var eventLabels = map[string]ui.Words{
	webhook.VideoCompleted: "a video is done", webhook.VideoFailed: "a video failed", webhook.ImageCompleted: "an image is done",
	webhook.ImageFailed: "an image failed", webhook.BalanceLow: "the balance is low",
}

func webhookForm() ui.PostForm {
	f := ui.PostForm{Action: page.Base + "/webhooks", Submit: "Save", Fields: []ui.FormField{
		{Name: "url", Label: "Address", Kind: "url", Hint: "A public address of yours, https:// or http://. Leave empty to send nothing."},
		{Name: "events", Label: "Events", Kind: ui.Checks,
			Hint: "Tests are always sent. A job with a callback_url sends its events only there."},
		{Name: "balance_low_credits", Label: "Low balance", After: "credits", Numeric: true,
			Hint: "balance.low is sent when the balance falls below this value, and again after the next top-up. " +
				"Leave empty for never. 200 credits are $1."},
	}}
	for _, name := range webhook.Types() {
		if words := eventLabels[name]; words != "" {
			events := f.Field("events")
			events.Options = append(events.Options, ui.Option{Value: name, Label: ui.Sayf("%s: %s", name, words)})
		}
	}
	return f
}

func (c *console) webhooks(v *page.Visit) (page.Responder, error) { return c.storedWebhooks(v, nil) }

// storedWebhooks shows the page with the stored settings. If secret is not nil, the page shows the secret.
func (c *console) storedWebhooks(v *page.Visit, secret *ui.CopyField, notices ...ui.Notice) (page.FullPage, error) {
	form := webhookForm()
	if err := v.View(func(tx *store.Tx) error {
		e, err := webhook.EndpointOrZeroTx(tx, v.Account())
		if err != nil {
			return err
		}
		level, isSet, err := ledger.LowTx(tx, v.Account())
		if err != nil {
			return err
		}
		form.Field("url").Value = e.URL
		for i, o := range form.Field("events").Options {
			form.Field("events").Options[i].Selected = slices.Contains(e.Events, o.Value)
		}
		if isSet {
			form.Field("balance_low_credits").Value = level.Credits().String()
		}
		return nil
	}); err != nil {
		return page.FullPage{}, err
	}
	return c.webhooksWith(v, form, secret, notices...)
}

// webhooksWith shows the page with a form, which may have errors. If secret is not nil, the page shows the
// secret.
func (c *console) webhooksWith(
	v *page.Visit, form ui.PostForm, secret *ui.CopyField, notices ...ui.Notice,
) (page.FullPage, error) {
	content := webhooksPage{Form: form, Secret: secret}
	var err error
	if content.Receivers, err = receiverCodes(); err != nil {
		return page.FullPage{}, err
	}
	if content.Tabs, err = show.DeliveryTabs(v, "/webhooks"); err != nil {
		return page.FullPage{}, err
	}
	f := webhook.DeliveryFilter{Account: v.Account(), State: v.Query("state"), After: v.Query("after"), Limit: page.Rows}
	if err := v.View(func(tx *store.Tx) error {
		e, err := webhook.EndpointOrZeroTx(tx, v.Account())
		if err != nil {
			return err
		}
		content.HasAddress = e.URL != ""
		list, more, err := c.Webhooks.LogTx(tx, f)
		content.Log = show.Deliveries(list)
		for i, d := range list {
			content.Log.Rows[i].Href = page.Base + "/webhooks/deliveries/" + d.ID
		}
		content.Pager = v.Pager("/webhooks", more, page.Last(list, func(d webhook.Delivery) string { return d.ID }))
		return err
	}); err != nil {
		return page.FullPage{}, err
	}
	content.Roll = v.Confirm(ui.Confirm{ID: "roll", Button: "Roll the secret", Title: "Replace the signing secret?", Danger: true,
		Action: page.Base + "/webhooks/roll",
		Text: []ui.Words{"The current secret stops working immediately. New events are signed with the new one.",
			"Put it into your receiver."}})
	switch {
	case len(content.Log.Rows) > 0 || f.After != "":
	case f.State != "":
		content.Empty = page.NoneMatch("/webhooks", "All deliveries")
	default:
		content.IsNew = true
		content.Empty = &ui.EmptyState{Title: "Nothing was sent yet",
			Text: "Set an address, choose events and send a test. The test appears here with your receiver's answer."}
	}
	p := page.FullPage{Name: "webhooks", Title: "Webhooks", Main: content, Notices: notices}
	return p.WithNotice(v, map[string]ui.Words{"saved": "Saved. Events go there from now on."}), nil
}

func (c *console) saveWebhook(v *page.Visit) (page.Responder, error) {
	form := webhookForm()
	return v.Submit(&form, func() (page.Responder, error) {
		e := webhook.Endpoint{URL: strings.TrimSpace(form.Field("url").Value)}
		for _, o := range form.Field("events").Options {
			if o.Selected {
				e.Events = append(e.Events, o.Value)
			}
		}
		level, levelErr := lowLevel(form.Field("balance_low_credits").Value)
		return v.Done("/webhooks", "saved", func(tx *store.Tx) error {
			if levelErr == nil {
				if err := ledger.SetLowTx(tx, v.Account(), level); err != nil {
					return err
				}
			}
			stored, err := webhook.EndpointOrZeroTx(tx, v.Account())
			if err != nil {
				return err
			}
			// Events outside the form keep the setting made through the API.
			merged := e
			merged.Events = slices.Clone(e.Events)
			for _, name := range stored.Events {
				if eventLabels[name] == "" {
					merged.Events = append(merged.Events, name)
				}
			}
			_, err = c.Webhooks.PutEndpointTx(tx, v.Account(), merged)
			return errors.Join(levelErr, err) // either error rolls the transaction back
		})
	}, func() (page.FullPage, error) { return c.webhooksWith(v, form, nil) })
}

// lowLevel parses the level for balance.low, in credits. It returns nil if the text is empty.
func lowLevel(text string) (*money.Amount, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	level, err := money.ParseCredits(text)
	if err != nil || level < 0 {
		return nil, fault.At(fault.InvalidRequest, "balance_low_credits", "Low balance must be a number of credits, for example 500, or empty.")
	}
	return &level, nil
}

// showSecret shows the signing secret in the response to a form, so that the secret has no address of its own.
func (c *console) showSecret(v *page.Visit) (page.Responder, error) {
	e, err := page.Write(v, func(tx *store.Tx) (webhook.Endpoint, error) { return webhook.EndpointTx(tx, v.Account()) })
	if err != nil {
		return nil, err
	}
	return c.withSecret(v, e.Secret)
}

func (c *console) rollSecret(v *page.Visit) (page.Responder, error) {
	secret, err := page.Write(v, func(tx *store.Tx) (string, error) { return webhook.RollTx(tx, v.Account()) })
	if err != nil {
		return nil, err
	}
	return c.withSecret(v, secret, ui.Notice{Tone: ui.Warn, Focus: true, Title: "The secret was replaced.",
		Text: "The previous secret no longer works. Put the new one into your receiver."})
}

func (c *console) withSecret(v *page.Visit, secret string, notices ...ui.Notice) (page.Responder, error) {
	return c.storedWebhooks(v, &ui.CopyField{ID: "secret", Label: "Signing secret", Value: secret}, notices...)
}

func (c *console) testWebhook(v *page.Visit) (page.Responder, error) {
	result, err := c.Webhooks.Test(v.Context(), v.Account())
	var f *fault.Error
	switch {
	case errors.As(err, &f) && f.Status() < http.StatusInternalServerError:
		return c.storedWebhooks(v, nil, ui.Notice{Tone: ui.Bad, Text: ui.Data(f.Message()), Focus: true})
	case err != nil:
		return nil, err
	case result.Error == "":
		return c.storedWebhooks(v, nil, ui.Notice{Tone: ui.OK, Focus: true, Title: "Your receiver works.",
			Text: ui.Sayf("It answered %s in %s.", result.Status, ui.FormatDuration(result.ResponseMS))})
	}
	text := ui.Data(result.Error)
	if result.Status != 0 {
		text = ui.Sayf("It answered %s in %s. %s", result.Status, ui.FormatDuration(result.ResponseMS), result.Error)
	}
	return c.storedWebhooks(v, nil, ui.Notice{Tone: ui.Bad, Focus: true, Title: "The test was not delivered.", Text: text})
}

func (c *console) showDelivery(v *page.Visit) (page.Responder, error) {
	var d webhook.Delivery
	var body string
	if err := v.View(func(tx *store.Tx) (err error) {
		if d, err = c.Webhooks.OwnDeliveryTx(tx, v.Account(), v.PathID()); err != nil {
			return err
		}
		body, err = webhook.BodyTx(tx, d.ID)
		return err
	}); err != nil {
		return nil, err
	}
	content := deliveryPage{State: show.DeliveryState(d), Body: bodyCodes(body),
		Resend: ui.Button{Action: page.Base + "/webhooks/deliveries/" + d.ID + "/resend", Label: "Resend"}}
	content.Facts = ui.Facts{{Name: "Event", Value: d.Type}, {Name: "Event id", Value: ui.Ident{ID: d.Event}},
		{Name: "Address", Value: ui.Text{Text: ui.Data(d.URL), Mono: true}}, {Name: "Created", Value: ui.Moment{MS: d.CreatedMS}}}
	if d.NextMS != 0 {
		content.Facts = append(content.Facts, ui.Fact{Name: "Next attempt", Value: ui.Moment{MS: d.NextMS}})
	}
	content.Attempts = ui.DataTable{Caption: "Attempts", Columns: []ui.Column{
		{Title: "Attempt"}, {Title: "Time"}, {Title: "Status"}, {Title: "Duration", Right: true}, {Title: "What happened"}}}
	for i, a := range d.Attempts {
		status := ui.Badge{Tone: ui.Bad, Label: "no answer"}
		if a.Status != 0 {
			status = show.Status(a.Status, "")
			if a.Status >= http.StatusMultipleChoices {
				status.Tone = ui.Bad
			}
		}
		outcome := ui.Words("delivered")
		if a.Error != "" {
			outcome = show.AttemptError(a)
		}
		cells := []any{ui.Count{N: int64(i + 1)}, ui.Moment{MS: a.AtMS}, status, ui.Duration{MS: a.TookMS}, outcome}
		content.Attempts.Rows = append(content.Attempts.Rows, ui.DataRow{Cells: cells})
	}
	return page.FullPage{Name: "delivery", Title: ui.Sayf("Delivery of %s", d.Type), Main: content}.WithNotice(v, map[string]ui.Words{
		"sent": "It was sent again. The last attempt shows the result.",
	}), nil
}

// bodyCodes returns the body of an event, indented and as sent.
func bodyCodes(body string) ui.Snippets {
	codes := ui.Snippets{ID: "body", Tabs: []ui.Snippet{{Name: "As sent", Text: ui.Data(body)}}}
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(body), "", "  ") == nil {
		codes.Tabs = slices.Insert(codes.Tabs, 0, ui.Snippet{Name: "Formatted", Text: ui.Data(indented.String())})
	}
	return codes
}

// resendDelivery sends an event again, with the same id and bytes.
func (c *console) resendDelivery(v *page.Visit) (page.Responder, error) {
	d, err := page.Read(v, func(tx *store.Tx) (webhook.Delivery, error) {
		return c.Webhooks.OwnDeliveryTx(tx, v.Account(), v.PathID())
	})
	if err != nil {
		return nil, err
	}
	_, err = c.Webhooks.Resend(v.Context(), d.ID)
	return page.To("/webhooks/deliveries/"+d.ID, "sent"), err
}

// receivers has programs for receiving events. The guides have the same programs.
//
//go:embed receiver/receiver.*
var receivers embed.FS

// receiverCodes returns the example receivers. It returns an error if an embedded file is missing.
func receiverCodes() (ui.Snippets, error) {
	codes := ui.Snippets{ID: "receiver"}
	for _, example := range []struct{ name, file string }{{"Python", "py"}, {"Node", "mjs"}, {"Go", "go.txt"}, {"PHP", "php"}} {
		text, err := receivers.ReadFile("receiver/receiver." + example.file)
		if err != nil {
			return codes, err
		}
		codes.Tabs = append(codes.Tabs, ui.Snippet{Name: ui.Data(example.name), Text: ui.Data(string(text))})
	}
	return codes, nil
}
