package chat

import (
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/responses"
)

// TestValuesInsideFieldsArePriced checks that a factor of the catalog applies to the hold and to
// the charge, and that an effort costs more only if the catalog sets a factor.
func TestValuesInsideFieldsArePriced(t *testing.T) {
	t.Parallel()
	three := 3 * money.One
	m := &catalog.Model{ID: "m", ContextWindow: 10_000, MaxOutputTokens: 100}
	dollar, _ := money.ParsePrice("1")
	m.Price.Rates = catalog.Rates{Input: dollar, Output: dollar, CachedInput: dollar, CacheWrite: dollar, CacheWrite1h: dollar}
	m.Price.Options = map[string]map[string]money.Factor{
		"reasoning.mode": {"pro": three}, "reasoning.effort": {"xhigh": three}, "background_options": {"x": three},
	}
	plain := catalog.Choice{}
	usage := wire.Usage{Prompt: 100, Completion: 100}
	for members, factor := range map[string]money.Amount{
		`"reasoning":{"mode":"pro"}`: 3, `"reasoning":{"mode":"standard"}`: 1, `"reasoning":{"effort":"xhigh"}`: 3,
		`"reasoning":{"effort":"low"}`: 1, `"background_options":"x"`: 3, `"reasoning":{"mode":null}`: 1,
		`"prompt_cache_options":{"ttl":"30m"}`: 1,
	} {
		r, err := responses.Open([]byte(`{"input":"x",` + members + `}`))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			t.Fatalf("%s: %v", members, err)
		}
		choice, routing := m.ChoiceOf(r.Params(), 0)
		if err := m.CheckPriced(choice); err != nil || len(routing) > 0 {
			t.Errorf("%s: %v, routing %q", members, err, routing)
		}
		if got, want := m.Cost(usage, choice), factor*m.Cost(usage, plain); got != want {
			t.Errorf("%s: charged %s, want %s", members, got, want)
		}
		bound := wire.PromptBound{TextBytes: 100}
		if got, want := m.HighestCost(bound, 100, 1, choice), factor*m.HighestCost(bound, 100, 1, plain); got != want {
			t.Errorf("%s: held %s, want %s", members, got, want)
		}
	}
	for _, members := range []string{
		`"reasoning":{"mode":"max"}`, `"reasoning":{"mode":"PRO"}`, `"reasoning":{"mode":7}`, `"reasoning":{"mode":{"pro":1}}`,
		`"prompt_cache_options":{"ttl":"12h"}`, `"prompt_cache_options":{"ttl":["12h"]}`,
	} {
		r, err := responses.Open([]byte(`{"input":"x",` + members + `}`))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			t.Fatalf("%s: %v", members, err)
		}
		if choice, _ := m.ChoiceOf(r.Params(), 0); m.CheckPriced(choice) == nil {
			t.Errorf("%s has no price, and is offered", members)
		}
	}
}
