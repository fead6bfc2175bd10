// Package operatorpages owns the console's pages for operators. Each page has a file of handlers
// and a template of the same name in html/, made of the components of package ui. The package has
// no rules of its own, because every act is a function of package operator. That package logs all acts.
//
// Invariants: GET changes nothing; the transaction of an act also logs the act and its operator; a
// repeated form moves money only once, and taking money back requires the operator's secret; a
// key's secret or a user's link is shown only in the response to its creation.
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

func (c *console) handlers() []page.Handler {
	var mails []page.Handler
	if c.Mails.On() {
		mails = []page.Handler{
			page.Get(mailsPath, c.listMails),
			page.Get(mailsPath+"/test", c.newTestMail),
			page.Post(mailsPath+"/test", c.sendTestMail),
			page.Action(mailsPath+"/{id}/resend", c.resendMail),
		}
	}
	return append(mails, []page.Handler{
		page.Get("/operator", c.home),
		page.Get("/operator/live", c.liveHome),
		page.Get("/operator/live/lines", c.liveLines),
		page.Get("/operator/live/books", c.liveBooks),
		page.Get("/operator/find", c.find),

		page.Get("/operator/lines", c.listLines),
		page.Get("/operator/lines/{id}", c.showLine),
		page.Action("/operator/lines/{id}/drain", c.drainLine),
		page.Action("/operator/lines/{id}/resume", c.resumeLine),

		page.Get("/operator/accounts", c.listAccounts),
		page.Get("/operator/accounts/new", c.newAccount),
		page.Post("/operator/accounts/new", c.createAccount),
		page.Get("/operator/accounts/{id}", c.showAccount),
		page.Post("/operator/accounts/{id}", c.changeAccount),
		page.Post("/operator/accounts/{id}/prices", c.savePrices),
		page.Post("/operator/accounts/{id}/note", c.saveNote),
		page.Post("/operator/accounts/{id}/credit", c.creditAccount),
		page.Action("/operator/accounts/{id}/disable", c.disableAccount),
		page.Action("/operator/accounts/{id}/enable", c.enableAccount),
		page.Post("/operator/accounts/{id}/keys", c.createKey),
		page.Post("/operator/accounts/{id}/users", c.addAccountUser),
		page.Get("/operator/keys/{id}", c.showKey),
		page.Post("/operator/keys/{id}", c.changeKey),
		page.Action("/operator/keys/{id}/disable", c.disableKey),
		page.Action("/operator/keys/{id}/enable", c.enableKey),
		page.Post("/operator/keys/{id}/delete", c.deleteKey),
		page.Action("/operator/users/{id}/disable", c.disableUser),
		page.Action("/operator/users/{id}/enable", c.enableUser),
		page.Action("/operator/users/{id}/delete", c.deleteUser),
		page.Action("/operator/users/{id}/factor/off", c.endFactor),
		page.Action("/operator/users/{id}/link", c.linkUser),

		page.Get("/operator/deliveries", c.listDeliveries),
		page.Action("/operator/deliveries/{id}/resend", c.resendDelivery),

		page.Get("/operator/codes", c.listCodes),
		page.Get("/operator/codes/new", c.newCodes),
		page.Post("/operator/codes/new", c.createCodes),
		page.Action("/operator/codes/{id}/void", c.voidCode),

		page.Get("/operator/top-ups", c.paying(c.listTopups)),
		page.Get("/operator/top-ups/table", c.paying(c.downloadTopups)),
		page.Get("/operator/top-ups/reconciliation", c.paying(c.reconcile)),
		page.Get("/operator/top-ups/{id}", c.paying(c.showTopup)),
		page.Post("/operator/top-ups/{id}/refund", c.paying(c.refundTopup)),
		page.Action("/operator/top-ups/{id}/check", c.paying(c.checkTopup)),
		page.Action("/operator/top-ups/problems/{id}/close", c.paying(c.closeProblem)),

		page.Get(invoicesPath, c.paying(c.listInvoices)),
		page.Get(invoicesPath+"/table", c.paying(c.downloadInvoices)),
		page.Get(invoicesPath+"/files", c.paying(c.zipInvoices)),
		page.Get(invoicesPath+"/{id}", c.paying(c.showInvoice)),
		page.Get(invoicesPath+"/{id}/pdf", c.paying(c.downloadInvoice)),

		page.Get("/operator/requests", c.listRequests),
		page.Get("/operator/requests/{id}", c.showRequest),
		page.Get("/operator/jobs", c.listJobs),
		page.Get("/operator/jobs/{id}", c.showJob),
		page.Action("/operator/jobs/{id}/cancel", c.cancelJob),
		page.Post("/operator/jobs/{id}/requeue", c.requeueJob),

		page.Get("/operator/usage", c.usage),
		page.Get("/operator/usage/table", c.downloadUsage),

		page.Get("/operator/catalog", c.showCatalog),
		page.Get("/operator/catalog/edit", c.editCatalog),
		page.Post("/operator/catalog/edit", c.putCatalog),
		page.Get("/operator/catalog/revisions/{id}", c.showRevision),
		page.Post("/operator/catalog/revisions/{id}/apply", c.rollBack),
		page.Post("/operator/catalog/sandbox/retire", c.retireSandbox),
		page.Post("/operator/catalog/models/{id}/open", c.switchModel(catalog.StateOpen)),
		page.Post("/operator/catalog/models/{id}/maintenance", c.switchModel(catalog.StateMaintenance)),
		page.Post("/operator/catalog/models/{id}/coming_soon", c.switchModel(catalog.StateComingSoon)),
		page.Post("/operator/catalog/models/{id}/retired", c.switchModel(catalog.StateRetired)),

		page.Get("/operator/books", c.books),
		page.Action("/operator/books/run", c.runAudit),
		page.Get("/operator/log", c.showLog),

		page.Get("/operator/sessions", c.listSessions),
		page.Action("/operator/sessions/end", page.EndSessions),
		page.Action("/operator/sessions/{id}/end", page.EndSession("/operator/sessions")),
	}...)
}

// menu returns the links to the pages. A shop without payments has no page of top-ups, and one without
// mail has no page of mails.
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
		{Href: page.Base + "/operator/usage", Text: "Usage", Icon: "chart-column"},
		{Href: page.Base + "/operator/catalog", Text: "Catalog", Icon: "boxes"},
		{Href: page.Base + "/operator/books", Text: "Books", Icon: "receipt"},
		{Href: page.Base + "/operator/log", Text: "Log", Icon: "square-terminal"},
		{Href: page.Base + "/operator/sessions", Text: "Sessions", Icon: "shield"},
	}
	if o.Topups != nil {
		i := slices.IndexFunc(items, func(item ui.NavItem) bool { return item.Href == page.Base+"/operator/requests" })
		items = slices.Insert(items, i, ui.NavItem{Href: page.Base + "/operator/top-ups", Text: "Top-ups", Icon: "download"})
		if o.Invoices.Terms.On() {
			items = slices.Insert(items, i+1, ui.NavItem{Href: page.Base + invoicesPath, Text: "Invoices", Icon: "receipt"})
		}
	}
	if o.Mails.On() {
		i := slices.IndexFunc(items, func(item ui.NavItem) bool { return item.Href == page.Base+"/operator/deliveries" })
		items = slices.Insert(items, i+1, ui.NavItem{Href: page.Base + mailsPath, Text: "Mails", Icon: "mail"})
	}
	return items
}

// refreshTimeout bounds the wait for this node to apply an operator's change.
const refreshTimeout = time.Second

// refreshNow makes this node use a committed change before the response. If refresh fails, refreshNow
// logs a warning, and the node retries by itself.
func (c *console) refreshNow(v *page.Visit, change string, refresh func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(v.Context(), refreshTimeout)
	defer cancel()
	if err := refresh(ctx); err != nil {
		c.Log.Warn("console: "+change+" is not in use on this node yet", "error", err)
	}
}
