package show

import (
	"net/http"

	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/requestlog"
)

// Repeats are consecutive requests with the same failure, usually a program's retries.
type Repeats struct {
	requestlog.Receipt     // the newest
	N                  int // number of requests
}

// Status returns the badge of the requests' status.
func (r Repeats) Status() ui.Badge {
	b := Status(r.Receipt.Status, r.Code)
	if r.N > 1 {
		b.Label = ui.Sayf("%s, %s times", b.Label, r.N)
	}
	return b
}

// GroupRepeats groups consecutive requests with the same failure, account, key, model and line. list has the
// newest first. If each is true, each request gets its own group.
func GroupRepeats(list []requestlog.Receipt, each bool) (groups []Repeats) {
	for _, r := range list {
		if n := len(groups) - 1; n >= 0 && !each && repeats(groups[n].Receipt, r) {
			groups[n].N++
			continue
		}
		groups = append(groups, Repeats{r, 1})
	}
	return groups
}

func repeats(a, b requestlog.Receipt) bool {
	return a.Status >= http.StatusBadRequest && a.Status == b.Status && a.Code == b.Code && a.Cost == 0 && b.Cost == 0 &&
		a.Account == b.Account && a.Key == b.Key && a.Model == b.Model && a.Line == b.Line
}

// eachRequest is the query parameter to see each request.
const eachRequest = "each"

// GroupReceipts groups the requests of the list at path, unless the visitor has chosen to see each request. The
// tabs offer this choice. They are empty if no requests can be grouped.
func GroupReceipts(v *page.Visit, path string, list []requestlog.Receipt) ([]Repeats, ui.Tabs) {
	each := v.Query(eachRequest) != ""
	groups := GroupRepeats(list, each)
	if len(groups) == len(list) && !each {
		return groups, ui.Tabs{}
	}
	return groups, v.Tabs(path, "Repeated failures", eachRequest,
		[]ui.Option{{Label: "Repeated failures in one row"}, {Value: "1", Label: "Every request"}})
}
