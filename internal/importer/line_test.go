package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
)

// TestSupportedChannelsBecomeLines checks that each supported type of channel becomes a valid line, with
// and without its own address, and that no other type does.
func TestSupportedChannelsBecomeLines(t *testing.T) {
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
		c := read(t, program, sqliteFile(t, dump), nil)
		if got := len(c.Document.Lines); got != want {
			t.Errorf("%s: got %d lines, want %d: %+v", program, got, want, c.Remarks)
		}
		for _, l := range c.Document.Lines {
			if strings.Contains(l.BaseURL, "vendor.example") && strings.HasSuffix(l.BaseURL, "/") {
				t.Errorf("%s: line %s has the address %s, want no slash at the end", program, l.ID, l.BaseURL)
			}
		}
	}
}

func TestVendorsOfLiteLLMBecomeLines(t *testing.T) {
	t.Parallel()
	config := "model_list:\n"
	for name := range vendorKinds() {
		config += fmt.Sprintf("- model_name: %s\n  litellm_params: {model: %s/m, input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, "+
			"api_base: https://%s.example/v1, api_key: os.environ/KEY}\n", name, name, strings.ReplaceAll(name, "_", "-"))
	}
	c := read(t, LiteLLM, "", func(o *Options) { o.Config = file(t, config) })
	if got, want := len(c.Document.Lines), len(vendorKinds()); got != want {
		t.Errorf("got %d lines, want %d: %+v", got, want, c.Remarks)
	}
}

// TestChannelsOfSeveralKeys checks channels of newer versions of new-api: each key becomes a line,
// and some may be switched off.
func TestChannelsOfSeveralKeys(t *testing.T) {
	t.Parallel()
	dump := sample(t, "new-api.sqlite.sql") + `ALTER TABLE channels ADD COLUMN channel_info json;
		UPDATE channels SET key = 'sk-first' || char(10) || 'sk-second' || char(10) || 'sk-third', weight = 9,
		channel_info = '{"is_multi_key":true,"multi_key_size":3,"multi_key_status_list":{"1":3}}' WHERE id = 1;`
	c := read(t, NewAPI, sqliteFile(t, dump), nil)
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

// TestModelsPricedByExpression checks that a model with an expression is left out even if it has a
// ratio, and that the report shows how to write the price.
func TestModelsPricedByExpression(t *testing.T) {
	t.Parallel()
	before := read(t, NewAPI, sqliteFile(t, sample(t, "new-api.sqlite.sql")), nil)
	for _, expression := range []string{
		`tier("base", p * 2.5 + c * 15 + cr * 0.25)`, `v1:p * 3 + 15 * c`, `tier("request", fixed(0.01))`,
		`len <= 200000 ? tier("a", p*3 + c*15) : tier("b", p*6 + c*22.5)`, `(tier("base", p * 5)) * (param("x") == "fast" ? 6 : 1)`, `p`, ``,
	} {
		one, other := before.Document.Models[0], before.Document.Models[1]
		modes, _ := json.Marshal(map[string]string{one.ID: "tiered_expr", other.ID: "ratio"})
		texts, _ := json.Marshal(map[string]string{one.ID: expression, other.ID: expression})
		dump := sample(t, "new-api.sqlite.sql") + fmt.Sprintf(
			`INSERT INTO options VALUES ('billing_setting.billing_mode', '%s'), ('billing_setting.billing_expr', '%s')`, modes, texts)
		after := read(t, NewAPI, sqliteFile(t, dump), nil)
		has := func(id string) bool {
			return slices.ContainsFunc(after.Document.Models, func(m catalog.Model) bool { return m.ID == id })
		}
		if has(one.ID) || !has(other.ID) {
			t.Errorf("%s: %s is imported: %t, want false; %s, which has a ratio: %t, want true",
				expression, one.ID, has(one.ID), other.ID, has(other.ID))
		}
		if !slices.ContainsFunc(after.Remarks, func(r Remark) bool {
			return r.Name == one.ID && strings.HasSuffix(r.What, "expression "+expression) && strings.Contains(r.Do, "cache_write_1h")
		}) {
			t.Errorf("got remarks %+v, want one with the expression %s", after.Remarks, expression)
		}
	}
}
