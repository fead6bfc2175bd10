package console_test

import (
	"maps"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/announcement"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/store"
)

// statuses are the status codes of a route for each visitor, for an object of ada's account. A
// disabled visitor and a visitor with a session of the other section get nobody's status.
type statuses struct {
	nobody, other, owner int // of the users' pages; other is a user of another account
	operator             int // of the operator's pages
}

var (
	openPage      = statuses{nobody: 200, other: 200, owner: 200, operator: 200}
	ownPage       = statuses{nobody: 303, other: 200, owner: 200}
	ownObject     = statuses{nobody: 303, other: 404, owner: 200}
	ownAct        = statuses{nobody: 303, other: 404, owner: 303}
	formAct       = statuses{nobody: 303, other: 422, owner: 422} // with empty fields
	operatorsPage = statuses{nobody: 303, operator: 200}
	operatorsAct  = statuses{nobody: 303, operator: 303}
	redirect      = statuses{nobody: 303, other: 303, owner: 303, operator: 303}
	apiCall       = statuses{nobody: 303, other: 404, owner: 400} // with an empty body
)

// wantStatuses has a row for each route of the console.
func wantStatuses() map[string]statuses {
	return map[string]statuses{
		"GET /console/static/{id}": openPage,
		"POST /console/theme":      redirect,
		"POST /console/shortcuts":  redirect,
		"POST /console/language":   redirect,

		"GET /console/sign-in":        {nobody: 200, other: 303, owner: 303},
		"POST /console/sign-in":       {nobody: 422, other: 422, owner: 422},
		"GET /console/sign-in/code":   redirect, // without a password sent before
		"POST /console/sign-in/code":  redirect,
		"POST /console/sign-out":      redirect,
		"GET /console/link":           {nobody: 200, other: 200, owner: 200},
		"POST /console/link":          {nobody: 422, other: 422, owner: 422},
		"POST /console/link/password": {nobody: 422, other: 422, owner: 422},

		"POST /console/sign-in/with/{id}":               {nobody: 503, other: 303, owner: 303}, // the provider does not answer
		"GET /console/sign-in/with/{id}/callback":       {nobody: 422, other: 422, owner: 422},
		"GET /console/sign-up/with":                     {nobody: 303, other: 303, owner: 303},
		"POST /console/sign-up/with":                    {nobody: 422, other: 422, owner: 422},
		"GET /console/settings/confirm":                 ownPage,
		"POST /console/settings/confirm":                formAct,
		"POST /console/settings/confirm/{id}":           {nobody: 303, other: 503, owner: 503},
		"POST /console/settings/link/{id}":              {nobody: 303, other: 303, owner: 303}, // first the confirmation
		"POST /console/settings/identities/{id}/unlink": {nobody: 303, other: 303, owner: 303},

		"GET /console/prices": {nobody: 200, other: 200, owner: 200},
		"GET /console/status": {nobody: 200, other: 200, owner: 200},

		"GET /console/terms":   {nobody: 200, other: 200, owner: 200},
		"GET /console/privacy": {nobody: 200, other: 200, owner: 200},

		"GET /console/terms/accept":  redirect, // nothing to accept
		"POST /console/terms/accept": redirect,

		"GET /console/forgot":  {nobody: 200, other: 200, owner: 200},
		"POST /console/forgot": {nobody: 422, other: 422, owner: 422},

		"GET /console/sign-up":         {nobody: 200, other: 303, owner: 303},
		"POST /console/sign-up":        {nobody: 422, other: 422, owner: 422},
		"GET /console/verify":          {nobody: 200, other: 200, owner: 200},
		"POST /console/verify":         {nobody: 422, other: 422, owner: 422},
		"POST /console/verify/confirm": {nobody: 422, other: 422, owner: 422},

		"GET /console":      ownPage,
		"GET /console/find": ownPage,

		"POST /console/announcements/{id}/dismiss": {nobody: 303, other: 303, owner: 303}, // a deleted one too

		"GET /console/keys":               ownPage,
		"GET /console/keys/new":           ownPage,
		"POST /console/keys/new":          formAct,
		"GET /console/keys/{id}":          ownObject,
		"POST /console/keys/{id}":         ownAct,
		"POST /console/keys/{id}/disable": ownAct,
		"POST /console/keys/{id}/enable":  ownAct,
		"POST /console/keys/{id}/delete":  {nobody: 303, other: 404, owner: 422},
		"GET /console/keys/{id}/arrival":  ownObject,

		"GET /console/requests":       ownPage,
		"GET /console/requests/table": ownPage,
		"GET /console/requests/{id}":  ownObject,

		"GET /console/usage":                         ownPage,
		"GET /console/usage/table":                   ownPage,
		"GET /console/billing":                       ownPage,
		"GET /console/billing/movements":             ownPage,
		"POST /console/billing/redeem":               formAct,
		"GET /console/billing/top-ups":               ownPage,
		"GET /console/billing/top-ups/new":           ownPage,
		"POST /console/billing/top-ups/new":          formAct,
		"GET /console/billing/automatic":             ownPage,
		"POST /console/billing/automatic":            formAct,
		"POST /console/billing/automatic/off":        {nobody: 303, other: 303, owner: 303},
		"POST /console/billing/automatic/remove":     {nobody: 303, other: 303, owner: 303},
		"GET /console/billing/top-ups/{id}":          ownObject,
		"POST /console/billing/top-ups/{id}/check":   ownAct,
		"GET /console/billing/invoices":              ownPage,
		"GET /console/billing/invoices/details":      ownPage,
		"POST /console/billing/invoices/details":     formAct,
		"GET /console/billing/invoices/{id}":         ownObject,
		"GET /console/billing/invoices/{id}/pdf":     ownObject,
		"GET /console/billing/statements":            ownPage,
		"GET /console/billing/statements/{id}":       ownPage, // each visitor's own
		"GET /console/billing/statements/{id}/table": ownPage,

		"GET /console/webhooks":                         ownPage,
		"POST /console/webhooks":                        {nobody: 303, other: 303, owner: 303},
		"POST /console/webhooks/secret":                 ownPage,
		"POST /console/webhooks/roll":                   ownPage,
		"POST /console/webhooks/test":                   ownPage,
		"GET /console/webhooks/deliveries/{id}":         ownObject,
		"POST /console/webhooks/deliveries/{id}/resend": ownAct,

		"GET /console/models":         ownPage,
		"GET /console/jobs":           ownPage,
		"GET /console/jobs/live":      ownPage,
		"GET /console/jobs/{id}":      ownObject,
		"GET /console/jobs/{id}/live": ownObject,

		"GET /console/playground":                      ownPage,
		"GET /console/playground/{id}/cost":            ownPage, // the same answer for another account's request and an unknown one
		"POST /console/playground/{id}/chat":           apiCall,
		"POST /console/playground/{id}/responses":      apiCall,
		"POST /console/playground/{id}/messages":       apiCall,
		"POST /console/playground/{id}/images":         apiCall,
		"POST /console/playground/{id}/videos":         apiCall,
		"POST /console/playground/{id}/embeddings":     apiCall,
		"POST /console/playground/{id}/rerank":         apiCall,
		"POST /console/playground/{id}/moderations":    apiCall,
		"POST /console/playground/{id}/speech":         apiCall,
		"POST /console/playground/{id}/transcriptions": apiCall,

		"GET /console/settings":                     ownPage,
		"POST /console/settings/password":           formAct,
		"GET /console/settings/email":               ownPage,
		"POST /console/settings/email":              formAct,
		"POST /console/settings/email/check":        formAct,
		"POST /console/settings/email/confirm":      formAct,
		"GET /console/settings/mails":               ownPage,
		"POST /console/settings/mails":              formAct,
		"GET /console/settings/factor":              ownPage,
		"POST /console/settings/factor":             formAct,
		"POST /console/settings/factor/confirm":     formAct,
		"POST /console/settings/factor/recovery":    formAct,
		"POST /console/settings/factor/off":         formAct,
		"POST /console/settings/sessions/end":       {nobody: 303, other: 303, owner: 303},
		"POST /console/settings/sessions/{id}/end":  ownAct,
		"POST /console/settings/users":              formAct,
		"POST /console/settings/users/{id}/disable": ownAct,
		"POST /console/settings/users/{id}/enable":  ownAct,
		"POST /console/settings/users/{id}/delete":  ownAct,

		"GET /console/operator/sign-in":                    {nobody: 200, operator: 303},
		"POST /console/operator/sign-in":                   {nobody: 422, operator: 422},
		"POST /console/operator/sign-in/with/{id}":         {nobody: 503, operator: 303},
		"GET /console/operator/sign-in/with/{id}/callback": {nobody: 422, operator: 422},
		"GET /console/operator/sign-in/code":               {nobody: 303, operator: 303},
		"POST /console/operator/sign-in/code":              {nobody: 303, operator: 303},
		"POST /console/operator/sign-out":                  {nobody: 303, operator: 303},
		"POST /console/operator/sessions/end":              {nobody: 303, operator: 303},
		"POST /console/operator/sessions/{id}/end":         {nobody: 303, operator: 404},

		"GET /console/operator":                                  operatorsPage,
		"GET /console/operator/live":                             operatorsPage,
		"GET /console/operator/live/lines":                       operatorsPage,
		"GET /console/operator/live/books":                       operatorsPage,
		"GET /console/operator/sessions":                         operatorsPage,
		"GET /console/operator/mails":                            operatorsPage,
		"GET /console/operator/mails/test":                       operatorsPage,
		"POST /console/operator/mails/test":                      {nobody: 303, operator: 422},
		"POST /console/operator/mails/{id}/resend":               operatorsAct,
		"GET /console/operator/operators":                        operatorsPage,
		"GET /console/operator/operators/new":                    operatorsPage,
		"POST /console/operator/operators/new":                   {nobody: 303, operator: 422},
		"GET /console/operator/operators/{id}":                   operatorsPage,
		"POST /console/operator/operators/{id}":                  {nobody: 303, operator: 422},
		"GET /console/operator/find":                             operatorsPage,
		"GET /console/operator/lines":                            operatorsPage,
		"GET /console/operator/lines/{id}":                       operatorsPage,
		"POST /console/operator/lines/{id}/drain":                operatorsAct,
		"POST /console/operator/lines/{id}/resume":               operatorsAct,
		"GET /console/operator/accounts":                         operatorsPage,
		"GET /console/operator/accounts/new":                     operatorsPage,
		"POST /console/operator/accounts/new":                    {nobody: 303, operator: 422},
		"GET /console/operator/accounts/{id}":                    operatorsPage,
		"POST /console/operator/accounts/{id}":                   {nobody: 303, operator: 422},
		"POST /console/operator/accounts/{id}/note":              operatorsAct,
		"POST /console/operator/accounts/{id}/prices":            operatorsAct,
		"POST /console/operator/accounts/{id}/credit":            {nobody: 303, operator: 422},
		"POST /console/operator/accounts/{id}/disable":           operatorsAct,
		"POST /console/operator/accounts/{id}/enable":            operatorsAct,
		"POST /console/operator/accounts/{id}/keys":              {nobody: 303, operator: 400},
		"POST /console/operator/accounts/{id}/users":             {nobody: 303, operator: 422},
		"GET /console/operator/keys/{id}":                        operatorsPage,
		"POST /console/operator/keys/{id}":                       operatorsAct,
		"POST /console/operator/keys/{id}/disable":               operatorsAct,
		"POST /console/operator/keys/{id}/enable":                operatorsAct,
		"POST /console/operator/keys/{id}/delete":                {nobody: 303, operator: 422},
		"POST /console/operator/users/{id}/disable":              operatorsAct,
		"POST /console/operator/users/{id}/enable":               operatorsAct,
		"POST /console/operator/users/{id}/delete":               operatorsAct,
		"POST /console/operator/users/{id}/factor/off":           operatorsAct,
		"POST /console/operator/users/{id}/link":                 operatorsPage,
		"POST /console/operator/deliveries/{id}/resend":          operatorsAct,
		"GET /console/operator/requests":                         operatorsPage,
		"GET /console/operator/requests/{id}":                    operatorsPage,
		"GET /console/operator/jobs":                             operatorsPage,
		"GET /console/operator/jobs/{id}":                        operatorsPage,
		"POST /console/operator/jobs/{id}/cancel":                operatorsAct,
		"POST /console/operator/jobs/{id}/requeue":               operatorsAct,
		"GET /console/operator/deliveries":                       operatorsPage,
		"GET /console/operator/statements":                       operatorsPage,
		"GET /console/operator/statements/table":                 operatorsPage,
		"GET /console/operator/statements/file":                  operatorsPage,
		"POST /console/operator/identities/{id}/unlink":          {nobody: 303, operator: 404}, // an unknown one
		"POST /console/operator/entries/{id}/paid":               operatorsAct,
		"POST /console/operator/entries/{id}/unpaid":             operatorsAct,
		"POST /console/operator/entries/{id}/invoice":            {nobody: 303, operator: 400}, // not marked as paid
		"GET /console/operator/invoices":                         operatorsPage,
		"GET /console/operator/invoices/table":                   operatorsPage,
		"GET /console/operator/invoices/files":                   {nobody: 303, operator: 400}, // without a month
		"GET /console/operator/invoices/{id}":                    operatorsPage,
		"GET /console/operator/invoices/{id}/pdf":                operatorsPage,
		"GET /console/operator/top-ups":                          operatorsPage,
		"GET /console/operator/top-ups/table":                    operatorsPage,
		"GET /console/operator/top-ups/reconciliation":           operatorsPage,
		"GET /console/operator/top-ups/{id}":                     operatorsPage,
		"POST /console/operator/top-ups/{id}/refund":             {nobody: 303, operator: 422},
		"POST /console/operator/top-ups/{id}/check":              operatorsAct,
		"POST /console/operator/top-ups/problems/{id}/close":     {nobody: 303, operator: 404},
		"GET /console/operator/announcements":                    operatorsPage,
		"GET /console/operator/announcements/new":                operatorsPage,
		"POST /console/operator/announcements/new":               {nobody: 303, operator: 422},
		"GET /console/operator/announcements/{id}":               operatorsPage,
		"POST /console/operator/announcements/{id}":              {nobody: 303, operator: 422},
		"POST /console/operator/announcements/{id}/end":          operatorsAct,
		"POST /console/operator/announcements/{id}/delete":       operatorsAct,
		"GET /console/operator/codes":                            operatorsPage,
		"GET /console/operator/codes/new":                        operatorsPage,
		"POST /console/operator/codes/new":                       {nobody: 303, operator: 422},
		"POST /console/operator/codes/{id}/void":                 operatorsAct,
		"GET /console/operator/usage":                            operatorsPage,
		"GET /console/operator/usage/table":                      operatorsPage,
		"GET /console/operator/providers":                        operatorsPage,
		"GET /console/operator/providers/new":                    operatorsPage,
		"POST /console/operator/providers/new":                   {nobody: 303, operator: 422},
		"POST /console/operator/providers/choose":                {nobody: 303, operator: 400},
		"POST /console/operator/providers/prices":                {nobody: 303, operator: 400},
		"GET /console/operator/providers/{id}":                   {nobody: 303, operator: 404},
		"POST /console/operator/providers/{id}/key":              {nobody: 303, operator: 404},
		"POST /console/operator/providers/{id}/models":           {nobody: 303, operator: 404},
		"POST /console/operator/providers/keys/{id}/delete":      {nobody: 303, operator: 404},
		"GET /console/operator/catalog":                          operatorsPage,
		"GET /console/operator/catalog/edit":                     operatorsPage,
		"POST /console/operator/catalog/edit":                    {nobody: 303, operator: 400},
		"GET /console/operator/catalog/revisions/{id}":           operatorsPage,
		"POST /console/operator/catalog/revisions/{id}/apply":    {nobody: 303, operator: 400},
		"POST /console/operator/catalog/changes":                 {nobody: 303, operator: 400},
		"GET /console/operator/catalog/changes/{id}":             {nobody: 303, operator: 404},
		"POST /console/operator/catalog/changes/{id}/cancel":     {nobody: 303, operator: 404},
		"POST /console/operator/catalog/sandbox/retire":          operatorsAct,
		"POST /console/operator/catalog/models/{id}/open":        operatorsAct,
		"POST /console/operator/catalog/models/{id}/maintenance": operatorsAct,
		"POST /console/operator/catalog/models/{id}/coming_soon": operatorsAct,
		"POST /console/operator/catalog/models/{id}/retired":     operatorsAct,
		"GET /console/operator/books":                            operatorsPage,
		"POST /console/operator/books/run":                       operatorsAct,
		"GET /console/operator/log":                              operatorsPage,
	}
}

// TestEveryRouteAsEverybody checks the status of every route for nobody, a user of another account,
// the owner, a disabled user and the operator, and that only consoles with the route's section have
// the route.
func TestEveryRouteAsEverybody(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddProvider()
		rows := wantStatuses()
		handlers := map[console.Sections]http.Handler{}
		for _, section := range []console.Sections{console.UserSection, console.OperatorSection} {
			handlers[section] = s.Console(func(o *console.Options) { o.Sections = section })
		}
		visitors := visitorsOf(s)
		for _, route := range console.Routes() {
			row, ok := rows[route]
			if !ok {
				t.Errorf("%s has no row in wantStatuses", route)
				continue
			}
			delete(rows, route)
			checkRoute(t, s, visitors, handlers, route, row)
		}
		for route := range rows {
			t.Errorf("wantStatuses has a row for %s, which is not a route", route)
		}
	})
}

// browsers has a signed-in browser for each visitor, by name. A visitor without a browser has no
// session.
type browsers map[string]*consoletest.Browser

// visitorsOf signs the visitors in.
func visitorsOf(s *consoletest.Scene) browsers {
	disabled := s.User("ada", account.SignIn{Email: "off@example.com"})
	c := browsers{"disabled": s.Session(account.UserSession, disabled.Email)}
	s.ChangeUser(disabled.Email, account.UserChange{Disabled: new(true)})
	for _, name := range []string{"other", "owner", "operator"} {
		c.signIn(s, name)
	}
	return c
}

// signIn gives a visitor a session.
func (c browsers) signIn(s *consoletest.Scene, name string) {
	switch name {
	case "other":
		c[name] = s.Session(account.UserSession, "bob@example.com")
	case "owner":
		c[name] = s.Session(account.UserSession, "ada@example.com")
	case "operator":
		c[name] = s.Session(account.OperatorSession, "")
	}
}

// newBrowser returns a new browser with the session of a visitor and no other cookies.
func (c browsers) newBrowser(s *consoletest.Scene, name string) *consoletest.Browser {
	b := s.Browser()
	if visitor := c[name]; visitor != nil {
		maps.Copy(b.Cookies, visitor.Cookies)
	}
	return b
}

// checkRoute checks a route for each visitor, in each section, and for a form from another site.
func checkRoute(t *testing.T, s *consoletest.Scene, c browsers, handlers map[console.Sections]http.Handler, route string, row statuses) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	operators := strings.HasPrefix(path, "/console/operator")
	expected := map[string]int{"nobody": row.nobody, "disabled": row.nobody, "operator": row.nobody, "other": row.other, "owner": row.owner}
	if operators {
		expected = map[string]int{"nobody": row.nobody, "disabled": row.nobody, "owner": row.nobody, "operator": row.operator}
	}
	for name, want := range expected {
		b := c.newBrowser(s, name)
		got := b.Do(method, objectPath(s, path, name), form(route))
		if got.Code != want {
			t.Errorf("%s as %s: status %d, want %d: %s", route, name, got.Code, want, got.Body)
		}
		checkAnswer(t, s, route+" as "+name, got)
		for _, choice := range []string{"tollgate-theme", "tollgate-keys", "tollgate-language"} {
			delete(b.Cookies, choice)
		}
		if visitor := c[name]; visitor != nil && !maps.EqualFunc(b.Cookies, visitor.Cookies, sameCookie) {
			c.signIn(s, name) // the route has ended the session
		}
	}
	for section, handler := range handlers {
		b := s.Browser()
		b.Handler = handler
		got := b.Do(method, objectPath(s, path, "elsewhere"), form(route))
		shared := strings.HasPrefix(path, "/console/static") || path == "/console/theme" || path == "/console/shortcuts" ||
			path == "/console/language"
		exists := shared || operators == (section == console.OperatorSection)
		if exists != (got.Code != http.StatusNotFound) {
			t.Errorf("%s in section %d: status %d, want a route: %v", route, section, got.Code, exists)
		}
	}
	if method == http.MethodPost {
		b := c.newBrowser(s, "owner")
		if operators {
			b = c.newBrowser(s, "operator")
		}
		b.Headers["Origin"], b.Headers["Sec-Fetch-Site"] = "https://elsewhere.example", "cross-site"
		got := b.Do(method, objectPath(s, path, "foreign"), form(route))
		got.Want(t, http.StatusForbidden, "another site")
		checkAnswer(t, s, route+" from another site", got)
	}
}

func sameCookie(a, b *http.Cookie) bool { return a.Value == b.Value }

// objectPath returns a path with the id of an object of ada's account.
func objectPath(s *consoletest.Scene, path, visitor string) string {
	id := "sess_none"
	switch {
	case strings.Contains(path, "/static/"):
		page := s.Browser().Get("/console/sign-in").Body.String()
		at := strings.Index(page, "/console/static/")
		return page[at : at+strings.IndexByte(page[at:], '"')]
	case strings.Contains(path, "/with/{id}"), strings.Contains(path, "/link/{id}"), strings.Contains(path, "/confirm/{id}"):
		id = "corp"
	case strings.Contains(path, "/operator/lines/{id}"):
		id = "sandbox"
	case strings.Contains(path, "/operator/accounts/{id}"):
		s.Update(func(tx *store.Tx) error {
			a, err := account.CreateTx(tx, account.NewAccount{Name: visitor})
			id = a.ID
			return err
		})
	case strings.Contains(path, "/statements/{id}"):
		id = time.Now().UTC().Format("2006-01")
	case strings.Contains(path, "/revisions/{id}"):
		id = "1"
	case strings.Contains(path, "/models/{id}"):
		id = "sandbox-chat"
	case strings.Contains(path, "/keys/{id}"), strings.Contains(path, "/playground/{id}"):
		id = s.Key("ada", visitor).ID
	case strings.Contains(path, "/requests/{id}"):
		id = s.Request("ada", 200, "")
	case strings.Contains(path, "/deliveries/{id}"):
		id = s.Delivery("ada")
	case strings.Contains(path, "/jobs/{id}"):
		id = s.Job("ada", "a boat")
	case strings.Contains(path, "/top-ups/{id}"):
		s.Exec(`UPDATE topup SET state = 'failed' WHERE state = 'pending'`) // an account has at most 20 open ones
		id = s.Topup("ada").ID
	case strings.Contains(path, "/entries/{id}"):
		s.Update(func(tx *store.Tx) error {
			list, _, err := movement.ListTx(tx, movement.Selection{Account: s.Accounts["ada"].ID, Kind: movement.Credits, Limit: 100})
			id = list[len(list)-1].ID // the oldest one was given by hand
			return err
		})
	case strings.Contains(path, "/invoices/{id}"):
		s.Exec(`UPDATE topup SET state = 'failed' WHERE state = 'pending'`)
		id = s.Invoice("ada").ID
	case strings.Contains(path, "/mails/{id}"):
		id = s.WroteMail()
	case strings.Contains(path, "/announcements/{id}"):
		s.Exec(`DELETE FROM announcement`) // at most ten are active
		id = s.Announce(announcement.Draft{Title: visitor, Level: announcement.Info})
	case strings.Contains(path, "/codes/{id}"):
		code, _ := s.Code()
		id = code.ID
	case strings.Contains(path, "/users/{id}"), strings.Contains(path, "/operators/{id}"):
		id = s.User("ada", account.SignIn{
			Email: strings.ReplaceAll(visitor, " ", "")[:3] + "-" + strings.ToLower(http.MethodGet) + newSuffix(s) + "@example.com",
		}).ID
	case strings.Contains(path, "/settings/sessions/{id}"):
		s.Update(func(tx *store.Tx) error {
			session, _, err := account.OpenSessionTx(tx, account.NewSession{Kind: account.UserSession, User: s.Users["ada@example.com"].ID})
			id = session.ID
			return err
		})
	}
	return strings.Replace(path, "{id}", id, 1)
}

func newSuffix(s *consoletest.Scene) string {
	return string(rune('a'+len(s.Users)%26)) + string(rune('a'+len(s.Users)/26))
}

// form returns the body of a request to a route. Most forms are empty.
func form(route string) string {
	switch {
	case strings.HasSuffix(route, "/theme"):
		return "theme=dark"
	case strings.HasSuffix(route, "/shortcuts"):
		return "keys=off"
	}
	return ""
}

var (
	inlineAttribute = regexp.MustCompile(`(?i)<[a-z][a-z0-9]*(?:\s+[a-z-]+(?:="[^"]*")?)*\s+(?:style|on[a-z]+)\s*=`)
	inlineScript    = regexp.MustCompile(`(?is)<script[^>]*>\s*[^<\s]|<style`)
	linkAddress     = regexp.MustCompile(`(?i)\s(?:href|src|action|data-live)="([^"]*)"`)
	title           = regexp.MustCompile(`<title>([^<]+) · tollgate</title>`)
)

// checkAnswer checks the headers of an answer. For a page, it also checks the markup.
func checkAnswer(t *testing.T, s *consoletest.Scene, name string, got consoletest.Answer) {
	t.Helper()
	h := got.Header()
	if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; ") || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Referrer-Policy") != "same-origin" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("X-Request-Id") == "" {
		t.Errorf("%s: a security header or X-Request-Id is missing: %v", name, h)
	}
	cacheControl := h.Get("Cache-Control")
	if page := strings.HasPrefix(h.Get("Content-Type"), "text/html"); !page {
		return
	}
	if cacheControl != "no-store" {
		t.Errorf("%s: Cache-Control is %q, want no-store", name, cacheControl)
	}
	body := got.Body.String()
	for _, inline := range []*regexp.Regexp{inlineAttribute, inlineScript} {
		if match := inline.FindString(body); match != "" {
			t.Errorf("%s: the page has an inline script or style: %s", name, match)
		}
	}
	for _, m := range linkAddress.FindAllStringSubmatch(body, -1) {
		isOurs := strings.HasPrefix(m[1], "/console") || strings.HasPrefix(m[1], "#") || strings.HasPrefix(m[1], "?")
		if !isOurs && !strings.HasPrefix(m[1], s.Stripe.URL) {
			t.Errorf("%s: the page links to %s outside the console", name, m[1])
		}
	}
	if strings.Contains(body, "<html") && (!title.MatchString(body) || strings.Count(body, "<h1") != 1) {
		t.Errorf("%s: the page has no title, or not exactly one h1: %s", name, body)
	}
}

// TestTrailingSlash checks that an address with a trailing slash redirects to the page without the
// slash, and to no other host.
func TestTrailingSlash(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		for path, want := range map[string]string{
			"/console/": "/console", "/console/operator/": "/console/operator",
			"/console/keys//": "/console/keys", "/console/nothing/": "/console/nothing",
			"/console/sign-in/?next=%2Fconsole%2Fkeys": "/console/sign-in?next=%2Fconsole%2Fkeys", "/console/a%0Ab/": "/console/a%0Ab",
		} {
			if got := b.Get(path); got.Code != http.StatusPermanentRedirect || got.Header().Get("Location") != want {
				t.Errorf("%s: status %d to %q, want 308 to %q", path, got.Code, got.Header().Get("Location"), want)
			}
		}
		b.Get("/console/nothing").Want(t, http.StatusNotFound, "There is no such page")
	})
}

// pagePaths returns the paths of all pages, with {id} in place of an id.
func pagePaths() (paths []string) {
	for _, route := range console.Routes() {
		if path, get := strings.CutPrefix(route, "GET "); get && !strings.Contains(path, "/static/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestEveryPageAtMaxCounters checks that every page is shown while all counters of the database have
// the maximum of a sum or of an int64.
func TestEveryPageAtMaxCounters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddProvider()
		rows, visitors := wantStatuses(), visitorsOf(s)
		paths := map[string]string{}
		for _, path := range pagePaths() {
			paths["GET "+path] = objectPath(s, path, "owner")
		}
		for _, limit := range []int64{store.MaxSum, math.MaxInt64} {
			ledgertest.SetCounters(t, s.DB, limit)
			for route, path := range paths {
				name, want := "owner", rows[route].owner
				if strings.HasPrefix(path, "/console/operator") {
					name, want = "operator", rows[route].operator
				}
				b := visitors.newBrowser(s, name)
				if got := b.Get(path); got.Code != want {
					t.Errorf("%s with the counters at %d: status %d, want %d: %s", route, limit, got.Code, want, got.Body)
				}
			}
		}
	})
}
