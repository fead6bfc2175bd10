package adapters_test

import (
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
)

// TestListedMeansOpened tests that every provider accepted by the catalog can be opened and has the
// facts for the catalog. An error about an option begins with the option's name; the catalog puts
// the name into the path of the fault.
func TestListedMeansOpened(t *testing.T) {
	t.Parallel()
	set := adapters.New(adapters.Options{})
	for name, info := range adapters.Providers() {
		chats := slices.Contains(info.Kinds, "chat")
		if len(info.Kinds) == 0 || chats != (len(info.Forms) > 0) || info.CheckOptions == nil {
			t.Errorf("%s: %+v", name, info)
			continue
		}
		err := info.CheckOptions(map[string]any{"no_such_option": 1})
		if err == nil || !strings.HasPrefix(err.Error(), "no_such_option: unknown option") {
			t.Errorf("%s: an unknown option: %v", name, err)
		}
		base := info.DefaultBaseURL
		if base == "" && info.NeedsBaseURL {
			base = "https://resource.example"
		}
		a, err := set.Open(upstream.Target{Line: "main", Provider: name, BaseURL: base, Key: "key"})
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

// TestOptionsComeThroughTheCatalog tests the options shown in the operators' document: the catalog
// reads them, the adapters accept them, and faults have the right path.
func TestOptionsComeThroughTheCatalog(t *testing.T) {
	t.Parallel()
	const catalogue = `
models:
  - {id: easel, kind: image, price: {1K: 0.03, 2K: 0.05}, ratios: ["1:1"], max_images: 4, max_references: 4}
lines:
  - id: main
    provider: PROVIDER
    api_key: ${KEY}
    models: {easel: fal-ai/nano-banana-pro}
    options:
      fields: {image: input_image, resolution: ""}
      values: {resolution: {1K: 1 MP, 2K: 4 MP}, ratio: {"16:9": wide}, duration: {5: 121}}
      input: {output_format: png, steps: 4, list: [1, 2.5]}
      models:
        - {id: fal-ai/nano-banana-pro, size: ratio, references: fal-ai/nano-banana-pro/edit}
        - {id: fal-ai/nano-banana-pro/edit, size: SIZE, fields: {image: ""}}
`
	known := map[string]catalog.Provider{}
	for name, info := range adapters.Providers() {
		p := catalog.Provider{Forms: info.Forms, OptionalForms: info.OptionalForms,
			DefaultBaseURL: info.DefaultBaseURL, NeedsBaseURL: info.NeedsBaseURL,
			NeedsKey: info.NeedsKey, Keyless: info.Keyless,
			NeedsForms:   info.NeedsForms,
			CheckOptions: info.CheckOptions}
		for _, kind := range info.Kinds {
			p.Kinds = append(p.Kinds, catalog.Kind(kind))
		}
		known[name] = p
	}
	for _, provider := range []string{"fal", "replicate"} {
		doc, _, err := catalog.Parse([]byte(strings.NewReplacer("PROVIDER", provider, "SIZE", "ratio").Replace(catalogue)), known)
		if err != nil {
			t.Errorf("%s: %v", provider, err)
			continue
		}
		line := doc.Lines[0]
		if _, err := adapters.New(adapters.Options{}).Open(upstream.Target{Line: line.ID, Provider: provider, Key: "key",
			Options: line.Options}); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
		_, _, err = catalog.Parse([]byte(strings.NewReplacer("PROVIDER", provider, "SIZE", "square").Replace(catalogue)), known)
		if err == nil || !strings.Contains(err.Error(), "options.models") || !strings.Contains(err.Error(), "size: must be ratio") {
			t.Errorf("%s: %v", provider, err)
		}
	}
}
