package app

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog"
)

// envPrefix begins the variables of settings.
const envPrefix = "TOLLGATE_"

// kubernetes matches the variables set by Kubernetes for services whose names begin with ours.
var kubernetes = regexp.MustCompile(`^` + envPrefix +
	`(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// unknownVariables returns the environment variables that have the prefix of settings but belong to
// no setting; known lists the settings' variables. A near misspelling of a setting's variable is an
// error. Other unknown variables may belong to other programs or to a catalog, so unreadVariables only
// warns of unused variables. Kubernetes' variables for a service of our name are skipped.
func unknownVariables(environ map[string]string, known []string) (unknown []string, err error) {
	for name, value := range environ {
		if value == "" || !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) {
			continue
		}
		for _, target := range known {
			if isMisspelling(name, target) {
				return nil, fmt.Errorf("%s: unknown; did you mean %s?", oneLine(name), target)
			}
		}
		if !kubernetes.MatchString(name) && !(name == envPrefix+"PORT" && strings.Contains(value, "://")) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown, nil
}

// unreadVariables returns a warning for each unknown variable that no line of the catalog refers to.
func unreadVariables(unknown, known []string, lines []catalog.LineSpec) (warnings []string) {
	for _, name := range unknown {
		if slices.ContainsFunc(lines, func(l catalog.LineSpec) bool { return refers(&l, name) }) {
			continue
		}
		words := oneLine(name) + " is not a setting, and no line of the catalog refers to it"
		for _, target := range known {
			if strings.HasPrefix(name, target+"_") || strings.HasPrefix(target, name+"_") {
				words += "; did you mean " + target + "?"
				break
			}
		}
		warnings = append(warnings, words)
	}
	return warnings
}

// refers reports whether the keys or headers of a line name a variable.
func refers(l *catalog.LineSpec, name string) bool {
	in := func(text string) bool { return strings.Contains(text, "${"+name+"}") }
	for _, text := range l.Headers {
		if in(text) {
			return true
		}
	}
	return in(l.APIKey) || slices.ContainsFunc(l.APIKeys, in)
}

// Limits of a misspelling.
const (
	maxEdits       = 2
	lettersPerEdit = 3 // letters after the prefix for each allowed edit
)

// isMisspelling reports whether name is a misspelling of target: a few letters are wrong, missing, added,
// or swapped with their neighbours.
func isMisspelling(name, target string) bool {
	name, target = strings.TrimPrefix(name, envPrefix), strings.TrimPrefix(target, envPrefix)
	if len(name) > len(target)+maxEdits { // and perhaps very long
		return false
	}
	return distance(name, target) <= min(maxEdits, len(target)/lettersPerEdit)
}

// distance counts the letters to change, add, omit or swap with the next letter.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
