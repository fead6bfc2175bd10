package userpages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
)

// TestUsage checks that charts, figures and table show the stored days of one account, for the span,
// the group and the filters of the address.
func TestUsage(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		ada := s.SignedIn("ada@example.com")
		ada.Get("/console/usage").Want(t, http.StatusOK, "No requests in these days")
		ada.Get("/console/usage?model=swift-1").Want(t, http.StatusOK, "Nothing matches these filters", "Clear filters")
		backend := s.Key("ada", "backend")
		for i := range 8 {
			s.AddUsage("ada", int64(i), spending.UsageRow{Key: backend.ID, Model: fmt.Sprintf("swift-%d", i), Line: "secret-line",
				Endpoint: "/v1/responses",
				Sums: spending.Sums{Requests: 10, Billed: 9, Failed: 1, Prompt: 1000, Completion: 50, Charged: money.Amount(8-i) * money.USD,
					LineCost: 7 * money.USD, LineCosts: 10}})
		}
		s.AddUsage("ada", 60, spending.UsageRow{Key: "key_gone", Model: "old", Sums: spending.Sums{Requests: 1, Charged: money.USD}})
		s.AddUsage("bob", 0, spending.UsageRow{Model: "bob-s-model", Sums: spending.Sums{Requests: 1, Charged: 99 * money.USD}})
		got := ada.Get("/console/usage")
		got.Want(t, http.StatusOK, "$36.00", "80 requests", "swift-0", "Other", `id="charges"`, `id="requests"`, "8,000 sent, 400 answered")
		got.Without(t, "secret-line", "bob-s-model", "Margin", ">old<")
		ada.Get("/console/usage?span=7").Want(t, http.StatusOK, "$35.00")
		ada.Get("/console/usage?span=90&by=key").Want(t, http.StatusOK, "$37.00", ">backend<", "key_gone")
		ada.Get("/console/usage?by=day").Want(t, http.StatusOK, "Day (UTC)", "$36.00",
			`href="/console/requests?span=`+time.Now().UTC().Format(time.DateOnly))
		ada.Get("/console/usage?key="+backend.ID).Want(t, http.StatusOK, `value="`+backend.ID+`" selected>backend<`,
			`<option value="/v1/responses">`, `<option value="sandbox-chat">`)
		ada.Get("/console/usage?span=1999-01").Want(t, http.StatusOK, "No requests in these days", "1999-01")
		ada.Get("/console/usage?span=9999-01").Want(t, http.StatusBadRequest)
		ada.Get("/console/usage?model=swift-2&by=key").Want(t, http.StatusOK, "$6.00")
		ada.Get("/console/usage?account="+s.Accounts["bob"].ID).Want(t, http.StatusOK, "$36.00")

		file := ada.Get("/console/usage/table?span=7")
		file.Want(t, http.StatusOK, "model,requests,billed_requests,", "\nswift-0,10,9,1,1000,0,50,0,0,0,0,0,0,8\n")
		if strings.Contains(file.Body.String(), "line_cost") || !strings.Contains(file.Header().Get("Content-Disposition"), `"usage-`) {
			t.Errorf("the file has the headers %v and the body %s, want a file usage-… without line_cost", file.Header(), file.Body)
		}
		daily := ada.Get("/console/usage/table?span=7&daily=yes&by=key")
		daily.Want(t, http.StatusOK, "day,key,key_name,requests,", backend.ID)
		if lines := strings.Count(daily.Body.String(), "\n"); lines != 8 {
			t.Errorf("the file has %d lines, want 8: %s", lines, daily.Body)
		}
		ada.Get("/console/usage/table?by=line").Want(t, http.StatusOK, "model,requests")
	})
}

// TestUsageHasColumnsOfUnits checks that the table has a column for each unit in the usage, also for
// units without a kind of model.
func TestUsageHasColumnsOfUnits(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		ada := s.SignedIn("ada@example.com")
		for i, test := range []struct {
			unit   measure.Unit
			n      int64
			column string
			cell   string
		}{
			{measure.Image, 12, ">Images<", ">12<"}, {measure.VideoMS, 5000, ">Clips<", ">31<"}, {"tile", 1234, ">Tiles<", ">1,234<"},
			{"sound_ms", 61_500, ">Seconds of sound<", ">62<"}, {"search", 77, ">Searches<", ">77<"},
		} {
			ada.Get("/console/usage").Without(t, test.column)
			s.AddUsage("ada", 1, spending.UsageRow{Model: fmt.Sprint("m", i), Line: "l", Sums: spending.Sums{Requests: 31, Billed: 31,
				Charged: money.USD, Quantities: measure.Of(test.unit, 31, test.n)}})
			ada.Get("/console/usage").Want(t, http.StatusOK, test.column, test.cell)
		}
		ada.Get("/console/usage/table").Want(t, http.StatusOK,
			"clip_count,video_seconds,character_count,audio_seconds,search_count,sound_seconds,tile_count,cost_usd\n",
			"\nm2,31,31,0,0,0,0,0,0,0,0,0,0,0,1234,1\n")
	})
}

// TestUsageOfManyGroups checks that the table lists 50 of 60 groups, and the others as one row.
func TestUsageOfManyGroups(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for i := range 60 {
			s.AddUsage("ada", int64(i%30), spending.UsageRow{Model: fmt.Sprintf("m-%02d", i), Sums: spending.Sums{Requests: 1, Charged: money.USD}})
		}
		s.SignedIn("ada@example.com").Get("/console/usage").Want(t, http.StatusOK, "m-49", "10 others", "$60.00")
	})
}

// TestPartThatFails checks that an unreadable chart is replaced by a notice, and that the rest of
// the page is shown.
func TestPartThatFails(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddUsage("ada", 0, spending.UsageRow{Model: "swift-1", Sums: spending.Sums{Requests: 1, Charged: 1}})
		ada := s.SignedIn("ada@example.com")
		ada.Get("/console").Want(t, http.StatusOK, `id="charges"`)
		s.Exec(`ALTER TABLE ledger_day RENAME COLUMN cached_tokens TO lost`)
		ada.Get("/console").Want(t, http.StatusOK, "The chart of charges cannot be shown at this moment", "Try again", "Balance")
	})
}

// TestHeadReadsNoTable checks that a HEAD request for a table does not read the table, and gets a 404
// if there is no such table.
func TestHeadReadsNoTable(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		month := time.Now().UTC().Format("2006-01")
		tables := map[*consoletest.Browser][]string{
			s.SignedIn("ada@example.com"): {"/console/usage/table", "/console/billing/statements/" + month + "/table"},
			s.Operator():                  {"/console/operator/usage/table"},
		}
		heads := map[string]http.Header{}
		for b, paths := range tables {
			for _, path := range paths {
				got := b.Get(path)
				got.Want(t, http.StatusOK, "equests,")
				heads[path] = got.Header()
			}
		}
		s.Exec(`ALTER TABLE ledger_day RENAME COLUMN requests TO lost`)
		for b, paths := range tables {
			for _, path := range paths {
				b.Get(path).Want(t, http.StatusServiceUnavailable)
				got := b.Do(http.MethodHead, path, "")
				got.Want(t, http.StatusOK)
				for _, name := range []string{"Content-Type", "Content-Disposition"} {
					if got.Header().Get(name) != heads[path].Get(name) {
						t.Errorf("%s: HEAD returned %q, GET returned %q", path, got.Header().Get(name), heads[path].Get(name))
					}
				}
				if got.Body.Len() > 0 {
					t.Errorf("%s: HEAD returned the body %s", path, got.Body)
				}
			}
			b.Do(http.MethodHead, "/console/billing/statements/1999-01/table", "").Want(t, map[bool]int{
				true: http.StatusNotFound, false: http.StatusSeeOther}[len(paths) == 2])
		}
	})
}
