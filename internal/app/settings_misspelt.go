package app

import (
	"fmt"
	"slices"
	"strings"
)

// misspelt refuses a variable that is nearly a setting's. One that is far from all of
// them is somebody else's: a catalog refers to it, a tool reads it, or Kubernetes has
// set it for a service of our name.
func (src Sources) misspelt() error {
	settings := AllSettings()
	known := []string{ConfigEnv}
	for _, s := range settings {
		known = append(known, s.Env())
	}
	for _, name := range src.Names {
		if value, _ := src.Lookup(name); value == "" || !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) {
			continue
		}
		for _, meant := range known {
			if isSlip(name, meant) {
				return fmt.Errorf("%s: unknown; did you mean %s?", oneLine(name), meant)
			}
		}
	}
	return nil
}

// Bounds of what counts as a slip of the pen.
const (
	mostSlips    = 2
	lettersASlip = 3 // of the name behind the prefix
)

// isSlip tells whether a variable is another's name with a few letters wrong, missing,
// too many, or in the place of their neighbours.
func isSlip(name, meant string) bool {
	name, meant = strings.TrimPrefix(name, envPrefix), strings.TrimPrefix(meant, envPrefix)
	if len(name) > len(meant)+mostSlips { // and perhaps very long
		return false
	}
	return distance(name, meant) <= min(mostSlips, len(meant)/lettersASlip)
}

// distance counts the letters to change, add, leave out or swap with the next.
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
