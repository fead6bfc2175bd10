package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// TestProgressHasAQuantity lets a node die during streams with a quantity. The receipt of the delivered
// part has the quantity, within the bound of counts.
func TestProgressHasAQuantity(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		want := map[string]measure.Quantity{}
		for i, test := range []struct {
			progress Progress
			want     measure.Quantity
		}{
			{Progress{Cost: 7, Quantity: measure.Quantity{Unit: "character", N: 160}}, measure.Quantity{Unit: "character", N: 160}},
			{Progress{Quantity: measure.Quantity{Unit: "audio_ms", N: 1500}}, measure.Quantity{Unit: "audio_ms", N: 1500}},
			{Progress{Cost: 7, Quantity: measure.Quantity{Unit: "tile", N: math.MaxInt64}}, measure.Quantity{Unit: "tile", N: 1 << 40}},
			{Progress{Cost: 7, Quantity: measure.Quantity{Unit: "tile", N: -5}}, measure.Quantity{Unit: "tile"}},
			{Progress{Cost: 7, Tokens: Tokens{Prompt: 3}}, measure.Quantity{}},
		} {
			h := f.mustAdmit("a", 1000)
			test.progress.Line = fmt.Sprint("line-", i)
			h.Progress(test.progress)
			want[test.progress.Line] = test.want
		}
		f.mustAdmit("a", 1000).Release(failed()) // its batch also writes the progress
		f.fence()
		other := start(t, db)
		if err := other.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		billed := 0
		for _, r := range other.requests(requestlog.Selection{Limit: 100}) {
			if r.Outcome == Billed {
				billed++
				if r.Quantity != want[r.Line] || r.Source != SourceProgress {
					t.Errorf("the receipt of %s has %+v, want %+v", r.Line, r.Quantity, want[r.Line])
				}
			}
		}
		if billed != len(want) {
			t.Errorf("%d requests are billed, want %d", billed, len(want))
		}
		other.checkAudit()
	})
}

// TestUnitsAreData settles requests with unknown units. Receipts, days, usage, reports and the audit
// count these units without any other change.
func TestUnitsAreData(t *testing.T) {
	t.Parallel()
	const tile, sound = measure.Unit("tile"), measure.Unit("sound_ms")
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db, func(o *Options) { o.Retention = time.Hour })
		f.open("a", 10*money.USD, 0, KeyLimits{})
		f.open("b", 10*money.USD, 0, KeyLimits{})
		send := func(account, model string, q measure.Quantity, e End) string {
			t.Helper()
			a := admission(account, 1000)
			a.Model, a.Request, a.Received = model, id.At("req_", c.now()), c.now()
			h, err := f.Admit(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			e.Tokens, e.Quantity = Tokens{}, q
			if e.Outcome != Billed {
				h.Release(e)
			} else if err := h.Settle(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			return a.Request
		}
		quantities := map[string]measure.Quantity{}
		bill := func(account, model string, unit measure.Unit, n int64) {
			t.Helper()
			q := measure.Quantity{Unit: unit, N: n}
			quantities[send(account, model, q, billed(5))] = q
		}
		bill("a", "tiler", tile, 3)
		bill("a", "tiler", tile, 4)
		quantities[send("a", "tiler", measure.Quantity{Unit: tile, N: 9}, failed())] = measure.Quantity{}
		bill("a", "speaker", tile, 2) // the price of the model changes on this day
		bill("a", "speaker", sound, 2500)
		bill("a", "painter", measure.Image, 2)
		bill("a", "director", measure.VideoMS, 5000)
		bill("a", "director", measure.VideoMS, 0) // the length of the clip is unknown
		bill("a", "plain", "", 0)
		bill("b", "tiler", tile, 100)
		c.add(24 * time.Hour)
		bill("a", "tiler", tile, 10)

		for _, r := range f.requests(requestlog.Selection{Limit: 100}) {
			if r.Quantity != quantities[r.ID] {
				t.Errorf("the receipt of %s has %+v, want %+v", r.Model, r.Quantity, quantities[r.ID])
			}
		}
		u := f.usage("a")
		for model, want := range map[string]measure.Totals{
			"tiler":   measure.Of(tile, 3, 17),
			"speaker": measure.Of(tile, 1, 2).Plus(measure.Of(sound, 1, 2500)), "painter": measure.Of(measure.Image, 1, 2),
			"director": measure.Of(measure.VideoMS, 2, 5000), "plain": nil,
		} {
			if got := u.model(model).Quantities; !reflect.DeepEqual(got, want) {
				t.Errorf("usage of %s: %v, want %v", model, got, want)
			}
		}
		if n := len(u.ByModel); n != 5 || u.Total.Requests != 10 || u.Total.Failed != 1 || u.model("tiler").Requests != 4 {
			t.Errorf("got usage %+v of %d models, want 10 requests of 5 models, one failed, and 4 of tiler", u, n)
		}

		report := func(query map[string]string) *spending.Breakdown {
			t.Helper()
			_, report, err := f.ReadUsage(t.Context(), "a", func(name string) string { return query[name] })
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		raw, err := json.Marshal(report(nil))
		if err != nil {
			t.Fatal(err)
		}
		const sums = `"image_count":2,"clip_count":2,"video_seconds":5,` +
			`"character_count":0,"audio_seconds":0,"search_count":0,"sound_seconds":2.5,"tile_count":19,"cost_usd":`
		if strings.Count(string(raw), sums) != 2 { // in the total and in the only row
			t.Errorf("report %s\nwant %s", raw, sums)
		}
		csv, err := report(map[string]string{"group_by": "day,model"}).CSV()
		day := func(at time.Time) string { return at.UTC().Format(time.DateOnly) }
		first, second := day(c.now().Add(-24*time.Hour)), day(c.now())
		want := "day,model,requests,billed_requests,failed_requests,prompt_tokens,cached_tokens,completion_tokens,image_count,clip_count," +
			"video_seconds,character_count,audio_seconds,search_count,sound_seconds,tile_count,cost_usd\n"
		for _, row := range []string{first + ",director,2,2,0,0,0,0,0,2,5,0,0,0,0,0,0.00000001",
			first + ",painter,1,1,0,0,0,0,2,0,0,0,0,0,0,0,0.000000005",
			first + ",plain,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0.000000005",
			first + ",speaker,2,2,0,0,0,0,0,0,0,0,0,0,2.5,2,0.00000001",
			first + ",tiler,3,2,1,0,0,0,0,0,0,0,0,0,0,7,0.00000001",
			second + ",tiler,1,1,0,0,0,0,0,0,0,0,0,0,0,10,0.000000005"} {
			want += row + "\n"
		}
		if err != nil || string(csv) != want {
			t.Errorf("%v, CSV\n%s\nwant\n%s", err, csv, want)
		}

		// A row of a report is a group, however many units it has.
		few := spending.Query{By: []spending.By{spending.ByAccount}, Limit: 2}
		if rows := f.usageBy(few); len(rows) != 2 || rows[0].Quantities[tile] != (measure.Total{Requests: 4, N: 19}) ||
			rows[1].Quantities[tile].N != 100 {
			t.Errorf("by account: got %+v, want 19 and 100 tiles in two rows", rows)
		}
		few.Limit = 1
		if err := db.View(t.Context(), func(tx *store.Tx) error { _, err := spending.ReadTx(tx, few); return err }); err == nil {
			t.Error("two accounts with a limit of one row: got no error, want one")
		}

		f.checkAudit()
		faults := func() {
			t.Helper()
			for _, unit := range []measure.Unit{tile, sound, measure.VideoMS} {
				text := fmt.Sprintf(`UPDATE ledger_day SET quantity = quantity + 1 WHERE unit = '%s'`, unit)
				if found := ledgertest.Plant(t, db, ledgertest.Fault(text)); len(found) == 0 {
					t.Errorf("a day with one more %s: got no differences, want some", unit)
				}
			}
		}
		faults()
		c.add(72 * time.Hour)
		if err := f.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := f.requests(requestlog.Selection{Limit: 100}); len(left) != 0 {
			t.Errorf("%d receipts are left, want none", len(left))
		}
		f.checkAudit()
		faults()
	})
}
