package console_test

import (
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

var (
	// ignored matches the parts of a page without times for readers. These are the axis of a chart,
	// code, and attributes except titles.
	ignored = regexp.MustCompile(`(?s)<div class="axis".*?</div>|<pre tabindex.*?</pre>|<textarea.*?</textarea>|<style.*?</style>|` +
		`(?:datetime|href|value|src|id|action|data-[a-z]+)="[^"]*"`)
	goodTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\b`)
	badTime  = regexp.MustCompile(`\b\d\d:\d\d\b|\b\d{4}-\d\d-\d\dT|\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`)
)

// TestTimesHaveOneFormat checks that every page with data shows times only in the format of ui.UTC.
func TestTimesHaveOneFormat(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		addData(t, s)
		owner, operators := s.Session(account.UserSession, "ada@example.com"), s.Session(account.OperatorSession, "")
		var paths []string
		for _, path := range pagePaths() {
			if !strings.HasSuffix(path, "/table") && !strings.HasSuffix(path, "/movements") && !strings.Contains(path, "/sign-in") {
				paths = append(paths, objectPath(s, path, "times"))
			}
		}
		ada := "/console/operator/accounts/" + s.Accounts["ada"].ID
		paths = append(paths, "/console/requests?span=1", "/console/usage?by=day&span=7", "/console/operator/usage?by=day",
			"/console/operator/usage?by=account", ada, "/console/operator/find?q=ada", "/console/find?q=key",
			"/console/operator/requests?account="+s.Accounts["ada"].ID)
		for _, view := range []string{"keys", "users", "requests", "money", "jobs", "webhook", "log"} {
			paths = append(paths, ada+"?view="+view)
		}
		for _, path := range paths {
			b := owner
			if strings.HasPrefix(path, "/console/operator") {
				b = operators
			}
			checkTimes(t, path, b.Get(path))
		}
		checkTimes(t, "a link", operators.Post("/console/operator/users/"+s.Users["ada@example.com"].ID+"/link"))
		_, code := s.Code()
		for _, status := range []int{http.StatusSeeOther, http.StatusUnprocessableEntity} { // the second time the code is used
			got := owner.Post("/console/billing/redeem", "code", code)
			got.Want(t, status)
			checkTimes(t, "a used code", got)
		}
	})
}

// addData creates data for every page of ada's account.
func addData(t *testing.T, s *consoletest.Scene) {
	t.Helper()
	key := s.Key("ada", "key")
	for day := range int64(3) {
		s.AddUsage("ada", day, spending.UsageRow{Key: key.ID, Model: "sandbox-chat", Line: "sandbox",
			Sums: spending.Sums{Requests: 3, Billed: 3, Charged: 1_200 * money.Amount(day+1)}})
	}
	for range 3 {
		s.Request("ada", http.StatusOK, "")
	}
	s.Job("ada", "a boat")
	s.Delivery("ada")
	operators := s.Operator()
	operators.Post("/console/operator/accounts/"+s.Accounts["ada"].ID+"/note", "note", "x").Want(t, http.StatusSeeOther)
	operators.Post("/console/operator/books/run").Want(t, http.StatusSeeOther)
	if _, err := s.Options.Audits.Recompute(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	s.Update(func(tx *store.Tx) error {
		_, _, err := operator.CreateCodesTx(tx, operator.Actor{Way: operator.Shell}, account.NewCodes{Value: money.USD, Count: 1,
			ExpiresMS: time.Now().AddDate(0, 0, 3).UnixMilli()})
		return err
	})
}

// checkTimes checks that all times on a page have the format of ui.UTC.
func checkTimes(t *testing.T, path string, got consoletest.Answer) {
	t.Helper()
	if got.Code >= http.StatusInternalServerError {
		t.Errorf("%s: status %d, want no server error", path, got.Code)
	}
	body := html.UnescapeString(ignored.ReplaceAllString(got.Body.String(), ""))
	rest := goodTime.ReplaceAllString(body, "TIME")
	for _, at := range badTime.FindAllStringIndex(rest, -1) {
		t.Errorf("%s: a time in another format: …%s…", path, rest[max(0, at[0]-40):min(len(rest), at[1]+20)])
	}
	if matches := regexp.MustCompile(`TIME UTC|TIME</time> UTC`).FindString(rest); matches != "" {
		t.Errorf("%s: a time has the zone UTC twice", path)
	}
	for _, m := range regexp.MustCompile(`<time[^>]*>([^<]*)</time>`).FindAllStringSubmatch(rest, -1) {
		if m[1] != "TIME" {
			t.Errorf("%s: a time element has the text %q, want only a time", path, m[1])
		}
	}
}

// TestTimesAndAmountsAreFormattedInOneFile checks that only format.go formats times and amounts. Months in
// addresses may be formatted elsewhere.
func TestTimesAndAmountsAreFormattedInOneFile(t *testing.T) {
	t.Parallel()
	formats := regexp.MustCompile(`\.Format\([^M)][^)]*\)|"[^"\n]*\$" \+|\\?\$%s`)
	var matches []string
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "consoletest") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range formats.FindAllString(string(raw), -1) {
			if !strings.Contains(m, "MonthFormat") {
				matches = append(matches, path)
			}
		}
		return err
	})
	matches = slices.Compact(matches)
	if err != nil || !slices.Equal(matches, []string{"ui/format.go"}) {
		t.Errorf("times or amounts are formatted in %v, want only ui/format.go: %v", matches, err)
	}
}
