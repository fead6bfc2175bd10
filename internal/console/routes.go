package console

import (
	"strings"

	"tollgate/internal/catalog"
)

// who may see a page.
type who int

const (
	anybody   who = iota // also who is not signed in
	user                 // who is signed in as a user of an account
	operators            // who is signed in as an operator
)

// route is one method of one path below Base, who may, and who answers it.
type route struct {
	method, path string
	who          who
	handle       func(*visit) (answer, error)
}

func (r route) pattern() string { return r.method + " " + Base + r.path }

// routes is the table of contents. `{id}` stands for one path segment.
func (c *console) routes() []route {
	return []route{
		{"GET", "/static/{id}", anybody, c.static},
		{"POST", "/theme", anybody, c.setTheme},

		{"GET", "/sign-in", anybody, c.signInPage},
		{"POST", "/sign-in", anybody, c.signIn},
		{"POST", "/sign-out", anybody, c.signOut},

		{"GET", "", user, c.overview},

		{"GET", "/keys", user, c.listKeys},
		{"GET", "/keys/new", user, c.newKey},
		{"POST", "/keys/new", user, c.createKey},
		{"GET", "/keys/{id}", user, c.showKey},
		{"POST", "/keys/{id}", user, c.changeKey},
		{"POST", "/keys/{id}/disable", user, c.disableKey},
		{"POST", "/keys/{id}/enable", user, c.enableKey},
		{"POST", "/keys/{id}/delete", user, c.deleteKey},
		{"GET", "/keys/{id}/arrival", user, c.keyArrival},

		{"GET", "/requests", user, c.listRequests},
		{"GET", "/requests/{id}", user, c.showRequest},

		{"GET", "/billing", user, c.billing},
		{"GET", "/billing/movements", user, c.downloadMovements},
		{"POST", "/billing/redeem", user, c.redeem},

		{"GET", "/jobs", user, c.listJobs},
		{"GET", "/jobs/live", user, c.liveJobs},
		{"GET", "/jobs/{id}", user, c.showJob},
		{"GET", "/jobs/{id}/live", user, c.liveJob},

		{"GET", "/playground", user, c.playground},
		{"GET", "/playground/{id}/cost", user, c.cost},
		{"POST", "/playground/{id}/chat", user, c.asKey("/v1/chat/completions")},
		{"POST", "/playground/{id}/responses", user, c.asKey("/v1/responses")},
		{"POST", "/playground/{id}/messages", user, c.asKey("/native/v1/messages")},
		{"POST", "/playground/{id}/images", user, c.asKey("/v1/images/generations")},
		{"POST", "/playground/{id}/videos", user, c.asKey("/v1/videos/generations")},

		{"GET", "/webhooks", user, c.webhooks},
		{"POST", "/webhooks", user, c.saveWebhook},
		{"POST", "/webhooks/secret", user, c.showSecret},
		{"POST", "/webhooks/roll", user, c.rollSecret},
		{"POST", "/webhooks/test", user, c.testWebhook},
		{"GET", "/webhooks/deliveries/{id}", user, c.showDelivery},
		{"POST", "/webhooks/deliveries/{id}/resend", user, c.resendDelivery},

		{"GET", "/models", user, c.models},

		{"GET", "/settings", user, c.settings},
		{"POST", "/settings/password", user, c.changePassword},
		{"POST", "/settings/sessions/end", user, c.endSessions},
		{"POST", "/settings/sessions/{id}/end", user, c.endSession},
		{"POST", "/settings/users", user, c.addUser},
		{"POST", "/settings/users/{id}/disable", user, c.disableUser},
		{"POST", "/settings/users/{id}/enable", user, c.enableUser},
		{"POST", "/settings/users/{id}/delete", user, c.deleteUser},

		{"GET", "/operator/sign-in", anybody, c.operatorSignInPage},
		{"POST", "/operator/sign-in", anybody, c.operatorSignIn},
		{"POST", "/operator/sign-out", anybody, c.operatorSignOut},
		{"GET", "/operator", operators, c.operatorHome},
		{"GET", "/operator/find", operators, c.find},

		{"GET", "/operator/lines", operators, c.listLines},
		{"GET", "/operator/lines/{id}", operators, c.showLine},
		{"POST", "/operator/lines/{id}/drain", operators, c.drainLine},
		{"POST", "/operator/lines/{id}/resume", operators, c.resumeLine},

		{"GET", "/operator/accounts", operators, c.listAccounts},
		{"GET", "/operator/accounts/new", operators, c.newAccount},
		{"POST", "/operator/accounts/new", operators, c.createAccount},
		{"GET", "/operator/accounts/{id}", operators, c.showAccount},
		{"POST", "/operator/accounts/{id}", operators, c.changeAccount},
		{"POST", "/operator/accounts/{id}/credit", operators, c.creditAccount},
		{"POST", "/operator/accounts/{id}/disable", operators, c.disableAccount},
		{"POST", "/operator/accounts/{id}/enable", operators, c.enableAccount},
		{"POST", "/operator/accounts/{id}/keys", operators, c.createAccountKey},
		{"POST", "/operator/accounts/{id}/users", operators, c.addAccountUser},
		{"POST", "/operator/keys/{id}/disable", operators, c.disableAccountKey},
		{"POST", "/operator/keys/{id}/enable", operators, c.enableAccountKey},
		{"POST", "/operator/users/{id}/disable", operators, c.disableAnyUser},
		{"POST", "/operator/users/{id}/enable", operators, c.enableAnyUser},
		{"POST", "/operator/deliveries/{id}/resend", operators, c.resendAnyDelivery},

		{"GET", "/operator/requests", operators, c.operatorRequests},
		{"GET", "/operator/requests/{id}", operators, c.operatorRequest},
		{"GET", "/operator/jobs", operators, c.operatorJobs},
		{"GET", "/operator/jobs/{id}", operators, c.operatorJob},
		{"POST", "/operator/jobs/{id}/cancel", operators, c.cancelJob},
		{"POST", "/operator/jobs/{id}/requeue", operators, c.requeueJob},

		{"GET", "/operator/catalog", operators, c.showCatalog},
		{"GET", "/operator/catalog/edit", operators, c.editCatalog},
		{"POST", "/operator/catalog/edit", operators, c.putCatalog},
		{"GET", "/operator/catalog/revisions/{id}", operators, c.showRevision},
		{"POST", "/operator/catalog/revisions/{id}/apply", operators, c.rollBack},
		{"POST", "/operator/catalog/models/{id}/open", operators, c.switchModel(catalog.StateOpen)},
		{"POST", "/operator/catalog/models/{id}/maintenance", operators, c.switchModel(catalog.StateMaintenance)},
		{"POST", "/operator/catalog/models/{id}/coming_soon", operators, c.switchModel(catalog.StateComingSoon)},
		{"POST", "/operator/catalog/models/{id}/retired", operators, c.switchModel(catalog.StateRetired)},

		{"GET", "/operator/books", operators, c.books},
		{"POST", "/operator/books/run", operators, c.runAudit},
		{"GET", "/operator/log", operators, c.operatorLog},

		{"GET", "/operator/sessions", operators, c.operatorSessions},
		{"POST", "/operator/sessions/end", operators, c.endOperatorSessions},
		{"POST", "/operator/sessions/{id}/end", operators, c.endOperatorSession},
	}
}

// menu is what leads to the pages, in the order in which they stand.
func (c *console) menu(w who) []entry {
	if w == operators {
		return []entry{
			{"/operator", "Is all well", "layout-dashboard"},
			{"/operator/find", "Find", "search"},
			{"/operator/lines", "Lines", "external-link"},
			{"/operator/accounts", "Accounts", "users"},
			{"/operator/requests", "Requests", "list"},
			{"/operator/jobs", "Jobs", "images"},
			{"/operator/catalog", "Catalog", "boxes"},
			{"/operator/books", "Books", "receipt"},
			{"/operator/log", "Log", "square-terminal"},
			{"/operator/sessions", "Sessions", "shield"},
		}
	}
	return []entry{
		{"", "Overview", "layout-dashboard"},
		{"/keys", "Keys", "key-round"},
		{"/requests", "Requests", "list"},
		{"/billing", "Billing", "receipt"},
		{"/jobs", "Jobs", "images"},
		{"/webhooks", "Webhooks", "webhook"},
		{"/models", "Models", "boxes"},
		{"/playground", "Playground", "play"},
		{"/settings", "Settings", "settings"},
	}
}

// entry is one of a menu.
type entry struct{ path, text, icon string }

// Routes lists the console as `METHOD /path`, with {id} for an id: for tests.
func Routes() []string {
	var all []string
	for _, r := range new(console).routes() {
		all = append(all, r.pattern())
	}
	return all
}

// of tells whether an address has the route.
func (r route) of(s Side) bool {
	if s == Whole || strings.HasPrefix(r.path, "/static/") || r.path == "/theme" {
		return true
	}
	return strings.HasPrefix(r.path, "/operator") == (s == Operators)
}
