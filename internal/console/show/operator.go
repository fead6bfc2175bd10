package show

import (
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/operator"
)

// By is who acts on an operator's page.
func By(v *page.Visit) operator.Actor {
	return operator.Actor{Way: operator.Console, Name: v.Session.User.Email, Address: v.Address().String()}
}

// Who is an operator as people call him; empty: nobody knows.
func Who(a operator.Actor) string {
	if a.Name != "" {
		return a.Name
	}
	return map[operator.Way]string{operator.Console: "operator's token", operator.Token: "operator API", operator.Shell: "shell"}[a.Way]
}

// StateWords are those of a state, as machines call it: circuit_open is "circuit open".
func StateWords(state string) string { return strings.ReplaceAll(state, "_", " ") }
