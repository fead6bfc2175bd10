package prices

import (
	"strconv"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// change is a scheduled change in the operator API.
type change struct {
	ID, State string
	Revision  int64
}

// TestScheduledChangeSurvivesKills kills all nodes again and again around the time of a change. The change
// is applied once, at its time, and does not undo other changes applied before that time.
func TestScheduledChangeSurvivesKills(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		provider := fakeprovider.New(t)
		n := scene.NewNode(t, binary, database, nil)
		catalog := func(swift, owl string) map[string]any {
			model := func(id, input string) map[string]any {
				return scene.ChatModel(id, map[string]any{"price": map[string]any{"input": input, "output": "1"}})
			}
			return map[string]any{"models": []map[string]any{model("swift", swift), model("owl", owl)},
				"lines": []map[string]any{scene.ChatLine("chat", provider.URL(), nil, "swift", "owl")}}
		}
		n.Admin("PUT", "/catalog", catalog("1", "1"), nil)
		at := time.Now().Add(3 * time.Second)
		var c change
		n.Admin("PUT", "/catalog?at="+strconv.FormatInt(at.Unix(), 10), catalog("2", "1"), &c)
		n.Admin("PUT", "/catalog", catalog("1", "5"), nil)
		state := func() change {
			var now change
			n.Admin("GET", "/catalog/changes/"+c.ID, nil, &now)
			return now
		}
		for time.Now().Before(at.Add(2 * time.Second)) {
			n.Kill()
			n.Restart()
			if s := state(); s.State != "pending" && time.Now().Before(at.Truncate(time.Second)) {
				t.Fatalf("the change is %s before its time", s.State)
			}
		}
		scene.Eventually(t, "the change is applied", func() bool { return state().State == "applied" })
		n.Kill()
		n.Restart()
		var history struct{ Data []struct{ Changes []string } }
		n.Admin("GET", "/catalog/revisions", nil, &history)
		var current struct {
			Models []struct{ Price struct{ Input float64 } }
		}
		n.Admin("GET", "/catalog", nil, &current)
		if s := state(); s.Revision != 3 || len(history.Data) != 3 || current.Models[0].Price.Input != 2 || current.Models[1].Price.Input != 5 {
			t.Errorf("the change made revision %d of %d with %+v, want the third with prices 2 and 5", s.Revision, len(history.Data), current)
		}
	})
}
