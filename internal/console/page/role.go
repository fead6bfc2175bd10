package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
)

// newSection parses the templates of a section. The pages of operators are rendered for each role: buttons,
// forms and links are disabled if their handlers need another role.
func (srv *server) newSection(spec Section) (*section, error) {
	s := &section{Section: spec, pages: map[account.OperatorRole]*ui.Pages{}}
	pages := ui.New(srv.files.Path, nil, embedded, spec.Templates)
	for _, role := range append(account.Roles(), "") {
		s.pages[role] = pages
	}
	if spec.Kind != account.OperatorSession {
		return s, nil
	}
	for _, role := range []account.OperatorRole{account.Operator, account.Support} {
		s.pages[role] = ui.New(srv.files.Path, s.refusal(role), embedded, spec.Templates)
	}
	for _, h := range spec.Handlers {
		if !slices.Contains(account.Roles(), h.role) {
			return nil, fmt.Errorf("%s needs no role", h.pattern())
		}
	}
	return s, nil
}

// refusal returns the ui.AccessCheck of a role. The check allows addresses without a handler.
func (s *section) refusal(role account.OperatorRole) ui.AccessCheck {
	patterns := http.NewServeMux() // to find the pattern of an address
	refused := map[string]account.OperatorRole{}
	for _, h := range s.Handlers {
		if !role.Includes(h.role) {
			refused[h.pattern()] = h.role
		}
		patterns.HandleFunc(h.pattern(), http.NotFound)
	}
	return func(method, address string) ui.Words {
		path, _, _ := strings.Cut(address, "?")
		r, err := http.NewRequest(method, path, nil)
		if err != nil {
			return ""
		}
		_, pattern := patterns.Handler(r)
		if refused[pattern] == "" {
			return ""
		}
		return ui.Sayf("Your role is %s, and this needs the role %s.", ui.Words(role), ui.Words(refused[pattern]))
	}
}

// checkRole returns an error if the visitor's role does not include the role of a handler.
func (v *Visit) checkRole(h Handler) error {
	if role := v.Session.Role(); h.role != "" && !role.Includes(h.role) {
		return fault.New(fault.PermissionDenied, "Your role is %s, and this needs the role %s. "+
			"Ask somebody with that role to do it, or an owner to change yours.", role, h.role)
	}
	return nil
}
