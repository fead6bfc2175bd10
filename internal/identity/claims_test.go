package identity

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// read decodes claims as go-oidc does.
func read(t *testing.T, text string) claims {
	t.Helper()
	all := claims{}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestClaimValues checks the forms of texts in claims.
func TestClaimValues(t *testing.T) {
	t.Parallel()
	all := read(t, `{"one": "a", "list": ["b", 3, "c"], "names": {"e": {}, "d": 1}, "a.b": "dotted", "realm_access": {"roles": ["r"]},
		"number": 4, "null": null, "nested": {"more": "x"}}`)
	for name, want := range map[string][]string{"one": {"a"}, "list": {"b", "c"}, "names": {"d", "e"}, "a.b": {"dotted"},
		"realm_access.roles": {"r"}, "number": nil, "null": nil, "absent": nil, "one.more": nil, "nested.": nil, ".": nil, "": nil} {
		if got := all.values(name); !reflect.DeepEqual(got, want) {
			t.Errorf("values(%q) = %v, want %v", name, got, want)
		}
	}
	for text, want := range map[string]bool{`true`: true, `"true"`: true, `false`: false,
		`"false"`: false, `1`: false, `null`: false, `[true]`: false} {
		if got := read(t, `{"email_verified": `+text+`}`).isTrue("email_verified"); got != want {
			t.Errorf("isTrue of %s = %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]time.Time{`1700000000`: time.Unix(1_700_000_000, 0), `-1`: {}, `1e300`: {}, `"1700000000"`: {}} {
		if got := read(t, `{"auth_time": `+text+`}`).time("auth_time"); !got.Equal(want) {
			t.Errorf("time of %s = %v, want %v", text, got, want)
		}
	}
}

// TestRoleOf expects the most powerful granted role, and none for unknown values.
func TestRoleOf(t *testing.T) {
	t.Parallel()
	r := RoleClaim{Claim: "groups", Roles: map[string]string{"admins": "owner", "staff": "support"},
		Order: []string{"owner", "operator", "support"}}
	for text, want := range map[string]string{`["staff","admins"]`: "owner", `"staff"`: "support", `["others"]`: "", `null`: "", `[]`: ""} {
		if got := r.of(read(t, `{"groups": `+text+`}`)); got != want {
			t.Errorf("role of %s = %q, want %q", text, got, want)
		}
	}
	if got := (RoleClaim{}).of(read(t, `{"": "admins"}`)); got != "" {
		t.Errorf("role without a setting = %q, want none", got)
	}
}

// FuzzClaims reads a stranger's claims without a panic.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"groups": ["a"], "auth_time": 1, "email_verified": "true"}`), "groups")
	f.Add([]byte(`{"a": {"b": {"c": "d"}}}`), "a.b.c")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		all := claims{}
		if json.Unmarshal(raw, &all) != nil {
			return
		}
		all.values(name)
		all.isTrue(name)
		all.time(name)
		role := (RoleClaim{Claim: name, Roles: map[string]string{"x": "owner"}, Order: []string{"owner"}}).of(all)
		if role != "" && !all.has(name, "x") {
			t.Errorf("role %q without its value", role)
		}
	})
}
