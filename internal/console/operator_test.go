package console_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// formOf finds the hidden fields and values of a page's form that goes to an
// address.
func formOf(t *testing.T, page *httptest.ResponseRecorder, action string) map[string]string {
	t.Helper()
	body := page.Body.String()
	at := strings.Index(body, `action="`+action+`"`)
	if at < 0 {
		t.Fatalf("no form to %s: %s", action, body)
	}
	body = body[at:]
	body = body[:strings.Index(body, "</form>")]
	fields := map[string]string{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		fields[m[1]] = m[2]
	}
	return fields
}

func (s *scene) balance(id string) money.Amount {
	s.t.Helper()
	var a account.Account
	s.update(func(tx *store.Tx) (err error) { a, err = account.GetTx(tx, id); return err })
	return a.Money.Balance
}

func (s *scene) log(act string) []operator.LogRow {
	s.t.Helper()
	var list []operator.LogRow
	s.update(func(tx *store.Tx) (err error) {
		list, _, err = operator.LogTx(tx, operator.LogFilter{Act: act, Limit: 100})
		return err
	})
	return list
}

// TestFirstCustomer goes from no account to one that has credit and a key, with
// the text to send, without a word from elsewhere.
func TestFirstCustomer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.operator()
		once := onceValue.FindStringSubmatch(b.get("/console/operator/accounts/new").Body.String())[1]
		fields := []string{"name", "Ac<b>me", "email", "Shop@Acme.example", "password", "right horse", "overdraft_floor_usd", "-5", "once", once}
		wrong := append([]string{}, fields...)
		wrong[7] = "5"
		want(t, b.post("/console/operator/accounts/new", wrong...), http.StatusUnprocessableEntity, "aria-invalid", "Ac&lt;b&gt;me")
		got := b.post("/console/operator/accounts/new", fields...)
		want(t, got, http.StatusSeeOther, "done=created")
		path := strings.TrimSuffix(got.Header().Get("Location"), "?done=created")
		want(t, b.post("/console/operator/accounts/new", fields...), http.StatusSeeOther, path+"?done=created")
		id := strings.TrimPrefix(path, "/console/operator/accounts/")
		want(t, b.get(path+"?done=created"), http.StatusOK, "Ac&lt;b&gt;me", "active", "shop@acme.example", "To send to the customer", "curl ")

		credit := formOf(t, b.get(path), path+"/credit")
		first := []string{"usd", "$50", "note", "invoice 1043", "once", credit["once"], "sure", "", "secret", ""}
		want(t, b.post(path+"/credit", "usd", "fifty", "note", "", "once", credit["once"]), http.StatusUnprocessableEntity,
			"amount of US dollars")
		sure := b.post(path+"/credit", first...)
		want(t, sure, http.StatusOK, "Balance then", "$50.00", "Credit $50.00", "invoice 1043")
		if s.balance(id) != 0 {
			t.Error("credited before it was said what it does")
		}
		fromPage := formOf(t, sure, path+"/credit")
		send := []string{"usd", fromPage["usd"], "note", fromPage["note"], "once", fromPage["once"], "sure", fromPage["sure"], "secret", ""}
		want(t, b.post(path+"/credit", send...), http.StatusSeeOther, "done=credited")
		want(t, b.post(path+"/credit", send...), http.StatusSeeOther, "done=credited")
		if got := s.balance(id); got != 50*money.USD {
			t.Errorf("sent twice, the balance is %s", got)
		}
		want(t, b.get(path+"?view=money"), http.StatusOK, "invoice 1043", "$50.00")

		key := formOf(t, b.get(path+"?view=keys"), path+"/keys")
		made := b.post(path+"/keys", "name", "backend", "once", key["once"])
		want(t, made, http.StatusOK, "Copy this key", "Welcome text", publicURL+"/v1")
		if len(keyValue.FindAllString(made.Body.String(), -1)) < 3 {
			t.Error("the welcome text has no key")
		}
		again := b.post(path+"/keys", "name", "backend", "once", key["once"])
		if want(t, again, http.StatusOK, "sent already"); keyValue.MatchString(again.Body.String()) {
			t.Error("a reload shows a value")
		}
		want(t, b.get(path+"?view=keys"), http.StatusOK, "backend", "/disable")
		want(t, s.signedIn("shop@acme.example").get("/console"), http.StatusOK, "$50.00")

		for act, n := range map[string]int{operator.AccountCreate: 1, operator.AccountCredit: 1, operator.KeyCreate: 1} {
			if rows := s.log(act); len(rows) != n || rows[0].Way != operator.Console || rows[0].Address != "192.0.2.7" || rows[0].Account != id {
				t.Errorf("%s: %+v", act, rows)
			}
		}
		want(t, b.get("/console/operator/log?act=account.credit"), http.StatusOK, "balance_usd: 0 → 50", "invoice 1043", "operator&#39;s token")
	})
}

// TestTakingBackAsksAgain: money goes back only with the operator's secret.
func TestTakingBackAsksAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b, id := s.operator(), s.accounts["ada"].ID
		path := "/console/operator/accounts/" + id
		once := formOf(t, b.get(path), path+"/credit")["once"]
		want(t, b.post(path+"/credit", "usd", "-3", "once", once), http.StatusOK, "Take back $3.00", "$7.00", `type="password"`)
		want(t, b.post(path+"/credit", "usd", "-3", "once", once, "sure", "yes", "secret", "wrong"), http.StatusUnprocessableEntity,
			"nothing was taken back")
		if s.balance(id) != 10*money.USD {
			t.Fatal("taken back")
		}
		want(t, b.post(path+"/credit", "usd", "-3", "once", once, "sure", "yes", "secret", adminToken), http.StatusSeeOther)
		if s.balance(id) != 7*money.USD {
			t.Error("not taken back")
		}
	})
}

func TestAccountsAreChangedAndFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b, id := s.operator(), s.accounts["ada"].ID
		k := s.key("ada", "ci")
		path := "/console/operator/accounts/" + id
		want(t, b.get("/console/operator/accounts"), http.StatusOK, "ada", "bob", "$10.00")
		want(t, b.get("/console/operator/accounts?q=nobody"), http.StatusOK, "No account has this")
		want(t, b.get("/console/operator/accounts?q="+id), http.StatusOK, "ada")
		for q, target := range map[string]string{
			id: path, "ADA@": path, "ada": path, k.ID: path + "?view=keys", k.Hint: path + "?view=keys",
			s.users["ada@example.com"].ID: path + "?view=users", "req_1": "/console/operator/requests/req_1",
			"job_1": "/console/operator/jobs/job_1",
		} {
			want(t, b.get("/console/operator/find?q="+q), http.StatusSeeOther, target)
		}
		want(t, b.get("/console/operator/find?q=example"), http.StatusOK, "ada", "bob")
		want(t, b.get("/console/operator/find?q=acct_none"), http.StatusOK, "Nothing has this id")
		want(t, b.get("/console/operator/find?q=100%25"), http.StatusOK, "Nothing has this id")

		want(t, b.post(path, "name", "Ada Ltd", "overdraft_floor_usd", "3"), http.StatusUnprocessableEntity, "Ada Ltd", "aria-invalid")
		want(t, b.post(path, "name", "Ada Ltd", "overdraft_floor_usd", "-3"), http.StatusSeeOther, "done=changed")
		want(t, b.get(path+"?confirm=disable"), http.StatusOK, "Ada Ltd", `<dialog id="disable" open`, "-3")
		want(t, b.post(path+"/disable"), http.StatusSeeOther)
		want(t, b.get(path+"?done=disabled"), http.StatusOK, "its keys answer 401", "/enable")
		want(t, b.post(path+"/enable"), http.StatusSeeOther)
		want(t, b.post("/console/operator/keys/"+k.ID+"/disable"), http.StatusSeeOther, "view=keys")
		want(t, b.get(path+"?view=keys"), http.StatusOK, "disabled")
		want(t, b.post(path+"/users", "email", "eve@example.com", "password", "short"), http.StatusUnprocessableEntity, "eve@example.com")
		want(t, b.post(path+"/users", "email", "eve@example.com", "password", "long enough"), http.StatusSeeOther, "done=user")
		want(t, b.get(path+"?view=users"), http.StatusOK, "eve@example.com")
		for _, view := range []string{"requests", "jobs", "webhook", "log", "money", "nothing"} {
			want(t, b.get(path+"?view="+view), http.StatusOK, "Ada Ltd")
		}
		rows := s.log(operator.AccountChange)
		if len(rows) != 3 || rows[2].Before["name"] != "ada" || rows[2].After["name"] != "Ada Ltd" || rows[0].After["disabled"] != false {
			t.Errorf("log %+v", rows)
		}
	})
}

func TestLinesAreDrainedAndResumed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.operator()
		want(t, b.get("/console/operator/lines"), http.StatusOK, "sandbox", "in service", "Drain")
		want(t, b.get("/console/operator/lines/sandbox?confirm=drain-sandbox"), http.StatusOK, "No node begins anything new", "On each node")
		want(t, b.post("/console/operator/lines/sandbox/drain"), http.StatusSeeOther, "done=drained")
		want(t, b.get("/console/operator/lines/sandbox?done=drained"), http.StatusOK, "drained", "Resume")
		want(t, b.post("/console/operator/lines/sandbox/resume"), http.StatusSeeOther)
		want(t, b.get("/console/operator/lines/sandbox"), http.StatusOK, "in service")
		want(t, b.get("/console/operator/lines/none"), http.StatusNotFound)
		want(t, b.post("/console/operator/lines/none/drain"), http.StatusNotFound)
		if rows := s.log(operator.LineDrain); len(rows) != 1 || rows[0].After["state"] != "drained" {
			t.Errorf("log %+v", rows)
		}
	})
}

// TestIsAllWell: what needs the operator stands on the first page, and nothing
// else does.
func TestIsAllWell(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.operator()
		b.get("/console/operator/lines") // which makes this node's report a fresh one
		want(t, b.get("/console/operator"), http.StatusOK, "All is well", "1 of 1", "not run yet")
		broken := s.browser()
		broken.cookies = b.cookies
		broken.handler = s.console(func(o *console.Options) { o.Writable = func() error { return errors.New("disk full") } })
		s.update(func(tx *store.Tx) error {
			for _, text := range []string{
				`INSERT INTO webhook_receiver (id, account, failing, ready_ms) VALUES ('r', 'acct_x', 1, 0)`,
				`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
					VALUES ('dlv_1', 'acct_x', 'evt_1', 'image.failed', 'https://hooks.example/in', 'r', '', 0, 1)`,
				`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
					VALUES ('dlv_1', 'acct_x', 'r', 0, 2, 0, '', '', 0)`,
				`INSERT INTO operator_audit (id, began_ms, ended_ms, name, fault, findings)
					VALUES ('audit_1', 1, 2, 'ada', '', '{"ok":false,"checked":{},"differences":[{"what":"balance","recorded":"1","computed":"2"}]}')`,
			} {
				if _, err := tx.Exec(text); err != nil {
					return err
				}
			}
			return nil
		})
		want(t, broken.get("/console/operator"), http.StatusOK, "3 things need you", "takes no writes", "disk full", "https://hooks.example/in",
			"The books do not agree", "1 difference")
		want(t, b.get("/console/operator/find?q=evt_1"), http.StatusSeeOther, "acct_x?view=webhook")
		want(t, b.get("/console/operator/books"), http.StatusOK, "Differences", "balance")
	})
}

func TestAuditRunsInTheBackground(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.operator()
		want(t, b.get("/console/operator/books"), http.StatusOK, "Not run yet")
		want(t, b.post("/console/operator/books/run"), http.StatusSeeOther, "done=begun")
		want(t, b.post("/console/operator/books/run"), http.StatusSeeOther, "done=runs")
		want(t, b.get("/console/operator/books"), http.StatusOK, "being checked")
		row := s.log(operator.AuditRun)[0]
		if err := s.options.Audits.Step(t.Context(), row.Object); err != nil {
			t.Fatal(err)
		}
		want(t, b.get("/console/operator/books"), http.StatusOK, "agree", "Accounts", "operator")
	})
}

func TestRequestsOfAllAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.operator()
		want(t, b.get("/console/operator/requests"), http.StatusOK, "No requests yet")
		k := s.key("ada", "ci")
		s.books.Refused(ledger.Refusal{Request: "req_00000000000000000000000001", Account: k.Account, Key: k.ID, Model: "sandbox-chat",
			Endpoint: "/v1/chat/completions", Status: 429, Code: "rate_limit_exceeded"})
		s.closeBooks()
		want(t, b.get("/console/operator/requests?status=429"), http.StatusOK, "rate_limit_exceeded", "req_00000000000000000000000001")
		want(t, b.get("/console/operator/requests?status=500"), http.StatusOK, "Nothing matches")
		want(t, b.get("/console/operator/requests?status=many"), http.StatusOK, "A status is a number")
		want(t, b.get("/console/operator/requests/req_00000000000000000000000001"), http.StatusOK, "No line was asked", k.Account)
		want(t, b.get("/console/operator/requests/req_00000000000000000000000002"), http.StatusNotFound)
		want(t, b.get("/console/operator/jobs"), http.StatusOK, "No jobs")
		want(t, b.get("/console/operator/jobs?status=queued"), http.StatusOK, "Nothing matches")
		want(t, b.get("/console/operator/jobs?status=lost"), http.StatusBadRequest)
	})
}
