package identity

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// claims are the claims of an ID token or of userinfo.
type claims map[string]any

// find returns a claim by its name, or by a path of names with dots, such as realm_access.roles.
func (c claims) find(name string) any {
	if value, ok := c[name]; ok {
		return value
	}
	first, rest, nested := strings.Cut(name, ".")
	inner, ok := c[first].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return claims(inner).find(rest)
}

// values returns the texts in a claim: a text, a list of texts, or the names of an object. It returns nil
// for a claim without texts.
func (c claims) values(name string) (all []string) {
	switch value := c.find(name).(type) {
	case string:
		return []string{value}
	case []any:
		for _, entry := range value {
			if text, ok := entry.(string); ok {
				all = append(all, text)
			}
		}
	case map[string]any:
		return slices.Sorted(maps.Keys(value))
	}
	return all
}

func (c claims) has(name, value string) bool { return slices.Contains(c.values(name), value) }

func (c claims) text(name string) string {
	text, _ := c[name].(string)
	return text
}

// isTrue reports whether a claim is true. Some providers send the text "true".
func (c claims) isTrue(name string) bool { return c[name] == true || c[name] == "true" }

// time returns a claim in seconds since 1970 as a time, or the zero Time.
func (c claims) time(name string) time.Time {
	seconds, ok := c[name].(float64)
	if !ok || seconds <= 0 || seconds > math.MaxInt32*1000.0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// of returns the first role of Order that the claims grant, or "".
func (r RoleClaim) of(all claims) string {
	if r.Claim == "" {
		return ""
	}
	granted := map[string]bool{}
	for _, value := range all.values(r.Claim) {
		granted[r.Roles[value]] = true
	}
	for _, role := range r.Order {
		if granted[role] {
			return role
		}
	}
	return ""
}
