package adapters_test

import (
	"slices"
	"strings"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
)

// TestListedMeansOpened: every provider that the catalog accepts can be opened
// and says what the catalog has to know.
func TestListedMeansOpened(t *testing.T) {
	t.Parallel()
	set := adapters.New(adapters.Options{})
	for name, info := range adapters.Providers() {
		chats := slices.Contains(info.Kinds, "chat")
		if len(info.Kinds) == 0 || chats != (len(info.Forms) > 0) || info.CheckOptions == nil {
			t.Errorf("%s: %+v", name, info)
			continue
		}
		if err := info.CheckOptions(map[string]any{"no_such_option": 1}); err == nil || !strings.Contains(err.Error(), "no_such_option") {
			t.Errorf("%s: an unknown option: %v", name, err)
		}
		a, err := set.Open(upstream.Target{Line: "main", Provider: name, BaseURL: info.DefaultBaseURL, Key: "key"})
		if err != nil || a == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	set := adapters.New(adapters.Options{})
	for _, target := range []upstream.Target{
		{Line: "main", Provider: "nobody"},
		{Line: "main", Provider: "openai", BaseURL: "not an address"},
		{Line: "main", Provider: "sandbox", Options: map[string]any{"fail": "x"}},
	} {
		a, err := set.Open(target)
		if err == nil || !strings.Contains(err.Error(), "line main") {
			t.Errorf("%+v: %v", target, err)
		}
		if a != nil {
			t.Errorf("%+v: an adapter came with the error", target)
		}
	}
}
