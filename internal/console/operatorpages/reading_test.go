package operatorpages_test

import (
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// formOf returns the values of the hidden fields, by name, in the form that posts to action.
func formOf(t *testing.T, page consoletest.Answer, action string) map[string]string {
	t.Helper()
	body := page.Body.String()
	start := strings.Index(body, `action="`+action+`"`)
	if start < 0 {
		t.Fatalf("the page has no form for %s: %s", action, body)
	}
	body = body[start:]
	body = body[:strings.Index(body, "</form>")]
	fields := map[string]string{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		fields[m[1]] = m[2]
	}
	return fields
}

// readAccount returns the current state of an account.
func readAccount(s *consoletest.Scene, id string) (a account.Account) {
	s.Update(func(tx *store.Tx) (err error) { a, err = account.GetTx(tx, id); return err })
	return a
}

func balance(s *consoletest.Scene, id string) money.Amount { return readAccount(s, id).Money.Balance }

// logged returns the rows of an act in the log, the newest first. It fails the test unless there are n.
func logged(t *testing.T, s *consoletest.Scene, act string, n int) []operator.LogRow {
	t.Helper()
	var list []operator.LogRow
	s.Update(func(tx *store.Tx) (err error) {
		list, _, err = operator.LogTx(tx, operator.LogFilter{Act: act, Limit: 100})
		return err
	})
	if len(list) != n {
		t.Fatalf("%s was logged %d times, want %d: %+v", act, len(list), n, list)
	}
	return list
}
