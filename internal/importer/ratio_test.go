package importer

import (
	"os"
	"path/filepath"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/money"
)

// TestRatios checks prices to the nano-dollar, and rounding in the account's favour.
func TestRatios(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		program                        Program
		settings                       map[string]string
		model                          string
		input, output, cached, written money.Price
		guessed                        bool
	}{
		"one-api": {OneAPI, map[string]string{"ModelRatio": `{"m": 1.25}`, "CompletionRatio": `{"m": 4}`}, "m",
			2_500_000_000, 10_000_000_000, 2_500_000_000, 2_500_000_000, false},
		"a third": {OneAPI, map[string]string{"ModelRatio": `{"gpt-3.5-turbo-0301": 0.75}`}, "gpt-3.5-turbo-0301",
			1_500_000_000, 2_000_000_000, 1_500_000_000, 1_500_000_000, true},
		"rounded down": {OneAPI, map[string]string{"ModelRatio": `{"m": 0.0000000001}`, "CompletionRatio": `{"m": 9}`}, "m", 0, 1, 0, 0, false},
		"an exponent":  {OneAPI, map[string]string{"ModelRatio": `{"m": 1e-3}`}, "m", 2_000_000, 2_000_000, 2_000_000, 2_000_000, true},
		"another unit": {OneAPI, map[string]string{"ModelRatio": `{"m": 1}`, "CompletionRatio": `{"m": 2}`, "QuotaPerUnit": "1000000"}, "m",
			1_000_000_000, 2_000_000_000, 1_000_000_000, 1_000_000_000, false},
		"a setting before a rule": {OneAPI, map[string]string{"ModelRatio": `{"gpt-4o": 1}`, "CompletionRatio": `{"gpt-4o": 2}`}, "gpt-4o",
			2_000_000_000, 4_000_000_000, 2_000_000_000, 2_000_000_000, false},
		"new-api's rule": {NewAPI, map[string]string{"ModelRatio": `{"gpt-4o": 1}`, "CompletionRatio": `{"gpt-4o": 2}`}, "gpt-4o",
			2_000_000_000, 8_000_000_000, 2_000_000_000, 2_500_000_000, true},
		"new-api's open rule": {NewAPI, map[string]string{"ModelRatio": `{"gpt-4": 15}`, "CompletionRatio": `{"gpt-4": 3}`}, "gpt-4",
			30_000_000_000, 90_000_000_000, 30_000_000_000, 37_500_000_000, false},
		"new-api's caches": {NewAPI, map[string]string{"ModelRatio": `{"m": 1}`, "CacheRatio": `{"m": 0.1}`, "CreateCacheRatio": `{"m": 2}`}, "m",
			2_000_000_000, 2_000_000_000, 200_000_000, 4_000_000_000, true},
	} {
		r, err := ratiosOf(test.program, test.settings)
		if err != nil {
			t.Fatal(err)
		}
		price, guessed, ok := r.priceOf(test.model)
		m, fits := chatModel(test.model, price, facts{})
		p := m.Price
		if !ok || !fits || guessed != test.guessed || p.Input != test.input || p.Output != test.output || p.CachedInput != test.cached ||
			p.CacheWrite != test.written {
			t.Errorf("%s: got %+v, guessed %v; want %+v", name, p, guessed, test)
		}
	}
}

func TestQuotaInDollars(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		unit  string
		quota int64
		want  money.Amount
	}{
		{"500000", 1, 2000}, {"500000", 500_000, money.USD}, {"500000", -3, -6000}, {"7", 1, 142_857_143}, {"7", -1, -142_857_142},
		{"0.5", 1, 2 * money.USD}, {"5e5", 1, 2000},
	} {
		r, err := ratiosOf(OneAPI, map[string]string{"QuotaPerUnit": test.unit})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := amountOf(r.usd(test.quota)); !ok || got != test.want {
			t.Errorf("%d of %s per dollar: got %s, want %s", test.quota, test.unit, got, test.want)
		}
	}
	if _, ok := amountOf(whole(1_000_000_001)); ok {
		t.Error("amountOf accepts more than money.Max, want false")
	}
}

func TestFactors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]money.Factor{"0.8": 800_000, "1.23456789": 1_234_567} {
		if got, exact := factorOf(number(text)); got != want || !exact {
			t.Errorf("%s: got %s, exact %v; want %s, true", text, got, exact, want)
		}
	}
	for text, want := range map[string]money.Factor{"0": 1, "-1": 1, "0.0000001": 1, "1e30": money.One} {
		if got, exact := factorOf(number(text)); got != want || exact {
			t.Errorf("%s: got %s, exact %v; want %s, false", text, got, exact, want)
		}
	}
}

func TestInvalidNumbers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "1/3", "0x10", "1e999999999", "1e-999999999", "NaN", "Inf", "1_000", "1 2"} {
		if r := number(text); r != nil {
			t.Errorf("%q: got %v, want nil", text, r)
		}
	}
	for _, settings := range []map[string]string{{"QuotaPerUnit": "0"}, {"QuotaPerUnit": "x"}, {"ModelRatio": "[]"},
		{"GroupRatio": `{"a":"b"}`}, {"ModelRatio": `{"a":1e999}`}} {
		if _, err := ratiosOf(OneAPI, settings); err == nil {
			t.Errorf("%v: got no error, want one", settings)
		}
	}
}

// TestSettingsOfTheProgram checks that the answer of GET /api/option/ wins over the database.
func TestSettingsOfTheProgram(t *testing.T) {
	t.Parallel()
	path := file(t, `{"success":true,"data":[{"key":"ModelRatio","value":"{\"ERNIE-4.0-8K\":1,\"gpt-4o\":2}"},
		{"key":"QuotaPerUnit","value":"500000"}]}`)
	c := read(t, OneAPI, oldOneAPI(t), func(o *Options) { o.Settings = path })
	if len(c.Document.Models) != 1 || c.Document.Models[0].ID != "gpt-4o" || c.Document.Models[0].Price.Input != 4*1_000_000_000 {
		t.Errorf("got models %+v, want gpt-4o alone with an input price of 4 USD", c.Document.Models)
	}
}

// FuzzConfig checks that any config file gives a valid catalog or an error.
func FuzzConfig(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join("testdata", "litellm.config.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(raw))
	f.Add("model_list: [{model_name: a, litellm_params: {model: openai/gpt-4o, input_cost_per_token: 1e-6, output_cost_per_token: 2}}]")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Read(t.Context(), Options{Program: LiteLLM, Config: file(t, text), Secrets: "/s", Providers: app.Providers()}); err != nil {
			t.Logf("refused: %v", err)
		}
	})
}
