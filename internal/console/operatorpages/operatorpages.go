// Package operatorpages owns the console's pages for operators. Each page has a file of handlers, and a
// template in html/ made of the components of package ui. The package has no rules of its own: package operator
// does all actions, and logs them.
//
// Invariants: GET changes nothing; the transaction of an action also logs the action and its operator; a
// repeated form moves money only once, and taking money back requires the operator's secret; a key's secret or
// a user's link is shown only in the response to its creation.
package operatorpages

import (
	"context"
	"embed"
	"slices"
	"sync/atomic"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
)

//go:embed html/*.html
var embedded embed.FS

// console serves the operators' pages.
type console struct {
	page.Options
	month     chartCache
	archive   offer.Archive // former catalogs
	setupDone atomic.Bool   // set after the last step of setup
}

// Section returns the pages and their menu.
func Section(o page.Options) page.Section {
	c := &console{Options: o}
	return page.Section{Kind: account.OperatorSession, Path: "/operator", Handlers: c.handlers(), Menu: menu(o),
		Find: "/operator/find", Templates: embedded}
}

// handlers returns the handlers with the roles that they need. Support may see everything. An action needs a
// higher role if it moves money, or changes what customers or operators can do.
func (c *console) handlers() []page.Handler {
	const support, operator, owner = account.Support, account.Operator, account.Owner
	return []page.Handler{
		page.Get("/operator", c.home).Needs(support),
		page.Get("/operator/live", c.liveHome).Needs(support),
		page.Get("/operator/live/lines", c.liveLines).Needs(support),
		page.Get("/operator/live/books", c.liveBooks).Needs(support),
		page.Get("/operator/find", c.find).Needs(support),

		page.Get("/operator/lines", c.listLines).Needs(support),
		page.Get("/operator/lines/{id}", c.showLine).Needs(support),
		page.Action("/operator/lines/{id}/drain", c.drainLine).Needs(operator),
		page.Action("/operator/lines/{id}/resume", c.resumeLine).Needs(operator),

		page.Get("/operator/accounts", c.listAccounts).Needs(support),
		page.Get("/operator/accounts/new", c.newAccount).Needs(operator),
		page.Post("/operator/accounts/new", c.createAccount).Needs(operator),
		page.Get("/operator/accounts/{id}", c.showAccount).Needs(support),
		page.Post("/operator/accounts/{id}", c.changeAccount).Needs(operator),
		page.Post("/operator/accounts/{id}/prices", c.savePrices).Needs(operator),
		page.Post("/operator/accounts/{id}/note", c.saveNote).Needs(operator),
		page.Post("/operator/accounts/{id}/credit", c.creditAccount).Needs(operator),
		page.Action("/operator/accounts/{id}/disable", c.disableAccount).Needs(operator),
		page.Action("/operator/accounts/{id}/enable", c.enableAccount).Needs(operator),
		page.Post("/operator/accounts/{id}/keys", c.createKey).Needs(operator),
		page.Post("/operator/accounts/{id}/users", c.addAccountUser).Needs(operator),
		page.Get("/operator/keys/{id}", c.showKey).Needs(support),
		page.Post("/operator/keys/{id}", c.changeKey).Needs(operator),
		page.Action("/operator/keys/{id}/disable", c.disableKey).Needs(operator),
		page.Action("/operator/keys/{id}/enable", c.enableKey).Needs(operator),
		page.Post("/operator/keys/{id}/delete", c.deleteKey).Needs(operator),
		page.Action("/operator/users/{id}/disable", c.disableUser).Needs(operator),
		page.Action("/operator/users/{id}/enable", c.enableUser).Needs(operator),
		page.Action("/operator/users/{id}/delete", c.deleteUser).Needs(operator),
		page.Action("/operator/users/{id}/factor/off", c.endFactor).Needs(operator),
		page.Action("/operator/users/{id}/link", c.linkUser).Needs(support),
		page.Action("/operator/identities/{id}/unlink", c.unlinkUser).Needs(operator),

		page.Get("/operator/deliveries", c.listDeliveries).Needs(support),
		page.Action("/operator/deliveries/{id}/resend", c.resendDelivery).Needs(support),

		page.Get(mailsPath, c.mailing(c.listMails)).Needs(support),
		page.Get(mailsPath+"/test", c.mailing(c.newTestMail)).Needs(operator),
		page.Post(mailsPath+"/test", c.mailing(c.sendTestMail)).Needs(operator),
		page.Action(mailsPath+"/{id}/resend", c.mailing(c.resendMail)).Needs(support),

		page.Get(announcementsPath, c.listAnnouncements).Needs(support),
		page.Get(announcementsPath+"/new", c.newAnnouncement).Needs(operator),
		page.Post(announcementsPath+"/new", c.createAnnouncement).Needs(operator),
		page.Get(announcementsPath+"/{id}", c.showAnnouncement).Needs(support),
		page.Post(announcementsPath+"/{id}", c.changeAnnouncement).Needs(operator),
		page.Action(announcementsPath+"/{id}/end", c.endAnnouncement).Needs(operator),
		page.Action(announcementsPath+"/{id}/delete", c.deleteAnnouncement).Needs(operator),

		page.Get("/operator/codes", c.listCodes).Needs(support),
		page.Get("/operator/codes/new", c.newCodes).Needs(operator),
		page.Post("/operator/codes/new", c.createCodes).Needs(operator),
		page.Action("/operator/codes/{id}/void", c.voidCode).Needs(operator),

		page.Get("/operator/top-ups", c.paying(c.listTopups)).Needs(support),
		page.Get("/operator/top-ups/table", c.paying(c.downloadTopups)).Needs(support),
		page.Get("/operator/top-ups/reconciliation", c.paying(c.reconcile)).Needs(support),
		page.Get("/operator/top-ups/{id}", c.paying(c.showTopup)).Needs(support),
		page.Post("/operator/top-ups/{id}/refund", c.paying(c.refundTopup)).Needs(operator),
		page.Action("/operator/top-ups/{id}/check", c.paying(c.checkTopup)).Needs(support),
		page.Action("/operator/top-ups/problems/{id}/close", c.paying(c.closeProblem)).Needs(operator),

		page.Get(invoicesPath, c.OnlyInvoicing(c.listInvoices)).Needs(support),
		page.Get(invoicesPath+"/table", c.OnlyInvoicing(c.downloadInvoices)).Needs(support),
		page.Get(invoicesPath+"/files", c.OnlyInvoicing(c.zipInvoices)).Needs(support),
		page.Get(invoicesPath+"/{id}", c.OnlyInvoicing(c.showInvoice)).Needs(support),
		page.Get(invoicesPath+"/{id}/pdf", c.OnlyInvoicing(c.downloadInvoice)).Needs(support),

		page.Get("/operator/requests", c.listRequests).Needs(support),
		page.Get("/operator/requests/{id}", c.showRequest).Needs(support),
		page.Get("/operator/jobs", c.listJobs).Needs(support),
		page.Get("/operator/jobs/{id}", c.showJob).Needs(support),
		page.Action("/operator/jobs/{id}/cancel", c.cancelJob).Needs(operator),
		page.Post("/operator/jobs/{id}/requeue", c.requeueJob).Needs(operator),

		page.Get(statementsPath, c.showStatements).Needs(support),
		page.Get(statementsPath+"/table", c.downloadStatement).Needs(support),
		page.Get(statementsPath+"/file", c.printStatement).Needs(support),
		page.Action("/operator/entries/{id}/paid", c.markEntry(true)).Needs(operator),
		page.Action("/operator/entries/{id}/unpaid", c.markEntry(false)).Needs(operator),
		page.Post("/operator/entries/{id}/invoice", c.OnlyInvoicing(c.issueInvoice)).Needs(operator),

		page.Get("/operator/usage", c.usage).Needs(support),
		page.Get("/operator/usage/table", c.downloadUsage).Needs(support),

		page.Get("/operator/catalog", c.showCatalog).Needs(support),
		page.Get("/operator/catalog/edit", c.editCatalog).Needs(operator),
		page.Post("/operator/catalog/edit", c.putCatalog).Needs(operator),
		page.Get("/operator/catalog/revisions/{id}", c.showRevision).Needs(support),
		page.Post("/operator/catalog/revisions/{id}/apply", c.rollBack).Needs(operator),
		page.Post(changesPath, c.scheduleCatalog).Needs(operator),
		page.Get(changesPath+"/{id}", c.showChange).Needs(support),
		page.Post(changesPath+"/{id}/cancel", c.cancelChange).Needs(operator),
		page.Post("/operator/catalog/sandbox/retire", c.retireSandbox).Needs(operator),
		page.Post("/operator/catalog/models/{id}/open", c.switchModel(catalog.StateOpen)).Needs(operator),
		page.Post("/operator/catalog/models/{id}/maintenance", c.switchModel(catalog.StateMaintenance)).Needs(operator),
		page.Post("/operator/catalog/models/{id}/coming_soon", c.switchModel(catalog.StateComingSoon)).Needs(operator),
		page.Post("/operator/catalog/models/{id}/retired", c.switchModel(catalog.StateRetired)).Needs(operator),

		page.Get(providersPath, c.listProviders).Needs(support),
		page.Get(providersPath+"/new", c.newProvider).Needs(operator),
		page.Post(providersPath+"/new", c.testProvider).Needs(operator),
		page.Post(providersPath+"/choose", c.choosePrices).Needs(operator),
		page.Post(providersPath+"/prices", c.putPrices).Needs(operator),
		page.Get(providersPath+"/{id}", c.showProvider).Needs(operator),
		page.Post(providersPath+"/{id}/key", c.replaceProviderKey).Needs(operator),
		page.Action(providersPath+"/{id}/models", c.listProviderModels).Needs(operator),
		page.Action(providersPath+"/keys/{id}/delete", c.deleteStoredKey).Needs(operator),

		page.Get("/operator/books", c.books).Needs(support),
		page.Action("/operator/books/run", c.runAudit).Needs(operator),
		page.Get("/operator/log", c.showLog).Needs(support),

		page.Get(operatorsPath, c.listOperators).Needs(support),
		page.Get(operatorsPath+"/new", c.newOperator).Needs(owner),
		page.Post(operatorsPath+"/new", c.inviteOperator).Needs(owner),
		page.Get(operatorsPath+"/{id}", c.showRole).Needs(owner),
		page.Post(operatorsPath+"/{id}", c.changeRole).Needs(owner),

		page.Get("/operator/sessions", c.listSessions).Needs(support),
		page.Action("/operator/sessions/end", page.EndSessions).Needs(support),
		page.Action("/operator/sessions/{id}/end", page.EndSession("/operator/sessions")).Needs(support),
	}
}

// menu returns the links to the pages. It leaves out top-ups, invoices and mails if the shop does not have
// them.
func menu(o page.Options) []ui.NavItem {
	items := []ui.NavItem{
		{Href: page.Base + "/operator", Text: "Status", Icon: "layout-dashboard"},
		{Href: page.Base + "/operator/find", Text: "Find", Icon: "search"},
		{Href: page.Base + "/operator/lines", Text: "Lines", Icon: "external-link"},
		{Href: page.Base + "/operator/accounts", Text: "Accounts", Icon: "users"},
		{Href: page.Base + "/operator/requests", Text: "Requests", Icon: "list"},
		{Href: page.Base + "/operator/jobs", Text: "Jobs", Icon: "images"},
		{Href: page.Base + "/operator/deliveries", Text: "Deliveries", Icon: "webhook"},
		{Href: page.Base + "/operator/codes", Text: "Codes", Icon: "key-round"},
		{Href: page.Base + announcementsPath, Text: "Announcements", Icon: "info"},
		{Href: page.Base + "/operator/usage", Text: "Usage", Icon: "chart-column"},
		{Href: page.Base + statementsPath, Text: "Statements", Icon: "receipt"},
		{Href: page.Base + providersPath, Text: "Providers", Icon: "plus"},
		{Href: page.Base + "/operator/catalog", Text: "Catalog", Icon: "boxes"},
		{Href: page.Base + "/operator/books", Text: "Books", Icon: "receipt"},
		{Href: page.Base + "/operator/log", Text: "Log", Icon: "square-terminal"},
		{Href: page.Base + operatorsPath, Text: "Operators", Icon: "settings"},
		{Href: page.Base + "/operator/sessions", Text: "Sessions", Icon: "shield"},
	}
	i := slices.IndexFunc(items, func(item ui.NavItem) bool { return item.Href == page.Base+"/operator/requests" })
	if o.Invoices != nil && o.Invoices.Terms.On() {
		items = slices.Insert(items, i, ui.NavItem{Href: page.Base + invoicesPath, Text: "Invoices", Icon: "receipt"})
	}
	if o.Topups != nil {
		items = slices.Insert(items, i, ui.NavItem{Href: page.Base + "/operator/top-ups", Text: "Top-ups", Icon: "download"})
	}
	if o.Mails.On() {
		i := slices.IndexFunc(items, func(item ui.NavItem) bool { return item.Href == page.Base+"/operator/deliveries" })
		items = slices.Insert(items, i+1, ui.NavItem{Href: page.Base + mailsPath, Text: "Mails", Icon: "mail"})
	}
	return items
}

// refreshTimeout bounds the wait until this node uses a change by an operator.
const refreshTimeout = time.Second

// refreshNow makes this node use a committed change before the response. If refresh fails, refreshNow logs a
// warning, and the node refreshes again by itself. change names the change in the log.
func (c *console) refreshNow(v *page.Visit, change string, refresh func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(v.Context(), refreshTimeout)
	defer cancel()
	if err := refresh(ctx); err != nil {
		c.Log.Warn("console: "+change+" is not in use on this node yet", "error", err)
	}
}
