package admin

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// document returns a catalog with one model, its input price and its line.
func document(price string) string {
	return `models:
  - id: swift-1
    kind: chat
    state: open
    forms: [chat]
    context_window: 1000
    max_output_tokens: 100
    price: {input: ` + price + `, output: 2}
lines:
  - id: main
    provider: test
    models: {swift-1: vendor-swift}
`
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		watcher := catalog.NewWatcher(catalog.WatcherOptions{DB: c.db, Providers: providers, Interval: time.Hour,
			Lookup: func(string) (string, bool) { return "value", true }, Log: slog.New(slog.DiscardHandler)})
		c = newCaller(t, c.db, func(opts *Options) { opts.Catalog = watcher })
		c.do("GET", "/catalog", "").wantFault(fault.NotFound, "")

		dry := c.ok("PUT", "/catalog?dry_run=true", document("0.25"), "Content-Type", "application/yaml")
		dry.wantNames("revision", "changes", "warnings", "dry_run")
		dry.want(`{"revision":0,"warnings":[]}`)
		c.do("GET", "/catalog", "").wantFault(fault.NotFound, "")

		put := c.ok("PUT", "/catalog", document("0.25"))
		put.wantNames("revision", "changes", "warnings")
		put.want(`{"revision":1,"changes":["model swift-1: added","line main: added"],"warnings":[]}`)
		if got := watcher.Current().Revision; got != 1 {
			t.Errorf("after the answer this node serves revision %d, want 1", got)
		}
		current := c.ok("GET", "/catalog", "")
		if !strings.HasPrefix(current.body, "{") || current.header.Get("X-Catalog-Revision") != "1" {
			t.Errorf("the current catalog is %s in revision %s, want JSON in revision 1", current.body, current.header.Get("X-Catalog-Revision"))
		}
		for accept, kind := range map[string]string{
			"application/yaml": "application/yaml", "text/yaml, application/json": "application/yaml",
			"application/json": "application/json", "*/*": "application/json",
			"text/html, application/json;q=0.9, application/yaml": "application/json",
		} {
			r := c.do("GET", "/catalog", "", "Accept", accept)
			if r.status != 200 || r.header.Get("Content-Type") != kind || (kind == "application/yaml") != strings.Contains(r.body, "- id: swift-1") {
				t.Errorf("Accept %q got %d, the type %s and %s, want the type %s", accept, r.status, r.header.Get("Content-Type"), r.body, kind)
			}
			// Sending the answer back changes nothing.
			c.ok("PUT", "/catalog", r.body, "Content-Type", kind).want(`{"revision":1,"changes":[]}`)
		}

		c.ok("PUT", "/catalog?dry_run=false", document("0.3")).want(`{"revision":2,"changes":["model swift-1: price.input 0.25 -> 0.3"]}`)
		history, more := c.ok("GET", "/catalog/revisions?limit=1", "").list()
		if len(history) != 1 || !more || fmt.Sprint(history[0]["revision"]) != "2" {
			t.Errorf("the first page of the history is %v with more %v, want revision 2 and more", history, more)
		}
		history, more = c.ok("GET", "/catalog/revisions?after=2", "").list()
		if len(history) != 1 || more || fmt.Sprint(history[0]["revision"]) != "1" {
			t.Errorf("the second page of the history is %v with more %v, want only revision 1", history, more)
		}
		old := c.ok("GET", "/catalog/revisions/1", "")
		if old.body != current.body || old.header.Get("X-Catalog-Revision") != "1" {
			t.Errorf("revision 1 is %s, want %s", old.body, current.body)
		}
		c.do("GET", "/catalog/revisions/3", "").wantFault(fault.NotFound, "")
		c.do("GET", "/catalog/revisions/-1", "").wantFault(fault.NotFound, "")
	})
}

func TestCatalogFaults(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		c.ok("PUT", "/catalog", document("0.25"))
		r := c.do("PUT", "/catalog", document("-1")+"surplus: 1\n")
		r.wantFault(fault.InvalidCatalog, "models[0].price.input")
		faults, ok := r.members()["faults"].([]any)
		if !ok || len(faults) != 2 {
			t.Fatalf("the answer is %s, want 2 faults", r.body)
		}
		if faults[0] != "models[0].price.input: must not be negative" || !strings.HasPrefix(faults[1].(string), "surplus: ") {
			t.Errorf("the faults are %v, want the price and surplus", faults)
		}
		one, want := c.do("PUT", "/catalog", document("-1")), "nothing changed: models[0].price.input: must not be negative"
		if text := one.members()["error"].(map[string]any)["message"].(string); !strings.HasSuffix(text, want) {
			t.Errorf("the message for one fault is %q, want the end %q", text, want)
		}
		for _, body := range []string{"", "[]", "{", "models: [", "\xff"} {
			for _, query := range []string{"", "?dry_run=true"} {
				r := c.do("PUT", "/catalog"+query, body)
				if r.status != 400 || !strings.Contains(r.body, `"code":"invalid_catalog"`) || !strings.Contains(r.body, `"faults":["`) {
					t.Errorf("PUT %s with %q answered %d %s, want a 400 with faults", query, body, r.status, r.body)
				}
			}
		}
		c.do("PUT", "/catalog", strings.Repeat("#", maxCatalog+1)).wantFault(fault.RequestTooLarge, "")
		c.do("PUT", "/catalog?dry_run=maybe", document("1")).wantFault(fault.InvalidRequest, "dry_run")
		c.do("PUT", "/catalog?dryrun=true", document("1")).wantFault(fault.InvalidRequest, "dryrun")
		if history, _ := c.ok("GET", "/catalog/revisions", "").list(); len(history) != 1 {
			t.Errorf("after the rejected catalogs the history is %v, want one revision", history)
		}
		c.do("GET", "/catalog/revisions?after=x", "").wantFault(fault.InvalidRequest, "after")
	})
}

// TestCatalogWarnings checks that an apply and its dry run warn of keys and lines without their
// variables, and of removed models with recent requests.
func TestCatalogWarnings(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		watcher := catalog.NewWatcher(catalog.WatcherOptions{DB: c.db, Providers: providers, Interval: time.Hour,
			Lookup: func(name string) (string, bool) { return map[string]string{"SET": "value"}[name], name == "SET" },
			Log:    slog.New(slog.DiscardHandler)})
		c = newCaller(t, c.db, func(opts *Options) { opts.Catalog = watcher })
		c.ok("PUT", "/catalog", document("0.25"))
		storetest.Update(t, c.db, func(tx *store.Tx) error {
			now, err := tx.NowMS()
			if err == nil {
				_, err = tx.Exec(`INSERT INTO ledger_series (id, account, key, model, line, endpoint, folded)
					VALUES (1, 'acc_1', 'key_1', 'swift-1', 'main', '/v1/chat/completions', 0)`)
			}
			if err == nil {
				_, err = tx.Exec(`INSERT INTO ledger_day (day, series, requests, billed, failed, prompt_tokens, cached_tokens, completion_tokens,
					quantity, cost_nano, line_cost_nano, line_costs) VALUES ($1, 1, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0)`,
					now/(24*time.Hour).Milliseconds())
			}
			return err
		})
		newCatalog := strings.ReplaceAll(document("0.25"), "swift-1", "swift-2") + "    api_keys: [\"${UNSET}\", \"${SET}\"]\n" +
			"  - {id: second, provider: test, models: {swift-2: vendor}, api_key: \"${UNSET}\"}\n"
		const warnings = `"warnings":[` +
			`"lines[0].api_keys[0]: the variable UNSET is not set on this node, so line main does not use this key",` +
			`"lines[1]: the variable UNSET is not set on this node, so line second is out of service",` +
			`"models: this removes swift-1, which had 7 requests in the last 30 days. Revision 1 still has the model"]`
		c.ok("PUT", "/catalog?dry_run=true", newCatalog).want(`{"revision":1,` + warnings + `}`)
		c.ok("PUT", "/catalog", newCatalog).want(`{"revision":2,` + warnings + `}`)
	})
}
