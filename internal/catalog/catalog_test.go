package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind/registry"
)

// definedKinds returns the kinds of package wire/kind.
func definedKinds() (kinds []Kind) {
	for _, name := range registry.Names() {
		kinds = append(kinds, Kind(name))
	}
	return kinds
}

// testProviders returns providers with different kinds, forms and checks.
func testProviders() map[string]Provider {
	return map[string]Provider{
		"openai": {
			Kinds:    append([]Kind{KindChat, KindImage, KindVideo}, definedKinds()...),
			Forms:    []wire.Form{wire.FormChat, wire.FormResponses},
			NeedsKey: true, NeedsBaseURL: true,
		},
		"chatonly": {Kinds: []Kind{KindChat}, Forms: []wire.Form{wire.FormChat}, DefaultBaseURL: "https://chat.example/v1"},
		"cloud": {
			Kinds: []Kind{KindChat, KindImage}, Forms: []wire.Form{wire.FormChat, wire.FormMessages}, DefaultBaseURL: "https://cloud.example",
			NeedsKey: true, Keyless: func(o map[string]any) bool { return o["auth"] == "host" }, NeedsForms: true,
			CheckOptions: func(map[string]any) error { return nil },
		},
		"sandbox": {
			Kinds:      append([]Kind{KindChat, KindImage, KindVideo}, definedKinds()...),
			Forms:      []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
			KeyHeaders: []string{"X-Sand-Key"},
			CheckField: func(l *LineSpec, m *Model, field string, _ bool) error {
				if field == "size" {
					return fmt.Errorf("is the adapter's own for %s model %s", m.Kind, l.Models[m.ID])
				}
				return nil
			},
			CheckOptions: func(o map[string]any) error {
				if _, ok := o["nonsense"]; ok {
					return errors.New("nonsense is not an option of the sandbox")
				}
				if o["delay"] == "fast" {
					return errors.New("delay: must be a duration")
				}
				return nil
			},
		},
	}
}

// example returns a document with every key of a catalog.
func example(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func mustParse(t testing.TB, text string) *Document {
	t.Helper()
	doc, _, err := Parse([]byte(text), testProviders())
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return doc
}

// TestExample checks the values and the warnings of the example.
func TestExample(t *testing.T) {
	t.Parallel()
	doc, warnings, err := Parse(example(t), testProviders())
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Models) != 3 || len(doc.Lines) != 1 {
		t.Fatalf("got %d models and %d lines, want 3 and 1", len(doc.Models), len(doc.Lines))
	}
	lark, brush, clip, main := doc.Models[0], doc.Models[1], doc.Models[2], doc.Lines[0]
	if lark.ID != "lark-1" || lark.Kind != KindChat || lark.Owner() != "example" || !lark.Supports(wire.FormResponses) ||
		lark.Supports(wire.FormMessages) ||
		lark.ContextWindow != 128000 || lark.MaxOutputTokens != 16384 || lark.DefaultOutputTokens != 4096 || lark.MaxImageTokens != 8192 {
		t.Errorf("lark-1 = %+v, want the values of the example", lark)
	}
	if len(lark.Efforts) != 2 || lark.Efforts[1] != "high" {
		t.Errorf("efforts of lark-1 = %v, want the values of the example", lark.Efforts)
	}
	if p := lark.Price; p.Input != 250_000_000 || p.CachedInput != 25_000_000 || p.CacheWrite != 312_500_000 ||
		p.CacheWrite1h != 500_000_000 ||
		len(p.Bands) != 1 || p.Bands[0].PromptTokens != 200000 || p.Bands[0].CachedInput != 50_000_000 ||
		p.Bands[0].CacheWrite != 625_000_000 || p.Bands[0].CacheWrite1h != 1_000_000_000 ||
		p.Options["service_tier"]["flex"] != money.One/2 || p.Tools["web_search"] != 10_000_000 {
		t.Errorf("price of lark-1 = %+v, want the values of the example", p)
	}
	if brush.Tiers[0] != (Tier{"1K", 30_000_000}) || brush.MaxImages != 4 || brush.Params[1] != "style" || brush.Owner() != "tollgate" {
		t.Errorf("brush-1 = %+v, want the values of the example", brush)
	}
	if clip.PerClip || clip.Durations.Default() != 5 || clip.Tiers[1].Name != "1080p" || clip.Params[1] != "camera_fixed" {
		t.Errorf("clip-1 = %+v, want the values of the example", clip)
	}
	if main.APIKey != "${EXAMPLE_API_KEY}" || main.Models["lark-1"] != "vendor-lark-2026" || main.Weight != 100 || !main.Enabled ||
		main.MaxConcurrent != 200 {
		t.Errorf("line main = %+v, want the values of the example", main)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := []string{
		"models[1]: model brush-1 is open, but no enabled line serves it, so requests for it fail. Add a line, or change the model's state",
		"models[2]: model clip-1 is open, but no enabled line serves it, so requests for it fail. Add a line, or change the model's state",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got warnings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEveryPairOfFormsTranslates checks that every form of a client can be translated to every form
// of a line, and that the client's own form comes first.
func TestEveryPairOfFormsTranslates(t *testing.T) {
	t.Parallel()
	for _, client := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages} {
		for _, line := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini} {
			got := slices.Collect((&Line{LineSpec: LineSpec{Forms: []wire.Form{line}}}).FormsFor(client))
			if !slices.Equal(got, []wire.Form{line}) {
				t.Errorf("forms for %s on a line with %s: got %q, want only the line's", client, line, got)
			}
		}
	}
	twoForms := &Line{LineSpec: LineSpec{Forms: []wire.Form{wire.FormResponses, wire.FormChat}}}
	for client, want := range map[wire.Form][]wire.Form{
		wire.FormChat:      {wire.FormChat, wire.FormResponses},
		wire.FormResponses: {wire.FormResponses, wire.FormChat},
		wire.FormMessages:  {wire.FormResponses, wire.FormChat},
	} {
		if got := slices.Collect(twoForms.FormsFor(client)); !slices.Equal(got, want) {
			t.Errorf("forms for %s: got %q, want %q", client, got, want)
		}
	}
}

// TestWarningsOfMediaModels checks the warnings about valid but probably unintended settings of
// image and video models.
func TestWarningsOfMediaModels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"kind: image, price: {1K: 0}, free_daily_requests: 5, params: [seed]": "",
		"kind: image, price: {1K: 0, 2K: 1}, free_daily_requests: 5": "models[0].free_daily_requests: model a has a price too, so " +
			"its requests count against the daily limit and are also charged. Remove one of the two",
		"kind: video, per_clip: {720p: 1}, params: [seed, ratio]": "models[0].params[1]: ratio is a standard field of submissions, " +
			"which the gateway translates for each provider. It has no effect in params: remove it",
		"kind: image, price: {1K: 1}, params: [seed, quality]": "models[0].params[1]: quality changes what some providers charge, but not " +
			"the price here. Set the price for its most expensive value, or remove it from params",
	} {
		_, warnings, err := Parse([]byte(mediaYAML("state: retired, "+text)), testProviders())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range warnings {
			got += w.String()
		}
		if got != want {
			t.Errorf("%s: got warnings %q, want %q", text, got, want)
		}
	}
}

// TestPrintedDocuments checks that a document is printed as in testdata, and reads back.
func TestPrintedDocuments(t *testing.T) {
	t.Parallel()
	asYAML, err := os.ReadFile("testdata/printed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := os.ReadFile("testdata/printed.json")
	if err != nil {
		t.Fatal(err)
	}
	doc := mustParse(t, string(asYAML))
	if got := doc.YAML(); !bytes.Equal(got, asYAML) {
		t.Errorf("YAML is\n%s\nwant\n%s", got, asYAML)
	}
	if got := doc.JSON(); !bytes.Equal(got, asJSON) {
		t.Errorf("JSON is\n%s\nwant\n%s", got, asJSON)
	}
	for _, text := range [][]byte{asJSON, doc.canonical()} {
		if again := mustParse(t, string(text)); !Equal(again, doc) {
			t.Errorf("the document reads back as\n%s\nwant\n%s", again.canonical(), doc.canonical())
		}
	}
}

// TestStoredFormsAreKept checks that a stored line with one form of its provider keeps only this
// form.
func TestStoredFormsAreKept(t *testing.T) {
	t.Parallel()
	for name, info := range adapters.Providers() {
		providers := map[string]Provider{name: {Kinds: []Kind{KindChat}, Forms: info.Forms}}
		for _, form := range info.Forms {
			doc, _, err := Parse(fmt.Appendf(nil, `{"models":[{"id":"m","kind":"chat","context_window":9,"max_output_tokens":9,`+
				`"price":{"input":1,"output":1}}],"lines":[{"id":"l","provider":%q,"forms":[%q],"models":{"m":"v"}}]}`, name, form), providers)
			if err != nil {
				t.Fatal(err)
			}
			again, warnings, err := load(doc.canonical())
			if err != nil || len(warnings) > 0 || !Equal(doc, again) || !slices.Equal(again.Lines[0].Forms, []wire.Form{form}) {
				t.Errorf("provider %s, form %s: loaded %s with warnings %v, error %v", name, form, again.canonical(), warnings, err)
			}
		}
	}
}

// TestEquivalentDocuments checks that JSON and YAML documents with any line ends, byte order marks
// and anchors are read alike.
func TestEquivalentDocuments(t *testing.T) {
	t.Parallel()
	want := mustParse(t,
		"models:\n- {id: a, kind: image, price: {1K: 0.5, 2K: 1}, ratios: ['1:1', '16:9']}\n- {id: b, kind: image, price: {1K: 0.5, 2K: 3}}\n")
	for name, text := range map[string]string{
		"line ends": "models:\r\n- {id: a, kind: image, price: {1K: 0.5, 2K: 1}, ratios: ['1:1', '16:9']}\r\n- {id: b, kind: image, " +
			"price: {1K: 0.5, 2K: 3}}\r\n",
		"byte order mark": "\ufeffmodels: [{id: a, kind: image, price: {1K: 0.5, 2K: 1}, ratios: ['1:1', '16:9']}," +
			" {id: b, kind: image, price: {1K: 0.5, 2K: 3}}]",
		"tabs in JSON": "{\n\t\"models\": [{\"id\": \"a\", \"kind\": \"image\", \"price\": {\"1K\": 0.5, \"2K\": \"1.0\"}," +
			" \"ratios\": [\"1:1\", \"16:9\"]}, {\"id\": \"b\", \"kind\": \"image\", \"price\": {\"1K\": 5e-1, \"2K\": 3}}],\n\t\"lines\": null}",
		"anchors": "models:\n- &a\n  id: a\n  kind: image\n  price: &p\n    1K: 0.5\n    2K: 1\n  ratios: [1:1, " +
			"16:9]\n- id: b\n  kind: image\n  price:\n    <<: *p\n    2K: 3\n",
		"merged lists": "models:\n- {id: a, kind: image, price: &p {1K: 0.5, 2K: 1}, ratios: ['1:1', " +
			"'16:9']}\n- id: b\n  kind: image\n  price:\n    <<: [{1K: 0.5}, *p]\n    2K: 3\n",
	} {
		doc := mustParse(t, text)
		if !Equal(doc, want) {
			t.Errorf("%s: got %s, want %s", name, doc.canonical(), want.canonical())
		}
	}
}

func TestOptionsKeepTheirTypes(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, lineYAML(
		`provider: sandbox, options: {word: fast, quoted: "1", yes: true, whole: 3, big: 1e3, part: 0.25, tiny: 1e-9, list: [1, x],`+
			` inner: {deep: false}, none: null}`))
	want := map[string]any{
		"word": "fast", "quoted": "1", "yes": true, "whole": int64(3), "big": int64(1000), "part": 0.25, "tiny": 1e-9,
		"list": []any{int64(1), "x"}, "inner": map[string]any{"deep": false},
	}
	for name, text := range map[string]string{"as written": "", "as YAML": string(doc.YAML()), "as JSON": string(doc.JSON())} {
		got := doc
		if text != "" {
			got = mustParse(t, text)
		}
		if !reflect.DeepEqual(got.Lines[0].Options, want) {
			t.Errorf("options %s = %#v, want %#v", name, got.Lines[0].Options, want)
		}
	}
}
