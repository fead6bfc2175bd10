package spending

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/measure"
)

// TestParseQuery checks days, times, and spans with one end.
func TestParseQuery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 31, 23, 59, 0, 0, time.UTC)
	today := now.Unix() / (24 * 60 * 60)
	for name, test := range map[string]struct {
		values       map[string]string
		since, until int64
		param        string // at fault
	}{
		"nothing":              {nil, today - 29, today + 1, ""},
		"a day":                {map[string]string{"since": "2026-05-31", "until": "2026-05-31"}, today, today + 1, ""},
		"times":                {map[string]string{"since": "2026-05-30T23:00:00-02:00", "until": "2026-05-31T00:00:00Z"}, today, today + 1, ""},
		"since alone":          {map[string]string{"since": "2026-05-01"}, today - 30, today + 1, ""},
		"until alone":          {map[string]string{"until": "2026-05-30"}, today - 30, today, ""},
		"long ago":             {map[string]string{"until": "1970-01-02"}, 0, 2, ""},
		"the wrong way round":  {map[string]string{"since": "2026-05-31", "until": "2026-05-30"}, 0, 0, "until"},
		"no day":               {map[string]string{"since": "31.5.2026"}, 0, 0, "since"},
		"before all days":      {map[string]string{"since": "1969-12-31"}, 0, 0, "since"},
		"a part":               {map[string]string{"group_by": "day, model"}, today - 29, today + 1, ""},
		"an unknown part":      {map[string]string{"group_by": "day,colour"}, 0, 0, "group_by"},
		"a part of others":     {map[string]string{"group_by": "line"}, 0, 0, "group_by"},
		"an empty part":        {map[string]string{"group_by": "day,"}, 0, 0, "group_by"},
		"another's account":    {map[string]string{"account": "acct_x"}, today - 29, today + 1, ""},
		"a filter of the time": {map[string]string{"model": "m"}, today - 29, today + 1, ""},
	} {
		q, err := ParseQuery(func(name string) string { return test.values[name] }, []By{ByDay, ByModel}, now.UnixMilli())
		f, _ := errors.AsType[*fault.Error](err)
		switch {
		case test.param != "":
			if f == nil || f.Param != test.param {
				t.Errorf("%s: got %v, want an error about %s", name, err, test.param)
			}
		case err != nil || q.Since != test.since || q.Until != test.until || q.Account != "" || q.Model != test.values["model"]:
			t.Errorf("%s: got %+v, %v; want days %d to %d", name, q, err, test.since, test.until)
		}
	}
}

// TestTableIsJSON checks that unknown values are null, and that the sums are those of all rows.
func TestTableIsJSON(t *testing.T) {
	t.Parallel()
	table := Breakdown{Since: "2026-05-01", Until: "2026-05-02", By: []By{ByDay, ByModel}, Lines: true, Rows: []UsageRow{
		{Day: "2026-05-01", Model: "a\"b", Sums: Sums{Requests: 1, Charged: 3, LineCost: 1, LineCosts: 1, KnownCost: 3,
			Quantities: measure.Totals{measure.VideoMS: {N: 2500}}}},
		{Day: "2026-05-02", Model: "c", Sums: Sums{Requests: 2, Charged: 4}},
	}}
	raw, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	const figures = `"billed_requests":0,"failed_requests":0,"prompt_tokens":0,"cached_tokens":0,"completion_tokens":0,` +
		`"image_count":0,"clip_count":0,`
	want := `{"object":"usage.report","since":"2026-05-01","until":"2026-05-02","group_by":["day","model"],` +
		`"total":{"requests":3,` + figures +
		`"video_seconds":2.5,"character_count":0,"audio_seconds":0,"search_count":0,` +
		`"cost_usd":0.000000007,"line_cost_usd":0.000000001,"line_cost_requests":1,"margin_usd":0.000000002},` +
		`"data":[{"day":"2026-05-01","model":"a\"b","requests":1,` + figures +
		`"video_seconds":2.5,"character_count":0,"audio_seconds":0,"search_count":0,` +
		`"cost_usd":0.000000003,"line_cost_usd":0.000000001,"line_cost_requests":1,"margin_usd":0.000000002},` +
		`{"day":"2026-05-02","model":"c","requests":2,` + figures +
		`"video_seconds":0,"character_count":0,"audio_seconds":0,"search_count":0,` +
		`"cost_usd":0.000000004,"line_cost_usd":null,"line_cost_requests":0,"margin_usd":null}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}
