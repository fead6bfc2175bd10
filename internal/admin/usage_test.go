package admin

import (
	"fmt"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestUsageExcludesSandbox checks that GET /usage and its CSV leave out requests to sandbox lines, and
// failed requests to models with no other line, if there are real lines. The member sandbox has the
// sums of these requests. A query for a sandbox line includes the line.
func TestUsageExcludesSandbox(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		const models = `models:
  - {id: m, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: s, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: sand, provider: sandbox, models: {m: a, s: a}}
`
		sandboxProviders := map[string]catalog.Provider{"test": providers["test"], "sandbox": providers["test"]}
		apply := func(text string) {
			t.Helper()
			doc, _, err := catalog.Parse([]byte(text), sandboxProviders)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.db.Update(t.Context(), func(tx *store.Tx) error { _, err := catalog.ApplyTx(tx, doc); return err }); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Update(t, c.db, func(tx *store.Tx) error {
			now, err := tx.NowMS()
			for i, series := range [][2]string{{"m", "sand"}, {"m", "real"}, {"m", ""}, {"s", ""}} {
				for _, text := range []string{
					fmt.Sprintf(`INSERT INTO ledger_series (id, account, key, model, line, endpoint, folded)
						VALUES (%d, 'acct_a', '', '%s', '%s', '/v1/responses', 0)`, i, series[0], series[1]),
					fmt.Sprintf(`INSERT INTO ledger_day (day, series, requests, billed, failed, prompt_tokens, cached_tokens, completion_tokens,
						quantity, cost_nano, line_cost_nano, line_costs, known_cost_nano)
						VALUES (%d, %d, %d, 0, 0, 0, 0, 0, 0, %d000000000, %d00000000, 1, %d000000000)`,
						now/86_400_000, i, 10+i, 3+i, 1+i, 3+i),
				} {
					if err == nil {
						_, err = tx.Exec(text)
					}
				}
			}
			return err
		})
		usage := func(query, want string) reply {
			t.Helper()
			r := c.ok("GET", "/usage?"+query, "")
			r.want(want)
			return r
		}
		figures := func(requests int, cost, lineCost string, lineCosts int, margin string) string {
			return fmt.Sprintf(`"requests":%d,"billed_requests":0,"failed_requests":0,"prompt_tokens":0,"cached_tokens":0,"completion_tokens":0,
				"image_count":0,"clip_count":0,"video_seconds":0,`+
				`"character_count":0,"audio_seconds":0,"search_count":0,"cost_usd":%s,"line_cost_usd":%s,"line_cost_requests":%d,"margin_usd":%s`,
				requests, cost, lineCost, lineCosts, margin)
		}
		sandboxLine, realLine := figures(10, "3", "0.1", 1, "2.9"), figures(11, "4", "0.2", 1, "3.8")
		sandboxTotal := `"sandbox":{` + figures(23, "9", "0.5", 2, "8.5") + `}`
		totalWithoutSandbox := `"total":{` + figures(23, "9", "0.5", 2, "8.5") + `}`
		zero := figures(0, "0", "null", 0, "null")
		apply(models)
		usage("", `{"total":{`+figures(46, "18", "1", 4, "17")+`}}`).wantNames("object", "since", "until", "group_by", "total", "data")
		apply(models + "  - {id: real, provider: test, models: {m: b}}\n")
		usage("", `{`+totalWithoutSandbox+`,`+sandboxTotal+`}`)
		usage("group_by=line", `{"data":[{"line":"",`+figures(12, "5", "0.3", 1, "4.7")+`},{"line":"real",`+realLine+`}],`+
			totalWithoutSandbox+`,`+sandboxTotal+`}`)
		usage("group_by=day", `{`+totalWithoutSandbox+`,`+sandboxTotal+`}`)
		usage("group_by=model&account=acct_a", `{`+totalWithoutSandbox+`,`+sandboxTotal+`}`)
		usage("account=acct_b", `{"total":{`+zero+`},"sandbox":{`+zero+`}}`)
		usage("line=real", `{"total":{`+realLine+`}}`).wantNames("object", "since", "until", "group_by", "total", "data")
		usage("line=sand&group_by=model", `{"total":{`+sandboxLine+`},"data":[{"model":"m",`+sandboxLine+`}]}`)
		apply(models) // without its real line, the catalog still counts as real
		usage("", `{"total":{`+realLine+`},"sandbox":{`+figures(35, "14", "0.8", 3, "13.2")+`}}`)
		if got, want := c.do("GET", "/usage?group_by=line&format=csv", "").body, "line,requests,billed_requests,failed_requests,prompt_tokens,"+
			"cached_tokens,completion_tokens,image_count,clip_count,video_seconds,"+
			"character_count,audio_seconds,search_count,cost_usd,line_cost_usd,line_cost_requests,margin_usd\n"+
			"real,11,0,0,0,0,0,0,0,0,0,0,0,4,0.2,1,3.8\n"; got != want {
			t.Errorf("the CSV is %s, want %s", got, want)
		}
	})
}
