package admin

import (
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestCredits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *caller) {
		id := o.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		path := "/accounts/" + id + "/credits"
		r := o.ok("POST", path, `{"usd":5,"note":" first "}`)
		r.wantNames("balance_usd")
		r.want(`{"balance_usd":5}`)
		o.ok("POST", path, `{"usd":"0.1"}`).want(`{"balance_usd":5.1}`)
		o.ok("POST", path, `{"usd":0.000000001}`).want(`{"balance_usd":5.100000001}`)
		o.ok("POST", path, `{"usd":-6.1,"note":null}`).want(`{"balance_usd":-0.999999999}`)
		o.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":-0.999999999}`)

		entries, more := o.ok("GET", "/accounts/"+id+"/entries", "").list()
		if len(entries) != 4 || more {
			t.Fatalf("entries %v", entries)
		}
		newest, _ := json.Marshal(entries[0])
		oldest, _ := json.Marshal(entries[3])
		reply{t: t, body: string(newest)}.want(`{"kind":"take_back","usd":-6.1,"balance_usd":-0.999999999}`)
		reply{t: t, body: string(newest)}.wantNames("id", "kind", "usd", "balance_usd", "created")
		reply{t: t, body: string(oldest)}.want(`{"kind":"credit","usd":5,"balance_usd":5,"note":"first"}`)

		page, more := o.ok("GET", "/accounts/"+id+"/entries?limit=1&after="+entries[0]["id"].(string), "").list()
		if len(page) != 1 || !more || page[0]["id"] != entries[1]["id"] {
			t.Errorf("page %v, more %v", page, more)
		}
		if none, more := o.ok("GET", "/accounts/"+id+"/entries?after=nothing", "").list(); len(none) != 0 || more {
			t.Errorf("behind an unknown entry: %v, %v", none, more)
		}
		o.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}

func TestCreditFaults(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *caller) {
		id := o.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		for body, param := range map[string]string{
			`{}`: "usd", `{"usd":null}`: "usd", `{"usd":0}`: "usd", `{"usd":"-0.0"}`: "usd", `{"usd":"five"}`: "usd", `{"usd":true}`: "usd",
			`{"usd":1e-10}`: "usd", `{"usd":1e99}`: "usd", `{"usd":1000000001}`: "usd", `{"usd":"0x10"}`: "usd", `{"usd":"1_0"}`: "usd",
			`{"usd":1,"note":" code code_019a"}`: "note", `{"usd":1,"note":5}`: "note",
			`{"usd":1,"note":"a\nb"}`: "note", `{"usd":1,"note":"` + strings.Repeat("x", 501) + `"}`: "note",
			`{"usd":1,"amount":1}`: "amount",
		} {
			o.do("POST", "/accounts/"+id+"/credits", body).wantFault(fault.InvalidRequest, param)
		}
		o.ok("POST", "/accounts/"+id+"/credits", `{"usd":999999999}`)
		o.do("POST", "/accounts/"+id+"/credits", `{"usd":2}`).wantFault(fault.InvalidRequest, "usd")
		o.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":999999999}`)
		if entries, _ := o.ok("GET", "/accounts/"+id+"/entries", "").list(); len(entries) != 1 {
			t.Errorf("refused credits left %v", entries)
		}
	})
}
