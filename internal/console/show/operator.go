package show

import (
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/operator"
)

// Actor returns the acting operator of a visit.
func Actor(v *page.Visit) operator.Actor {
	return operator.Actor{Way: operator.Console, Name: v.Session.User.Email, Address: v.Address().String()}
}

// ActorName returns the name of an operator for people, or an empty string if it is unknown.
func ActorName(a operator.Actor) string {
	if a.Name != "" {
		return a.Name
	}
	return map[operator.Way]string{operator.Console: "operator's token", operator.Token: "operator API", operator.Shell: "shell"}[a.Way]
}

// StateLabel returns the words of a state: circuit_open is "circuit open".
func StateLabel(state string) string { return strings.ReplaceAll(state, "_", " ") }
