package console_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

const asked = `{"model":"sandbox-chat","stream":true,"messages":[{"role":"user","content":"Hello"}]}`

// call sends JSON to the API through the playground.
func (b *browser) call(key, path, body string) (status int, header http.Header, answer string) {
	b.headers["Content-Type"] = "application/json"
	defer delete(b.headers, "Content-Type")
	got := b.do(http.MethodPost, "/console/playground/"+key+"/"+path, body)
	return got.Code, got.Header(), got.Body.String()
}

// TestPlaygroundCalls: a call from the playground is one of the key: it is judged,
// held, charged and logged as any other.
func TestPlaygroundCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.signedIn("ada@example.com")
		want(t, b.get("/console/playground"), http.StatusOK, "No key that works")
		k := s.key("ada", "backend")
		want(t, b.get("/console/playground"), http.StatusOK, "backend sk-", "sandbox-reasoner", `data-kind="chat"`)
		want(t, b.get("/console/playground?kind=image"), http.StatusOK, "sandbox-image", "Ratio")
		boat := s.job("ada", "a boat, again")
		want(t, b.get("/console/playground?again="+boat), http.StatusOK, "a boat, again", `data-kind="image"`)

		status, header, answer := b.call(k.ID, "chat", asked)
		if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") ||
			!strings.HasSuffix(answer, "data: [DONE]\n\n") {
			t.Fatalf("%d %v %s", status, header, answer)
		}
		id := header.Get("X-Request-Id")
		var receipt ledger.Receipt
		s.update(func(tx *store.Tx) (err error) {
			receipt, err = ledger.RequestTx(tx, id)
			return err
		})
		if receipt.Account != s.accounts["ada"].ID || receipt.Key != k.ID || receipt.Endpoint != "/v1/chat/completions" || receipt.Cost <= 0 {
			t.Errorf("receipt %+v", receipt)
		}
		want(t, b.get("/console/playground/"+id+"/cost"), http.StatusOK, "data-final", id, "tokens")
		want(t, s.signedIn("bob@example.com").get("/console/playground/"+id+"/cost"), http.StatusOK, "is being written")

		for _, c := range []struct {
			name   string
			change func(*account.KeySettings) error
			status int
			code   string
		}{
			{"another model", func(k *account.KeySettings) error { k.AllowedModels = []string{"sandbox-free"}; return nil },
				403, "permission_denied"},
			{"another address", func(k *account.KeySettings) error {
				k.AllowedModels, k.AllowedIPs = nil, []string{"203.0.113.1"}
				return nil
			}, 403, "permission_denied"},
			{"nothing a day", func(k *account.KeySettings) error {
				var nothing money.Amount
				k.AllowedIPs, k.DailyBudget = nil, &nothing
				return nil
			}, 402, "insufficient_quota"},
			{"disabled", func(k *account.KeySettings) error { k.Disabled = true; return nil }, 401, "invalid_api_key"},
		} {
			s.update(func(tx *store.Tx) error { _, err := account.ChangeKeyTx(tx, k.ID, c.change); return err })
			if status, _, answer := b.call(k.ID, "chat", asked); status != c.status || !strings.Contains(answer, c.code) {
				t.Errorf("%s: %d %s", c.name, status, answer)
			}
		}
		foreign := s.key("bob", "bob's")
		if status, _, answer := b.call(foreign.ID, "chat", asked); status != http.StatusNotFound || strings.Contains(answer, "choices") {
			t.Errorf("with another's key: %d %s", status, answer)
		}
	})
}

// TestPlaygroundSetsTextAlone: nothing of the modules makes markup of what it is
// told, but for the one function that parses our own server's answers.
func TestPlaygroundSetsTextAlone(t *testing.T) {
	t.Parallel()
	s := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|createContextualFragment|parseFromString`)
	for name, most := range map[string]int{"playground.js": 0, "console.js": 1} {
		if found := s.FindAllString(readStatic(t, name), -1); len(found) != most {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func readStatic(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("static/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
