package admin

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/store/storetest"
)

func TestCredits(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		path := "/accounts/" + id + "/credits"
		r := c.ok("POST", path, `{"usd":5,"note":" first "}`)
		r.wantNames("balance_usd")
		r.want(`{"balance_usd":5}`)
		c.ok("POST", path, `{"usd":"0.1"}`).want(`{"balance_usd":5.1}`)
		c.ok("POST", path, `{"usd":0.000000001}`).want(`{"balance_usd":5.100000001}`)
		c.ok("POST", path, `{"usd":-6.1,"note":null}`).want(`{"balance_usd":-0.999999999}`)
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":-0.999999999}`)

		entries, more := c.ok("GET", "/accounts/"+id+"/entries", "").list()
		if len(entries) != 4 || more {
			t.Fatalf("the entries are %v with more %v, want 4", entries, more)
		}
		newest, _ := json.Marshal(entries[0])
		oldest, _ := json.Marshal(entries[3])
		reply{t: t, body: string(newest)}.want(`{"kind":"take_back","usd":-6.1,"balance_usd":-0.999999999}`)
		reply{t: t, body: string(newest)}.wantNames("id", "kind", "usd", "balance_usd", "created")
		reply{t: t, body: string(oldest)}.want(`{"kind":"credit","usd":5,"balance_usd":5,"note":"first"}`)

		page, more := c.ok("GET", "/accounts/"+id+"/entries?limit=1&after="+entries[0]["id"].(string), "").list()
		if len(page) != 1 || !more || page[0]["id"] != entries[1]["id"] {
			t.Errorf("the page after the first entry is %v with more %v, want the second entry and more", page, more)
		}
		if none, more := c.ok("GET", "/accounts/"+id+"/entries?after=nothing", "").list(); len(none) != 0 || more {
			t.Errorf("the page after an unknown entry is %v with more %v, want it empty", none, more)
		}
		c.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
		c.ok("GET", "/audit?account="+id, "").want(`{"ok":true,"differences":[]}`)
		if r := c.do("GET", "/audit?account=acct_none", ""); r.status != http.StatusNotFound || !strings.Contains(r.body, "acct_none") {
			t.Errorf("the audit of an unknown account answered %+v, want a 404 that names the account", r)
		}
	})
}

// TestEntriesAsCSV checks that the CSV has all selected entries of an account, newest first, and that
// no note is a formula.
func TestEntriesAsCSV(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		c.ok("POST", "/accounts/"+id+"/credits", `{"usd":5,"note":"=1+1, \"quoted\""}`)
		const credits = 2*csvBatch + 10
		storetest.Exec(t, c.db, `INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
			WITH RECURSIVE n (i) AS (SELECT CAST(2 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			SELECT 'ent_x' || CAST(i AS TEXT), $2, i, 'credit', 1, 1, '', 1800000000000 + i * 1000 FROM n`, credits, id)
		lines := func(query string, headers ...string) [][]string {
			t.Helper()
			got := c.do("GET", "/accounts/"+id+"/entries"+query, "", headers...)
			rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
			if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/csv; charset=utf-8" || err != nil ||
				!slices.Equal(rows[0], entryColumns) {
				t.Fatalf("GET %s answered %d %v (%v), want CSV: %s", query, got.status, got.header, err, got.body[:min(len(got.body), 300)])
			}
			return rows[1:]
		}
		all := lines("?format=csv")
		if len(all) != credits || all[0][0] != fmt.Sprint("ent_x", credits) || all[0][8] != "2027-01-15T08:33:30Z" ||
			all[credits-1][7] != `'=1+1, "quoted"` || all[credits-1][2] != "5" {
			t.Errorf("the CSV has %d lines, from %v to %v, want %d", len(all), all[0], all[len(all)-1], credits)
		}
		for query, want := range map[string]int{"": credits, "?limit=3": 3, "?after=ent_x5": 4, "?kind=charge": 0, "?kind=credit&limit=200": 200,
			"?since=2027-01-15T08:00:10Z&until=2027-01-15T08:00:20Z": 10} {
			if got := lines(query, "Accept", "text/csv"); len(got) != want {
				t.Errorf("GET %s returned %d lines, want %d", query, len(got), want)
			}
		}
		for query, param := range map[string]string{"kind=gift": "kind", "format=xml": "format", "since=once": "since", "until=x": "until"} {
			c.do("GET", "/accounts/"+id+"/entries?"+query, "").wantFault(fault.InvalidRequest, param)
		}
		c.do("GET", "/accounts/acct_none/entries?format=csv", "").wantFault(fault.NotFound, "")
	})
}

func TestCreditFaults(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		for body, param := range map[string]string{
			`{}`: "usd", `{"usd":null}`: "usd", `{"usd":0}`: "usd", `{"usd":"-0.0"}`: "usd", `{"usd":"five"}`: "usd", `{"usd":true}`: "usd",
			`{"usd":1e-10}`: "usd", `{"usd":"1e3"}`: "usd", `{"usd":"1E1"}`: "usd",
			`{"usd":"-5e0"}`: "usd", `{"usd":1e99}`: "usd", `{"usd":1000000001}`: "usd", `{"usd":"0x10"}`: "usd", `{"usd":"1_0"}`: "usd",
			`{"usd":1,"note":" code code_019a"}`: "note", `{"usd":1,"note":5}`: "note",
			`{"usd":1,"note":"a\nb"}`: "note", `{"usd":1,"note":"paid\u202e1043"}`: "note", `{"usd":1,"note":"a\u2028b"}`: "note",
			`{"usd":1,"note":"` + strings.Repeat("x", 501) + `"}`: "note",
			`{"usd":1,"amount":1}`:                                "amount",
		} {
			c.do("POST", "/accounts/"+id+"/credits", body).wantFault(fault.InvalidRequest, param)
		}
		c.ok("POST", "/accounts/"+id+"/credits", `{"usd":999999999}`)
		c.do("POST", "/accounts/"+id+"/credits", `{"usd":2}`).wantFault(fault.InvalidRequest, "usd")
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":999999999}`)
		if entries, _ := c.ok("GET", "/accounts/"+id+"/entries", "").list(); len(entries) != 1 {
			t.Errorf("after the rejected credits the entries are %v, want 1", entries)
		}
	})
}
