package operatorpages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/money"
	"tollgate/internal/operator"
)

// TestFormShowsAllErrors checks that a rejected form shows the errors of all fields at once,
// each beside its field.
func TestFormShowsAllErrors(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		rejects := func(path string, fields []string, want ...string) {
			t.Helper()
			got := b.Post(path, fields...)
			got.Want(t, http.StatusUnprocessableEntity)
			for _, name := range want {
				if n := strings.Count(got.Body.String(), `-`+name+`-wrong"`); n == 0 {
					t.Errorf("%s: no error beside the field %s: %s", path, name, got.Body)
				}
			}
			if n := strings.Count(got.Body.String(), `aria-invalid`); n != len(want) {
				t.Errorf("%s: %d fields have an error, want %d: %v", path, n, len(want), want)
			}
		}
		rejects("/console/operator/accounts/new", []string{"name", "", "email", "nobody", "password", "short", "usd", "much",
			"note", strings.Repeat("x", 501), "overdraft_floor_usd", "5", "price_factor", "many",
			"once", b.Get("/console/operator/accounts/new").Once(t)},
			"name", "email", "password", "usd", "note", "overdraft_floor_usd", "price_factor")
		rejects("/console/operator/codes/new", []string{"usd", "much", "count", "few", "expires", "soon", "as", "page",
			"secret", consoletest.AdminToken, "once", b.Get("/console/operator/codes/new").Once(t)}, "usd", "count", "expires")
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID
		rejects(path+"/credit", []string{"usd", "much", "note", strings.Repeat("x", 501), "once", formOf(t, b.Get(path), path+"/credit")["once"]},
			"usd", "note")
		rejects(path+"/prices", []string{"price_factor", "many", "prices", "swift-1"}, "price_factor", "prices")
		rejects(path, []string{"name", "", "overdraft_floor_usd", "5"}, "name", "overdraft_floor_usd")
		rejects(path+"/users", []string{"email", "nobody", "password", "short"}, "email", "password")
		rejects("/console/operator/keys/"+s.Key("ada", "ci").ID, []string{"name", strings.Repeat("x", 201), "rpm", "fast",
			"daily_budget_usd", "much", "total_limit_usd", "-1", "allowed_ips", "here"},
			"name", "rpm", "daily_budget_usd", "total_limit_usd", "allowed_ips")
	})
}

// TestFirstCustomer checks the creation of an account, a credit and a key in the console. Repeated forms
// do nothing twice, and the log has a row for each action.
func TestFirstCustomer(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		once := b.Get("/console/operator/accounts/new").Once(t)
		fields := []string{"name", "Ac<b>me", "email", "Shop@Acme.example", "password", "right horse", "overdraft_floor_usd", "-5", "once", once}
		wrong := append([]string{}, fields...)
		wrong[7] = "5"
		b.Post("/console/operator/accounts/new", wrong...).Want(t, http.StatusUnprocessableEntity, "aria-invalid", "Ac&lt;b&gt;me")
		fields = append(fields, "price_factor", "0.9")
		b.Post("/console/operator/accounts/new", append(fields[:len(fields)-1:len(fields)-1], "0")...).Want(t, http.StatusUnprocessableEntity,
			"price_factor")
		got := b.Post("/console/operator/accounts/new", fields...)
		got.Want(t, http.StatusSeeOther, "done=created")
		path := strings.TrimSuffix(got.Header().Get("Location"), "?done=created")
		b.Post("/console/operator/accounts/new", fields...).Want(t, http.StatusSeeOther, path+"?done=created")
		id := strings.TrimPrefix(path, "/console/operator/accounts/")
		b.Get(path+"?done=created").Want(t, http.StatusOK, "Ac&lt;b&gt;me", "active", "shop@acme.example", `value="0.9"`,
			"To send to the customer", "curl ",
			"Your key: you make it at "+consoletest.PublicURL+"/console/keys/new")

		credit := formOf(t, b.Get(path), path+"/credit")
		first := []string{"usd", "$50", "note", "invoice 1043", "once", credit["once"], "sure", "", "secret", ""}
		b.Post(path+"/credit", "usd", "fifty", "note", "", "once", credit["once"]).Want(t, http.StatusUnprocessableEntity,
			"amount of US dollars")
		confirmation := b.Post(path+"/credit", first...)
		confirmation.Want(t, http.StatusOK, "New balance", "$50.00", "Credit $50.00", "invoice 1043")
		if balance(s, id) != 0 {
			t.Error("credited before the operator confirmed the credit")
		}
		confirmed := formOf(t, confirmation, path+"/credit")
		send := []string{"usd", confirmed["usd"], "note", confirmed["note"], "once", confirmed["once"], "sure", confirmed["sure"], "secret", ""}
		b.Post(path+"/credit", send...).Want(t, http.StatusSeeOther, "done=credited")
		b.Post(path+"/credit", send...).Want(t, http.StatusSeeOther, "done=credited")
		if got := balance(s, id); got != 50*money.USD {
			t.Errorf("the balance after sending the form twice is %s, want 50 USD", got)
		}
		b.Get(path+"?view=money").Want(t, http.StatusOK, "invoice 1043", "$50.00")

		key := formOf(t, b.Get(path+"?view=keys"), path+"/keys")
		created := b.Post(path+"/keys", "name", "backend", "once", key["once"])
		created.Want(t, http.StatusOK, "Copy this key", "Welcome text", consoletest.PublicURL+"/v1")
		if len(created.Secrets()) < 3 {
			t.Error("the page shows the key fewer than three times")
		}
		again := b.Post(path+"/keys", "name", "backend", "once", key["once"])
		if again.Want(t, http.StatusOK, "already sent"); len(again.Secrets()) > 0 {
			t.Error("the key is shown again after a reload")
		}
		b.Get(path+"?view=keys").Want(t, http.StatusOK, "backend", "/disable")
		s.SignedIn("shop@acme.example").Get("/console").Want(t, http.StatusOK, "$50.00")

		for act, n := range map[string]int{operator.AccountCreate: 1, operator.AccountCredit: 1, operator.KeyCreate: 1} {
			if rows := logged(t, s, act, n); rows[0].Way != operator.Console || rows[0].Address != "192.0.2.7" || rows[0].Account != id {
				t.Errorf("the log has %+v for %s, want account %s, the console and 192.0.2.7", rows, act, id)
			}
		}
		b.Get("/console/operator/log?act=account.credit").Want(t, http.StatusOK, "balance: $0.00 → $50.00", "amount: $50", "invoice 1043",
			"operator&#39;s token", `">Ac&lt;b&gt;me</a>`)
		b.Get("/console/operator/log?act=account.create").Want(t, http.StatusOK, "overdraft floor: -$5", "disabled: no", "price factor: 0.9")
	})
}

// TestCreditWithReference checks that a payment with a reference is credited only once, and that the
// reference with another amount or for another account is rejected.
func TestCreditWithReference(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.Operator(), s.Accounts["ada"].ID
		path := "/console/operator/accounts/" + id
		send := func(usd string) consoletest.Answer {
			t.Helper()
			once := formOf(t, b.Get(path), path+"/credit")["once"]
			preview := b.Post(path+"/credit", "usd", usd, "reference", " pi_1 ", "once", once)
			preview.Want(t, http.StatusOK, "Reference", "pi_1")
			form := formOf(t, preview, path+"/credit")
			return b.Post(path+"/credit", "usd", form["usd"], "note", form["note"], "reference", form["reference"], "once", once, "sure", "yes")
		}
		send("3").Want(t, http.StatusSeeOther, "done=credited")
		send("3").Want(t, http.StatusSeeOther, "done=repeated")
		b.Get(path+"?done=repeated").Want(t, http.StatusOK, "no money was moved")
		send("4").Want(t, http.StatusUnprocessableEntity, "already belongs to a credit of 3 USD")
		b.Post(path+"/credit", "usd", "3", "reference", strings.Repeat("x", 201)).Want(t, http.StatusUnprocessableEntity, "at most 200")
		if got := balance(s, id); got != 13*money.USD {
			t.Errorf("the balance is %s, want 13 USD", got)
		}
		b.Get(path+"?view=money").Want(t, http.StatusOK, "pi_1")
		s.SignedIn("ada@example.com").Get("/console/billing").Want(t, http.StatusOK, "pi_1")
		page := b.Get("/console/operator/accounts/new")
		fields := []string{"name", "New", "usd", "3", "reference", "pi_1", "overdraft_floor_usd", "0", "price_factor", "1", "once", page.Once(t)}
		b.Post("/console/operator/accounts/new", fields...).Want(t, http.StatusUnprocessableEntity, "already belongs to a credit of 3 USD")
		fields[5] = "pi_2"
		b.Post("/console/operator/accounts/new", fields...).Want(t, http.StatusSeeOther, "done=created")
		b.Get("/console/operator/log?act=account.credit").Want(t, http.StatusOK, "reference: pi_2")
	})
}

// TestNegativeCreditRequiresSecret checks that taking back money requires the operator's secret.
func TestNegativeCreditRequiresSecret(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.Operator(), s.Accounts["ada"].ID
		path := "/console/operator/accounts/" + id
		once := formOf(t, b.Get(path), path+"/credit")["once"]
		b.Post(path+"/credit", "usd", "-3", "once", once).Want(t, http.StatusOK, "Take back $3.00", "$7.00", `type="password"`)
		b.Post(path+"/credit", "usd", "-3", "once", once, "sure", "yes", "secret", "wrong").Want(t, http.StatusUnprocessableEntity,
			"nothing was taken back")
		if balance(s, id) != 10*money.USD {
			t.Fatal("money was taken back with a wrong secret")
		}
		b.Post(path+"/credit", "usd", "-3", "once", once, "sure", "yes", "secret", consoletest.AdminToken).Want(t, http.StatusSeeOther)
		changed := b.Post(path+"/credit", "usd", "-4", "once", once, "sure", "yes", "secret", consoletest.AdminToken) // the browser went back
		changed.Want(t, http.StatusUnprocessableEntity, "This form was already sent with other values", "$4.00")
		changed.Without(t, `value="`+once+`"`)
		b.Post(path+"/credit", "usd", "-3", "once", strings.Repeat("x", 65), "sure", "yes").Want(t, http.StatusUnprocessableEntity, "incomplete")
		if got := balance(s, id); got != 7*money.USD {
			t.Errorf("the balance is %s, want 7 USD", got)
		}
	})
}

// TestContactAddressChanges checks that a new contact address does not change users' sign-ins, and
// that the text to send names an address with a sign-in.
func TestContactAddressChanges(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.Operator(), s.Accounts["bob"].ID
		path := "/console/operator/accounts/" + id
		b.Get(path).Want(t, http.StatusOK, `name="email"`, "sign in as bob@example.com")
		b.Post(path, "name", "bob", "email", "no address", "overdraft_floor_usd", "0").Want(t, http.StatusUnprocessableEntity,
			"Email must be a plain address", `value="no address"`)
		b.Post(path, "name", "bob", "email", " Books@Bob.example ", "overdraft_floor_usd", "0").Want(t, http.StatusSeeOther, "done=changed")
		got := b.Get(path)
		got.Want(t, http.StatusOK, `value="books@bob.example"`, "sign in as bob@example.com")
		got.Without(t, "sign in as books@bob.example")
		b.Get("/console/operator/accounts?q=books@").Want(t, http.StatusOK, path)
		b.Post(path, "name", "Bob", "overdraft_floor_usd", "0").Want(t, http.StatusSeeOther) // a form without the field does not change it
		b.Get(path).Want(t, http.StatusOK, `value="books@bob.example"`)
		s.User("bob", account.SignIn{Email: "books@bob.example"})
		b.Get(path).Want(t, http.StatusOK, "sign in as books@bob.example")
		b.Post(path, "name", "Bob", "email", "", "overdraft_floor_usd", "0").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, "sign in as bob@example.com")
		rows := logged(t, s, operator.AccountChange, 3)
		if rows[2].Before["email"] != "" || rows[2].After["email"] != "books@bob.example" || rows[0].After["email"] != "" {
			t.Errorf("the log has %+v, want the first and the last change of the email", rows)
		}
		s.SignedIn("bob@example.com").Get("/console").Want(t, http.StatusOK)

		// The text does not mention sign-in if all users are disabled.
		for _, email := range []string{"bob@example.com", "books@bob.example"} {
			b.Post("/console/operator/users/"+s.Users[email].ID+"/disable").Want(t, http.StatusSeeOther)
		}
		b.Get(path).Without(t, "sign in as")
	})
}

// TestFindAndChangeAccounts checks the search for each kind of object, and each change of an account.
func TestFindAndChangeAccounts(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.Operator(), s.Accounts["ada"].ID
		k := s.Key("ada", "ci")
		path := "/console/operator/accounts/" + id
		b.Get("/console/operator/accounts").Want(t, http.StatusOK, "ada", "bob", "$10.00")
		b.Get("/console/operator/accounts?q=nobody").Want(t, http.StatusOK, "No account has this")
		b.Get("/console/operator/accounts?q="+id).Want(t, http.StatusOK, "ada")
		for q, target := range map[string]string{
			id: path, "ADA@": path, "ada": path, k.ID: "/console/operator/keys/" + k.ID, k.Hint: "/console/operator/keys/" + k.ID,
			s.Users["ada@example.com"].ID: path + "?view=users", "req_1": "/console/operator/requests/req_1",
			"job_1": "/console/operator/jobs/job_1", "sandbox": "/console/operator/lines/sandbox",
			"sandbox-chat": "/console/operator/usage?model=sandbox-chat",
			"Hi,\r\nwe got\t502 (request req_01m8a12xxmhyxm897xgps661nj). " + strings.Repeat("Why? ", 100): "/console/operator/requests/" +
				"req_01m8a12xxmhyxm897xgps661nj",
			"key sk-abcdEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefWxyz!": "/console/operator/find?q=sk-abcd...Wxyz",
		} {
			b.Get("/console/operator/find?q="+url.QueryEscape(q)).Want(t, http.StatusSeeOther, target)
		}
		code, _ := s.Code()
		b.Get("/console/operator/find?q="+code.ID).Want(t, http.StatusOK, code.Hint, "unused", "$1.00", "/operator/codes/"+code.ID+"/void")
		b.Get("/console/operator/find?q=code_00000000000000000000000000").Want(t, http.StatusOK, "Nothing has this id")
		b.Get("/console/operator/find?q=example").Want(t, http.StatusOK, "ada", "bob")
		b.Get("/console/operator/find?q=acct_none").Want(t, http.StatusOK, "Nothing has this id")
		b.Get("/console/operator/find?q=100%25").Want(t, http.StatusOK, "Nothing has this id")

		b.Post(path, "name", "Ada Ltd", "overdraft_floor_usd", "3").Want(t, http.StatusUnprocessableEntity, "Ada Ltd", "aria-invalid")
		b.Post(path, "name", "Ada Ltd", "overdraft_floor_usd", "-3").Want(t, http.StatusSeeOther, "done=changed")
		b.Get(path+"?confirm=disable").Want(t, http.StatusOK, "Ada Ltd", `<dialog id="disable" open`, "-3")
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		b.Get(path+"?done=disabled").Want(t, http.StatusOK, "its keys answer 401", "/enable")
		b.Post(path+"/enable").Want(t, http.StatusSeeOther)
		b.Post("/console/operator/keys/"+k.ID+"/disable").Want(t, http.StatusSeeOther, "done=disabled")
		b.Get(path+"?view=keys").Want(t, http.StatusOK, "disabled")
		b.Post(path+"/users", "email", "eve@example.com", "password", "short").Want(t, http.StatusUnprocessableEntity, "eve@example.com")
		b.Post(path+"/users", "email", "eve@example.com", "password", "long enough").Want(t, http.StatusSeeOther, "done=user")
		b.Get(path+"?view=users").Want(t, http.StatusOK, "eve@example.com")
		for _, view := range []string{"requests", "jobs", "webhook", "log", "money", "nothing"} {
			b.Get(path+"?view="+view).Want(t, http.StatusOK, "Ada Ltd")
		}
		rows := logged(t, s, operator.AccountChange, 3)
		if rows[2].Before["name"] != "ada" || rows[2].After["name"] != "Ada Ltd" || rows[0].After["disabled"] != false {
			t.Errorf("the log has %+v, want the new name first and the enabled account last", rows)
		}
	})
}

// TestNoteOfAnAccount checks that operators can save a note, that the log names the operator, and
// that the account's users do not see the note.
func TestNoteOfAnAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		op := s.User("bob", account.SignIn{Email: "op@example.com", Role: account.Owner})
		b := s.Session(account.OperatorSession, op.Email)
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID
		b.Post(path+"/note", "note", " pays late\r\n<b>call</b> first ").Want(t, http.StatusSeeOther, path+"?done=changed")
		b.Get(path).Want(t, http.StatusOK, "pays late\n&lt;b&gt;call&lt;/b&gt; first")
		b.Get(path+"?view=log").Want(t, http.StatusOK, "op@example.com, 192.0.2.7", "note: pays late")
		b.Post(path+"/note", "note", strings.Repeat("x", 4001)).Want(t, http.StatusUnprocessableEntity, "at most 4000 characters", "aria-invalid")
		b.Post(path, "name", "ada", "overdraft_floor_usd", "0").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, "pays late")
		for _, page := range []string{"/console", "/console/settings", "/console/billing"} {
			s.SignedIn("ada@example.com").Get(page).Without(t, "pays late")
		}
		b.Post(path+"/note", "note", "").Want(t, http.StatusSeeOther)
		b.Get(path+"?view=log").Want(t, http.StatusOK, "first → none")
	})
}

// TestAccountWithInvisibleCharacters checks that the forms of an account with stored invisible
// characters can change other fields, and that no form accepts new invisible characters.
func TestAccountWithInvisibleCharacters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const name, note = "a\u200bda", "safe\u202egpj\nend"
		b, id := s.Operator(), s.Accounts["ada"].ID
		path := "/console/operator/accounts/" + id
		b.Post(path, "name", name, "overdraft_floor_usd", "0").Want(t, http.StatusUnprocessableEntity,
			"Name has an invisible character (U&#43;200B)")
		b.Post(path+"/note", "note", note).Want(t, http.StatusUnprocessableEntity, "Note has an invisible character (U&#43;202E)")
		s.Exec(`UPDATE account SET name = $1, note = $2 WHERE id = $3`, name, note, id)
		b.Get("/console/operator/accounts").Want(t, http.StatusOK, name)
		b.Post(path, "name", name, "overdraft_floor_usd", "-3").Want(t, http.StatusSeeOther, "done=changed")
		b.Post(path+"/note", "note", strings.ReplaceAll(note, "\n", "\r\n")).Want(t, http.StatusSeeOther, "done=changed")
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, name, "gpj\nend", `value="-3"`)
	})
}

// TestForeignLinkFillsInNothing checks that only links within the console fill in the credit form.
func TestForeignLinkFillsInNothing(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID + "?usd=4321&note=invoice+9"
		b.Get(path).Want(t, http.StatusOK, `value="4321"`, `value="invoice 9"`)
		for _, site := range []string{"cross-site", "same-site", "none", ""} {
			b.Headers["Sec-Fetch-Site"] = site
			got := b.Get(path)
			got.Want(t, http.StatusOK, "Credit")
			got.Without(t, "4321", "invoice 9")
		}
	})
}

// TestPricesOfAnAccount checks that operators can set valid factors, and that the log names the operator.
func TestPricesOfAnAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		op := s.User("bob", account.SignIn{Email: "op@example.com", Role: account.Owner})
		b := s.Session(account.OperatorSession, op.Email)
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID
		b.Post(path+"/prices", "price_factor", "0.9", "prices", "easel-1 1.333333\r\n\r\n other\t2 ").
			Want(t, http.StatusSeeOther, path+"?done=priced")
		b.Get(path+"?done=priced").Want(t, http.StatusOK, `value="0.9"`, "easel-1 1.333333\nother 2\n", "apply to new requests")
		b.Get(path+"?view=log").Want(t, http.StatusOK, "op@example.com, 192.0.2.7", "price factor: 1 → 0.9", "prices:")
		for _, form := range [][2]string{{"0", ""}, {"x", ""}, {"1001", ""}, {"1", "m"},
			{"1", "m 0"}, {"1", "m 1\nm 2"}, {"1", "m x"}, {"1", "m 1 2"}} {
			b.Post(path+"/prices", "price_factor", form[0], "prices", form[1]).Want(t, http.StatusUnprocessableEntity, "aria-invalid")
		}
		b.Get(path).Want(t, http.StatusOK, `value="0.9"`)
		b.Post(path+"/prices", "price_factor", "", "prices", "").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, `name="price_factor"`, `value="1"`)
	})
}
