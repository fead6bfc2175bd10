package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
)

// neededRole returns the role that a route of the operators' pages needs. Pages need support and acts need
// operator, except for those listed here.
func neededRole(route string) account.OperatorRole {
	switch {
	case strings.Contains(route, "/operator/operators/"):
		return account.Owner
	case route == "GET /console/operator/accounts/new", route == "GET /console/operator/codes/new",
		route == "GET /console/operator/catalog/edit", route == "GET /console/operator/mails/test",
		route == "GET /console/operator/announcements/new",
		strings.HasPrefix(route, "GET /console/operator/providers/"):
		return account.Operator
	case route == "POST /console/operator/users/{id}/link", route == "POST /console/operator/top-ups/{id}/check",
		route == "POST /console/operator/deliveries/{id}/resend", route == "POST /console/operator/mails/{id}/resend",
		strings.Contains(route, "/operator/sessions"), strings.HasPrefix(route, "GET "):
		return account.Support
	}
	return account.Operator
}

// action matches the addresses of forms and links on a page.
var action = regexp.MustCompile(`(?:action|href)="(/console/operator[^"?#]*)`)

// TestRolesOfOperators checks each route of the operators' pages as each role: a visitor with a lower role than the
// route needs gets a 403, and no page has a form or a link to such a route.
func TestRolesOfOperators(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		patterns := http.NewServeMux()
		var routes []string
		for _, route := range console.Routes() {
			if strings.Contains(route, "/console/operator") && !strings.Contains(route, "/sign-") {
				patterns.HandleFunc(route, http.NotFound)
				routes = append(routes, route)
			}
		}
		for _, role := range account.Roles() {
			u := s.User("bob", account.SignIn{Email: string(role) + "@example.com", Role: role})
			for _, route := range routes {
				method, path, _ := strings.Cut(route, " ")
				got := s.Session(account.OperatorSession, u.Email).Do(method, objectPath(s, path, string(role)), "")
				if want := !role.Includes(neededRole(route)); want != (got.Code == http.StatusForbidden) && !strings.HasSuffix(route, "/link") {
					t.Errorf("%s as %s: status %d, want a 403: %v", route, role, got.Code, want)
				}
				if got.Code == http.StatusForbidden {
					got.Want(t, http.StatusForbidden, "Not allowed", "Your role")
				}
				if method != http.MethodGet || got.Code != http.StatusOK {
					continue
				}
				for _, m := range action.FindAllStringSubmatch(got.Body.String(), -1) {
					method := http.MethodGet
					if strings.HasPrefix(m[0], "action") && !strings.Contains(got.Body.String(), `method="get" action="`+m[1]+`"`) {
						method = http.MethodPost
					}
					r, err := http.NewRequest(method, m[1], nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, pattern := patterns.Handler(r); pattern != "" && !role.Includes(neededRole(pattern)) {
						t.Errorf("%s as %s has a form or a link to %s", route, role, pattern)
					}
				}
			}
		}
	})
}

// TestRolesAreReadAtOnce checks that a page which is open when the role changes can do no more than the new role.
func TestRolesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.User("bob", account.SignIn{Email: "op@example.com", Role: account.Operator})
		b := s.Session(account.OperatorSession, "op@example.com")
		drain := "/console/operator/lines/sandbox/drain"
		b.Post(drain).Want(t, http.StatusSeeOther)
		s.ChangeUser("op@example.com", account.UserChange{Role: new(account.Support)})
		b.Post(drain).Want(t, http.StatusForbidden, "Your role is support, and this needs the role operator.")
		b.Get("/console/operator/lines").Want(t, http.StatusOK, "disabled title=", "Role: support")
		s.ChangeUser("op@example.com", account.UserChange{Role: new(account.OperatorRole(""))})
		b.Get("/console/operator/lines").Want(t, http.StatusSeeOther, "sign-in")
	})
}
