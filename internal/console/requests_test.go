package console_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/id"
	"tollgate/internal/store"
)

// request writes a row of an account's request log, as the ledger keeps it.
func (s *scene) request(name string, status int, code string) string {
	s.t.Helper()
	request := id.New("req_")
	s.update(func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line,
			attempts, prompt_tokens, cached_tokens, completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano, first_byte_ms,
			duration_ms, created_ms, ended_ms, stands_for) VALUES ($1, $2, 7, '', 'swift-1', '/v1/chat/completions', 0, 1, 1, $3, $4, 'secret-line',
			'[{"line":"secret-line","status":502,"code":"upstream_timeout","cause":"secret cause","duration_ms":60000},
			{"line":"secret-line","status":200,"duration_ms":1400}]',
			1000, 200, 310, 0, 875000, 0, 4100000, 0, 420, 1400, 1800000000000, 1800000001400, 1)`, request, s.accounts[name].ID, status, code)
		return err
	})
	return request
}

func TestRequests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.signedIn("ada@example.com")
		want(t, b.get("/console/requests"), http.StatusOK, "No requests yet", "/console/keys/new")
		want(t, b.get("/console/requests?status=429"), http.StatusOK, "Nothing matches these filters", "Clear filters")
		good, poor := s.request("ada", 200, ""), s.request("ada", 402, "insufficient_quota")
		other := s.request("bob", 200, "")
		list := b.get("/console/requests")
		want(t, list, http.StatusOK, good, poor, "402 insufficient_quota", "1,000 → 310", "$0.000875")
		filtered := b.get("/console/requests?status=402&model=swift-1")
		want(t, filtered, http.StatusOK, poor, `value="402" selected`, `value="swift-1" selected`)
		if strings.Contains(filtered.Body.String(), good) || strings.Contains(list.Body.String(), other) {
			t.Error("a request is listed that does not belong there")
		}
		page := b.get("/console/requests/" + good)
		want(t, page, http.StatusOK, "Held before it ran", "$0.0041", "Given back", "$0.003225", "$0.000875", "a provider failed",
			"upstream_timeout after 1 min 0 s", "a provider answered", "/v1/chat/completions")
		if strings.Contains(page.Body.String(), "secret") {
			t.Error("a user sees the line, or a provider's words")
		}
		want(t, b.get("/console/requests/"+other), http.StatusNotFound)
		want(t, b.get("/console/requests?request="+good), http.StatusSeeOther, "/console/requests/"+good)
		want(t, b.get("/console/requests?request=..%2Fkeys"), http.StatusSeeOther, "/console/requests/..%2Fkeys")
		want(t, b.get("/console/requests/..%2Fkeys"), http.StatusNotFound)
	})
}
