package admin

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestRepeatedReference checks that a credit with a used reference gets the first answer, with and
// without Idempotency-Keys, after other movements, years later and near the end of the range.
func TestRepeatedReference(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		c := newCaller(t, db)
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		path := "/accounts/" + id + "/credits"
		first := c.ok("POST", path, `{"usd":5,"note":"invoice 7","reference":" pi_1 "}`)
		first.want(`{"balance_usd":5}`)
		first.wantNames("balance_usd")
		if first.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("the first answer has the header %v, want no Idempotent-Replayed", first.header)
		}
		c.ok("POST", path, `{"usd":999999000}`)
		c.ok("POST", path, `{"usd":-1,"reference":"re_1"}`).want(`{"balance_usd":999999004}`)
		wantReplay := func(body string, balance string, headers ...string) {
			t.Helper()
			r := c.ok("POST", path, body, headers...)
			r.want(`{"balance_usd":` + balance + `}`)
			if r.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("the credit %s got the header %v, want Idempotent-Replayed", body, r.header)
			}
		}
		wantReplay(`{"usd":5,"reference":"pi_1"}`, "5")
		wantReplay(`{"usd":"5.00","note":"another note","reference":"pi_1"}`, "5", "Idempotency-Key", "k1")
		wantReplay(`{"usd":"5.00","note":"another note","reference":"pi_1"}`, "5", "Idempotency-Key", "k1")
		wantReplay(`{"usd":5,"reference":"pi_1"}`, "5", "Idempotency-Key", "k2")
		wantReplay(`{"usd":-1,"reference":"re_1"}`, "999999004")
		c.ok("POST", path, `{"usd":995.5,"reference":"pi_2"}`).want(`{"balance_usd":999999999.5}`)
		wantReplay(`{"usd":995.5,"reference":"pi_2"}`, "999999999.5") // a second credit would exceed the range
		clock.Advance(7 * 365 * 24 * time.Hour)
		wantReplay(`{"usd":5,"reference":"pi_1"}`, "5")
		wantReplay(`{"usd":5,"reference":"pi_1"}`, "5", "Idempotency-Key", "k3")

		// Credits without a reference, or with a reference in capitals, are new credits.
		for _, body := range []string{`{"usd":-1}`, `{"usd":-1,"reference":""}`, `{"usd":-1,"reference":null}`, `{"usd":-1,"reference":"  "}`,
			`{"usd":-1,"reference":"PI_1"}`} {
			if r := c.ok("POST", path, body); r.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("the credit %s got the header %v, want no Idempotent-Replayed", body, r.header)
			}
		}
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":999999994.5}`)

		entries, _ := c.ok("GET", "/accounts/"+id+"/entries", "").list()
		var references []string
		for _, e := range entries {
			references = append(references, fmt.Sprint(e["reference"]))
		}
		if got := strings.Join(references, " "); got != "PI_1 <nil> <nil> <nil> <nil> pi_2 re_1 <nil> pi_1" {
			t.Errorf("the entries have the references %s, want each credit once", got)
		}
		rows, err := csv.NewReader(strings.NewReader(c.do("GET", "/accounts/"+id+"/entries?format=csv&kind=credit", "").body)).ReadAll()
		if err != nil || rows[0][9] != "reference" || rows[9][9] != "pi_1" || rows[8][9] != "" {
			t.Errorf("the CSV is %v, %v, want a column with the references", rows, err)
		}
		log, _ := c.ok("GET", "/log?act=account.credit", "").list()
		if len(log) != len(entries) || fmt.Sprint(log[0]["after"].(map[string]any)["reference"]) != "PI_1" {
			t.Errorf("the log has %d rows and the account %d entries, want one row for each entry, with references", len(log), len(entries))
		}
		c.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}

// TestReferenceConflicts checks that a used reference with another account, amount or sign is
// rejected, and that the message names the first credit.
func TestReferenceConflicts(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		a, b := c.ok("POST", "/accounts", `{"name":"a"}`).text("id"), c.ok("POST", "/accounts", `{"name":"b"}`).text("id")
		c.ok("POST", "/accounts/"+a+"/credits", `{"usd":5,"reference":"pi_1"}`)
		for _, other := range []struct{ account, body string }{
			{a, `{"usd":6,"reference":"pi_1"}`}, {a, `{"usd":5.000000001,"reference":"pi_1"}`}, {a, `{"usd":-5,"reference":"pi_1"}`},
			{b, `{"usd":5,"reference":"pi_1"}`}, {b, `{"usd":1,"reference":" pi_1"}`}, {b, `{"usd":999999999,"reference":"pi_1"}`},
		} {
			r := c.do("POST", "/accounts/"+other.account+"/credits", other.body, "Idempotency-Key", "k")
			r.wantFault(fault.InvalidRequest, "reference")
			if !strings.Contains(r.body, a) || !strings.Contains(r.body, "5 USD") {
				t.Errorf("the credit %s got the message %s, want it to name %s and 5 USD", other.body, r.body, a)
			}
		}
		c.do("POST", "/accounts/acct_none/credits", `{"usd":5,"reference":"pi_1"}`).wantFault(fault.NotFound, "")
		c.ok("POST", "/accounts/"+b+"/credits", `{"usd":5,"reference":"pi_2"}`, "Idempotency-Key", "k").want(`{"balance_usd":5}`)
		c.ok("GET", "/accounts/"+a, "").want(`{"balance_usd":5}`)
		for body, param := range map[string]string{
			`{"usd":1,"reference":"a\nb"}`: "reference", `{"usd":1,"reference":"a\u0000"}`: "reference",
			`{"usd":1,"reference":"a\u200bb"}`: "reference", `{"usd":1,"reference":"\u202ea"}`: "reference",
			`{"usd":1,"reference":5}`: "reference", `{"usd":1,"reference":["a"]}`: "reference",
			`{"usd":0,"reference":"pi_1"}`:                             "usd",
			`{"usd":1,"reference":"` + strings.Repeat("é", 201) + `"}`: "reference",
		} {
			c.do("POST", "/accounts/"+a+"/credits", body).wantFault(fault.InvalidRequest, param)
		}
		c.ok("POST", "/accounts/"+a+"/credits", `{"usd":1,"reference":"`+strings.Repeat("é", 200)+`"}`).want(`{"balance_usd":6}`)
		c.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}

// TestConcurrentReferences checks that a payment is credited once if two nodes get it several times
// at the same moment, for one account or for two.
func TestConcurrentReferences(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		first := newCaller(t, storetest.Open(t, url, store.Options{}))
		nodes := []*caller{first, first}
		if !first.db.OneProcess() {
			nodes[1] = newCaller(t, storetest.Open(t, url, store.Options{}))
		}
		const payments = 40
		var accounts [2]string
		for i := range accounts {
			accounts[i] = first.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		}
		for n := range payments {
			var answers [8]reply
			var group sync.WaitGroup
			for i := range answers {
				account := accounts[i/2%2*(n%2)] // odd payments go to both accounts
				group.Go(func() {
					answers[i] = nodes[i%2].do("POST", "/accounts/"+account+"/credits", fmt.Sprintf(`{"usd":1,"reference":"pi_%d"}`, n))
				})
			}
			group.Wait()
			credited, replayed := 0, 0
			for _, r := range answers {
				switch {
				case r.status != http.StatusOK:
					r.wantFault(fault.InvalidRequest, "reference")
				case r.header.Get("Idempotent-Replayed") == "true":
					replayed++
				default:
					credited++
				}
			}
			if want := 7 - 4*(n%2); credited != 1 || replayed != want {
				t.Errorf("payment %d was credited %d times and replayed %d times, want 1 and %d", n, credited, replayed, want)
			}
		}
		total := int64(0)
		for _, id := range accounts {
			balance, _ := first.ok("GET", "/accounts/"+id, "").members()["balance_usd"].(json.Number).Int64()
			total += balance
		}
		if total != payments {
			t.Errorf("%d payments of 1 USD credited %d USD", payments, total)
		}
		first.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}
