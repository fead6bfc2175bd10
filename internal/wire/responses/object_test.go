package responses

import (
	"bytes"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// TestObjectHasNoValueThatTheFormDoesNotKnow tests members with a list of values or a type, for
// lines of any form.
func TestObjectHasNoValueThatTheFormDoesNotKnow(t *testing.T) {
	t.Parallel()
	for tier, want := range map[string]string{
		"": "default", "default": "default", "priority": "priority", "flex": "flex", // unchanged
		"standard": "default", "batch": "default", "on_demand": "default", // of other forms and vendors
	} {
		object := NewObject(wire.Identity{}, openRequest(t, `{"model":"m","input":"x"}`))
		out := object.Append(nil, State{Status: "completed", Usage: &wire.Usage{ServiceTier: tier}})
		if got := rawjson.Unquote(rawjson.Field(out, "service_tier")); got != want {
			t.Errorf("%q: %q, want %q", tier, got, want)
		}
	}
	for body, want := range map[string]bool{
		`{"model":"m","input":"x"}`: false, `{"model":"m","input":"x","user":null}`: false, `{"model":"m","input":"x","user":"u"}`: true,
	} {
		object := NewObject(wire.Identity{}, openRequest(t, body))
		out := object.Append(nil, State{Status: "completed"})
		if bytes.Contains(out, []byte(`"user":"u"`)) != want || bytes.Contains(out, []byte(`"user":null`)) {
			t.Errorf("%s: %s", body, out)
		}
	}
}
