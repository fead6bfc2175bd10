package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// chatModels returns a document with a chat model for each price, `ID=PRICE`, and a line for all.
func chatModels(t *testing.T, prices ...string) *Document {
	t.Helper()
	var text, ids strings.Builder
	text.WriteString("models:\n")
	for _, p := range prices {
		id, price, _ := strings.Cut(p, "=")
		text.WriteString("  - {id: " + id + ", kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: " +
			price + ", output: 1}}\n")
		ids.WriteString(", " + id + ": " + id)
	}
	text.WriteString("lines:\n  - {id: main, provider: sandbox, models: {" + strings.TrimPrefix(ids.String(), ", ") + "}}\n")
	return mustParse(t, text.String())
}

// TestMerge checks which parts of a newer catalog a scheduled change keeps, and with which it conflicts.
func TestMerge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, next, current, want []string
		conflicts                 []string
	}{
		"no other change":        {[]string{"a=1", "b=1"}, []string{"a=2", "b=1"}, []string{"a=1", "b=1"}, []string{"a=2", "b=1"}, nil},
		"another model":          {[]string{"a=1", "b=1"}, []string{"a=2", "b=1"}, []string{"a=1", "b=3"}, []string{"a=2", "b=3"}, nil},
		"the same model":         {[]string{"a=1", "b=1"}, []string{"a=2", "b=1"}, []string{"a=3", "b=1"}, nil, []string{"model a"}},
		"the same change":        {[]string{"a=1", "b=1"}, []string{"a=2", "b=1"}, []string{"a=2", "b=1"}, nil, []string{"model a"}},
		"a removed model":        {[]string{"a=1", "b=1"}, []string{"a=2", "b=1"}, []string{"b=1"}, nil, []string{"model a"}},
		"a new one and its line": {[]string{"a=1"}, []string{"a=1", "b=1"}, []string{"a=2"}, []string{"a=2", "b=1"}, nil},
		"both add a model":       {[]string{"a=1"}, []string{"a=1", "b=1"}, []string{"a=1", "b=2"}, nil, []string{"line main", "model b"}},
		"removed by the change":  {[]string{"a=1", "b=1"}, []string{"b=1"}, []string{"a=1", "b=2"}, []string{"b=2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Merge(chatModels(t, c.base...), chatModels(t, c.next...), chatModels(t, c.current...))
			var conflict *conflictError
			if errors.As(err, &conflict) {
				if !slices.Equal(conflict.Entries, c.conflicts) {
					t.Errorf("conflicts %q, want %q", conflict.Entries, c.conflicts)
				}
				return
			}
			if err != nil || len(c.conflicts) > 0 {
				t.Fatalf("error %v, want conflicts %q", err, c.conflicts)
			}
			if want := chatModels(t, c.want...); !Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got.YAML(), want.YAML())
			}
		})
	}
}

// TestMergeOfNewEntries checks that new models come after those of a newer catalog.
func TestMergeOfNewEntries(t *testing.T) {
	t.Parallel()
	models := func(prices ...string) *Document { return &Document{Models: chatModels(t, prices...).Models} }
	got, err := Merge(models("a=1", "z=1"), models("b=1", "a=2", "z=1"), models("a=1", "z=1", "c=1"))
	if want := models("a=2", "z=1", "c=1", "b=1"); err != nil || !Equal(got, want) {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got.YAML(), want.YAML())
	}
}
