// Package userpages owns the console's pages for accounts' users. Each page has a file of handlers, and a
// template in html/ made of the components of package ui. The package has no rules about money, keys or
// receivers, because its pages call the same functions as the API.
//
// Invariants: a page shows only objects of the visitor's account, and the account comes from the session, never
// from the request; GET changes nothing; a secret is shown only in the response to its creation; no page shows
// lines or a provider's words.
package userpages

import (
	"embed"

	"tollgate/internal/account"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
)

//go:embed html/*.html
var embedded embed.FS

// console serves the users' pages.
type console struct {
	page.Options
	archive offer.Archive
}

// Section returns the pages and their menu.
func Section(o page.Options) page.Section {
	c := &console{Options: o}
	return page.Section{Kind: account.UserSession, Handlers: c.handlers(), Public: []page.Handler{
		page.Get(pricesPath, page.OnlyIf(o.PublicPrices, c.publicPrices)),
		page.Get(page.StatusPath, page.OnlyIf(o.Availability != nil, c.status))}, Menu: menu(), Find: "/find", Templates: embedded}
}

func (c *console) handlers() []page.Handler {
	return []page.Handler{
		page.Action("/settings/link/{id}", c.identifying(c.linkProvider)),
		page.Action("/settings/identities/{id}/unlink", c.identifying(c.unlinkIdentity)),
		page.Get(confirmPath, c.identifying(c.showConfirm)),
		page.Post(confirmPath, c.identifying(c.confirm)),
		page.Post(confirmPath+"/{id}", c.identifying(c.confirmByProvider)),
		page.Get("", c.overview),
		page.Get("/find", c.find),
		page.Post(page.DismissPath, page.DismissAnnouncement),

		page.Get("/keys", c.listKeys),
		page.Get("/keys/new", c.newKey),
		page.Post("/keys/new", c.createKey),
		page.Get("/keys/{id}", c.showKey),
		page.Post("/keys/{id}", c.changeKey),
		page.Action("/keys/{id}/disable", c.disableKey),
		page.Action("/keys/{id}/enable", c.enableKey),
		page.Post("/keys/{id}/delete", c.deleteKey),
		page.Get("/keys/{id}/arrival", c.keyArrival),

		page.Get("/requests", c.listRequests),
		page.Get("/requests/table", c.downloadRequests),
		page.Get("/requests/{id}", c.showRequest),

		page.Get("/usage", c.usage),
		page.Get("/usage/table", c.downloadUsage),

		page.Get("/billing", c.billing),
		page.Get("/billing/movements", c.downloadMovements),
		page.Post("/billing/redeem", c.redeem),
		page.Get("/billing/top-ups", c.paying(c.listTopups)),
		page.Get("/billing/top-ups/new", c.paying(c.newTopup)),
		page.Post("/billing/top-ups/new", c.paying(c.createTopup)),
		page.Get("/billing/automatic", c.paying(c.automatic)),
		page.Post("/billing/automatic", c.saving(c.switchOn)),
		page.Action("/billing/automatic/off", c.paying(c.switchOff)),
		page.Action("/billing/automatic/remove", c.paying(c.removeCard)),
		page.Get("/billing/top-ups/{id}", c.paying(c.showTopup)),
		page.Action("/billing/top-ups/{id}/check", c.paying(c.checkTopup)),
		page.Get(invoicesPath, c.OnlyInvoicing(c.listInvoices)),
		page.Get(invoicesPath+"/details", c.OnlyInvoicing(c.invoiceDetails)),
		page.Post(invoicesPath+"/details", c.OnlyInvoicing(c.saveInvoiceDetails)),
		page.Get(invoicesPath+"/{id}", c.OnlyInvoicing(c.showInvoice)),
		page.Get(invoicesPath+"/{id}/pdf", c.OnlyInvoicing(c.downloadInvoice)),
		page.Get("/billing/statements", c.listStatements),
		page.Get("/billing/statements/{id}", c.showStatement),
		page.Get("/billing/statements/{id}/table", c.downloadStatement),

		page.Get("/jobs", c.listJobs),
		page.Get("/jobs/live", c.liveJobs),
		page.Get("/jobs/{id}", c.showJob),
		page.Get("/jobs/{id}/live", c.liveJob),

		page.Get("/playground", c.playground),
		page.Get("/playground/{id}/cost", c.cost),
		page.Post("/playground/{id}/chat", c.forwardWithKey("/v1/chat/completions")),
		page.Post("/playground/{id}/responses", c.forwardWithKey("/v1/responses")),
		page.Post("/playground/{id}/messages", c.forwardWithKey("/native/v1/messages")),
		page.Post("/playground/{id}/images", c.forwardWithKey("/v1/images/generations")),
		page.Post("/playground/{id}/videos", c.forwardWithKey("/v1/videos/generations")),
		page.Post("/playground/{id}/embeddings", c.forwardWithKey("/v1/embeddings")),
		page.Post("/playground/{id}/rerank", c.forwardWithKey("/v1/rerank")),
		page.Post("/playground/{id}/moderations", c.forwardWithKey("/v1/moderations")),
		page.Post("/playground/{id}/speech", c.forwardWithKey("/v1/audio/speech")),
		page.Post("/playground/{id}/transcriptions", c.forwardWithKey("/v1/audio/transcriptions")),

		page.Get("/webhooks", c.webhooks),
		page.Post("/webhooks", c.saveWebhook),
		page.Action("/webhooks/secret", c.showSecret),
		page.Action("/webhooks/roll", c.rollSecret),
		page.Action("/webhooks/test", c.testWebhook),
		page.Get("/webhooks/deliveries/{id}", c.showDelivery),
		page.Action("/webhooks/deliveries/{id}/resend", c.resendDelivery),

		page.Get("/models", c.models),

		page.Get("/settings", c.settings),
		page.Post("/settings/password", c.changePassword),
		page.Post("/settings/email", c.mailing(c.changeAddress)),
		page.Get("/settings/email", c.mailing(c.newAddressPage)),
		page.Post("/settings/email/check", c.mailing(c.checkAddress)),
		page.Post("/settings/email/confirm", c.mailing(c.verifyAddress)),
		page.Get("/settings/factor", c.showFactor),
		page.Post("/settings/factor", c.beginFactor),
		page.Post("/settings/factor/confirm", c.confirmFactor),
		page.Post("/settings/factor/recovery", c.renewRecovery),
		page.Post("/settings/factor/off", c.endFactor),
		page.Action("/settings/sessions/end", page.EndSessions),
		page.Action("/settings/sessions/{id}/end", page.EndSession("/settings")),
		page.Post("/settings/users", c.addUser),
		page.Action("/settings/users/{id}/disable", c.disableUser),
		page.Action("/settings/users/{id}/enable", c.enableUser),
		page.Action("/settings/users/{id}/delete", c.deleteUser),
		page.Get(mailsPath, c.mailing(c.showMails)),
		page.Post(mailsPath, c.mailing(c.saveMails)),
	}
}

func menu() []ui.NavItem {
	return []ui.NavItem{
		{Href: page.Base + "", Text: "Overview", Icon: "layout-dashboard"},
		{Href: page.Base + "/keys", Text: "Keys", Icon: "key-round"},
		{Href: page.Base + "/requests", Text: "Requests", Icon: "list"},
		{Href: page.Base + "/usage", Text: "Usage", Icon: "chart-column"},
		{Href: page.Base + "/billing", Text: "Billing", Icon: "receipt"},
		{Href: page.Base + "/jobs", Text: "Jobs", Icon: "images"},
		{Href: page.Base + "/webhooks", Text: "Webhooks", Icon: "webhook"},
		{Href: page.Base + "/models", Text: "Models", Icon: "boxes"},
		{Href: page.Base + "/playground", Text: "Playground", Icon: "play"},
		{Href: page.Base + "/settings", Text: "Settings", Icon: "settings"},
	}
}
