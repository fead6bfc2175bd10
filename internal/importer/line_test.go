package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
)

// TestEveryKindOfChannelIsALineOrARemark: each type of channel that has a provider
// makes a line that a catalog takes, with an address of its own and without.
func TestEveryKindOfChannelIsALineOrARemark(t *testing.T) {
	t.Parallel()
	for _, program := range []Program{OneAPI, NewAPI} {
		dump := `CREATE TABLE channels (id int, type int, key text, status int, name text, base_url text, models text, priority int);
			CREATE TABLE users (id int); CREATE TABLE tokens (id int, user_id int); CREATE TABLE options (key text, value text);
			INSERT INTO options VALUES ('ModelRatio', '{"m":1}');`
		want := 0
		for n, kind := range kindsOf(program) {
			own := "https://vendor.example/"
			if kind.name == "custom" && program == NewAPI {
				own += "v1/chat/completions"
			}
			dump += fmt.Sprintf("INSERT INTO channels VALUES (%d, %d, 'sk-k', 1, '%s', '%s', 'm', 0);", n, n, kind.name, own)
			dump += fmt.Sprintf("INSERT INTO channels VALUES (%d, %d, 'sk-k', 1, '%s', '', 'm', 0);", n+1000, n, kind.name)
			if kind.provider != "" {
				want++
			}
			if kind.provider != "" && (kind.bare || kind.base != "") {
				want++
			}
		}
		c := read(t, program, lite(t, dump), nil)
		if got := len(c.Document.Lines); got != want {
			t.Errorf("%s: %d lines, not %d: %+v", program, got, want, c.Remarks)
		}
		for _, l := range c.Document.Lines {
			if strings.Contains(l.BaseURL, "vendor.example") && strings.HasSuffix(l.BaseURL, "/") {
				t.Errorf("%s: line %s has the address %s", program, l.ID, l.BaseURL)
			}
		}
	}
}

// TestEveryVendorOfLiteLLMIsALine, with an address of its own where it needs one.
func TestEveryVendorOfLiteLLMIsALine(t *testing.T) {
	t.Parallel()
	config := "model_list:\n"
	for name := range vendorKinds() {
		config += fmt.Sprintf("- model_name: %s\n  litellm_params: {model: %s/m, input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, "+
			"api_base: https://%s.example/v1, api_key: os.environ/KEY}\n", name, name, strings.ReplaceAll(name, "_", "-"))
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := read(t, LiteLLM, "", func(o *Options) { o.Config = path })
	if got, want := len(c.Document.Lines), len(vendorKinds()); got != want {
		t.Errorf("%d lines, not %d: %+v", got, want, c.Remarks)
	}
}

// TestChannelsOfSeveralKeys: newer versions of new-api keep several keys in a channel,
// of which some may be switched off. Each is a line.
func TestChannelsOfSeveralKeys(t *testing.T) {
	t.Parallel()
	dump := sample(t, "new-api.sqlite.sql") + `ALTER TABLE channels ADD COLUMN channel_info json;
		UPDATE channels SET key = 'sk-first' || char(10) || 'sk-second' || char(10) || 'sk-third', weight = 9,
		channel_info = '{"is_multi_key":true,"multi_key_size":3,"multi_key_status_list":{"1":3}}' WHERE id = 1;`
	c := read(t, NewAPI, lite(t, dump), nil)
	keys := map[string]string{}
	for _, s := range c.Secrets {
		keys[s.Path] = s.Value
	}
	lines := c.Document.Lines[:3]
	for i, want := range []struct {
		id, key string
		enabled bool
	}{{"openai-main-1", "sk-first", true}, {"openai-main-1-2", "sk-second", false}, {"openai-main-1-3", "sk-third", true}} {
		l := lines[i]
		if l.ID != want.id || l.Enabled != want.enabled || l.Weight != 3 || keys["/secrets/"+want.id+".key"] != want.key {
			t.Errorf("line %+v has the key %q; want %+v", l, keys["/secrets/"+want.id+".key"], want)
		}
	}
}

// TestModelsPricedByExpression: newer versions of new-api keep a model's ratio beside the
// expression that prices it, which alone counts.
func TestModelsPricedByExpression(t *testing.T) {
	t.Parallel()
	before := read(t, NewAPI, lite(t, sample(t, "new-api.sqlite.sql")), nil)
	if len(before.Document.Models) < 3 {
		t.Fatalf("%d models", len(before.Document.Models))
	}
	plain, odd, back := before.Document.Models[0].ID, before.Document.Models[1].ID, before.Document.Models[2].ID
	dump := sample(t, "new-api.sqlite.sql") + fmt.Sprintf(`
		INSERT INTO options VALUES ('billing_setting.billing_mode', '{"%[1]s":"tiered_expr","%[2]s":"tiered_expr","%[3]s":"ratio"}');
		INSERT INTO options VALUES ('billing_setting.billing_expr',
			'{"%[1]s":"tier(\"base\", p * 7 + c * 70)","%[2]s":"tier(\"r\", fixed(1))","%[3]s":"p * 9"}');`,
		plain, odd, back)
	after := read(t, NewAPI, lite(t, dump), nil)
	prices := map[string]catalog.ChatPrice{}
	for _, m := range after.Document.Models {
		prices[m.ID] = m.Price
	}
	if got := prices[plain]; got.Input.String() != "7" || got.Output.String() != "70" {
		t.Errorf("%s costs %s", plain, told(got))
	}
	if _, there := prices[odd]; there || told(prices[back]) != told(before.Document.Models[2].Price) {
		t.Errorf("%s is there: %v; %s costs %s", odd, there, back, told(prices[back]))
	}
	if !slices.ContainsFunc(after.Remarks, func(r Remark) bool { return r.Name == odd && strings.Contains(r.What, "fixed(1)") }) {
		t.Errorf("nothing is said of %s: %+v", odd, after.Remarks)
	}
}
