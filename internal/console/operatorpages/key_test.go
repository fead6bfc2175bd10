package operatorpages_test

import (
	"net/http"
	"reflect"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// TestOperatorSeesAndChangesAKey checks the limits on a key's page, and an operator's changes of the key
// by the same rules as for users. The log has the changes.
func TestOperatorSeesAndChangesAKey(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.Operator(), s.Key("ada", "ci")
		owner, path := "/console/operator/accounts/"+s.Accounts["ada"].ID, "/console/operator/keys/"+k.ID
		b.Get(owner+"?view=keys").Want(t, http.StatusOK, `href="`+path+`"`, path+"/disable")
		b.Get(path).Want(t, http.StatusOK, "ci", "ada", k.Hint, "Spent today (UTC)", "Usage above reservations",
			"/console/operator/requests?key="+k.ID, "/console/operator/usage?by=model&amp;key="+k.ID, owner+"?view=keys")
		b.Get("/console/operator/keys/key_none").Want(t, http.StatusNotFound)

		fields := []string{"name", "ci", "rpm", "60", "daily_budget_usd", "-1", "total_limit_usd", "", "allowed_models", "sandbox-chat",
			"allowed_ips", "192.0.2.0/24"}
		b.Post(path, fields...).Want(t, http.StatusUnprocessableEntity, "aria-invalid", "amount of US dollars")
		fields[5] = "2.50"
		b.Post(path, fields...).Want(t, http.StatusSeeOther, "done=saved")
		b.Get(path+"?done=saved").Want(t, http.StatusOK, "Saved.", `value="60"`, `value="2.5"`, "192.0.2.0/24")
		var now account.Key
		s.Update(func(tx *store.Tx) (err error) { now, err = account.GetKeyTx(tx, k.ID); return err })
		if l := now.Ledger.Limits; l.RPM == nil || *l.RPM != 60 || l.DailyBudget == nil || *l.DailyBudget != 5*money.USD/2 ||
			!reflect.DeepEqual(now.AllowedModels, []string{"sandbox-chat"}) {
			t.Errorf("after the change the key is %+v, want 60 RPM, 2.50 USD a day and the model sandbox-chat", now)
		}

		b.Post(path+"/disable").Want(t, http.StatusSeeOther, "done=disabled")
		b.Get(path+"?done=disabled").Want(t, http.StatusOK, "it answers 401", path+"/enable")
		b.Post(path+"/enable").Want(t, http.StatusSeeOther, "done=enabled")
		rows := logged(t, s, operator.KeyChange, 3)
		if rows[2].Account != k.Account || rows[2].Before["rpm"] != nil || rows[2].After["rpm"] == nil {
			t.Errorf("the log has %+v, want the limit set by the first change", rows)
		}

		b.Get(path+"?confirm=delete").Want(t, http.StatusOK, `<dialog id="delete" open`, "cannot be brought back")
		b.Post(path+"/delete", "typed", "another").Want(t, http.StatusUnprocessableEntity, "not deleted")
		b.Post(path+"/delete", "typed", "ci").Want(t, http.StatusSeeOther, owner+"?view=keys&done=deleted")
		b.Get(path).Want(t, http.StatusNotFound)
		logged(t, s, operator.KeyDelete, 1)
		s.Books.Refused(ledger.Refusal{Request: "req_00000000000000000000000001", Account: k.Account, Key: k.ID, Model: "swift-1",
			Endpoint: "/v1/chat/completions", Status: 402, Code: "insufficient_quota"})
		s.CloseBooks()
		b.Get("/console/operator/requests/req_00000000000000000000000001").Want(t, http.StatusOK, "ci (deleted)", k.ID)
	})
}
