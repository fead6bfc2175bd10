package show

import (
	"strings"
	"testing"

	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// TestCodesHaveWords checks that every error code of a request or a job has words, and that a
// provider's own code stays unchanged.
func TestCodesHaveWords(t *testing.T) {
	t.Parallel()
	codes := map[fault.Code]bool{fault.ClientClosed: true}
	for _, row := range fault.Table() {
		codes[row.Code] = true
		if meaning := Meaning(string(row.Code)); strings.Contains(meaning.String(), "`") || !strings.HasSuffix(meaning.String(),
			".") || meaning[0] > 'Z' {
			t.Errorf("Meaning(%s) = %q, want sentences without backticks", row.Code, meaning)
		}
	}
	for _, row := range fault.JobTable() {
		codes[row.Code] = true
	}
	for code := range codes {
		if words := CodeLabel(string(code)); words.String() == string(code) || len(words) > 24 {
			t.Errorf("CodeLabel(%s) = %q, want words of at most 24 bytes", code, words)
		}
	}
	for code := range codeLabels {
		if !codes[code] {
			t.Errorf("codeLabels has %s, which is not an error code", code)
		}
	}
	if CodeLabel("model_overheated").String() != "model_overheated" || Meaning("model_overheated") != "" {
		t.Error("a provider's own code has a label or a meaning")
	}
	if n := len(Codes()); n < 40 {
		t.Errorf("Codes returned %d options, want at least 40", n)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		want   ui.Badge
	}{
		{200, "", ui.Badge{Tone: ui.OK, Label: "200"}},
		{202, "render_failed", ui.Badge{Tone: ui.Bad, Label: "202 no clip produced", Title: "render_failed"}},
		{400, "own", ui.Badge{Tone: ui.Warn, Label: "400 own", Title: "own"}},
		{499, "client_closed", ui.Badge{Label: "499 client left", Title: "client_closed"}},
		{502, "upstream_busy", ui.Badge{Tone: ui.Bad, Label: "502 provider busy", Title: "upstream_busy"}},
	} {
		got := Status(c.status, c.code)
		if got.Label = ui.Words(got.Label.String()); got != c.want {
			t.Errorf("Status(%d, %q) = %+v, want %+v", c.status, c.code, got, c.want)
		}
	}
}

func TestPrice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{"3": {"$3.00", "$1.50"}, "0.3": {"$0.30", "$0.15"}, "0.025": {"$0.025", "$0.0125"},
		"0": {"$0.00", "$0.00"}} {
		price, err := money.ParsePrice(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{Price(price, 0).String(), Price(price, money.One/2).String()}; got != want {
			t.Errorf("Price(%s) with the factors 1 and 0.5 = %v, want %v", text, got, want)
		}
	}
}
