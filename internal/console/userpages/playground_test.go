package userpages_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

const chatBody = `{"model":"sandbox-chat","stream":true,"messages":[{"role":"user","content":"Hello"}]}`

// call sends JSON to the API through the playground.
func call(b *consoletest.Browser, key, path, body string) consoletest.Answer {
	b.Headers["Content-Type"] = "application/json"
	defer delete(b.Headers, "Content-Type")
	return b.Do(http.MethodPost, "/console/playground/"+key+"/"+path, body)
}

// TestPlaygroundCalls checks that a call from the playground is checked, held, charged and logged
// like any other call with the key.
func TestPlaygroundCalls(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/playground").Want(t, http.StatusOK, "No enabled key")
		k := s.Key("ada", "backend")
		b.Get("/console/playground").Want(t, http.StatusOK, ">backend<", "$0.25 in, $2.00 out per million tokens",
			"sandbox-reasoner", `data-kind="chat"`,
			"prompt=Explain&#43;how&#43;tides")
		b.Get("/console/jobs").Want(t, http.StatusOK, "A lighthouse in the fog", "kind=video&amp;prompt=A&#43;paper&#43;boat")
		b.Get("/console/playground?kind=image").Want(t, http.StatusOK, "sandbox-image", "Ratio")
		boat := s.Job("ada", "a boat, again")
		b.Get("/console/playground?again="+boat).Want(t, http.StatusOK, "a boat, again", `data-kind="image"`)

		answer := call(b, k.ID, "chat", chatBody)
		if answer.Want(t, http.StatusOK); !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/event-stream") ||
			!strings.HasSuffix(answer.Body.String(), "data: [DONE]\n\n") {
			t.Fatalf("the answer has the headers %v and the body %s, want a complete stream", answer.Header(), answer.Body)
		}
		id := answer.Header().Get("X-Request-Id")
		var receipt requestlog.Receipt
		s.Update(func(tx *store.Tx) (err error) {
			receipt, err = requestlog.GetTx(tx, id)
			return err
		})
		if receipt.Account != s.Accounts["ada"].ID || receipt.Key != k.ID || receipt.Endpoint != "/v1/chat/completions" ||
			receipt.Cost <= 0 {
			t.Errorf("the receipt is %+v, want a charge to key %s of ada", receipt, k.ID)
		}
		b.Get("/console/playground/"+id+"/cost").Want(t, http.StatusOK, "data-final", `href="/console/requests/`+id, "tokens")
		s.SignedIn("bob@example.com").Get("/console/playground/"+id+"/cost").Want(t, http.StatusOK, "Waiting for the receipt")

		for _, c := range []struct {
			change func(*account.KeySettings)
			status int
			code   string
		}{
			{func(k *account.KeySettings) { k.AllowedModels = []string{"sandbox-free"} }, 403, "permission_denied"},
			{func(k *account.KeySettings) { k.AllowedModels, k.AllowedIPs = nil, []string{"203.0.113.1"} },
				403, "permission_denied"},
			{func(k *account.KeySettings) { k.AllowedIPs, k.DailyBudget = nil, new(money.Amount) },
				402, "insufficient_quota"},
			{func(k *account.KeySettings) { k.Disabled = true }, 401, "invalid_api_key"},
		} {
			s.ChangeKey(k.ID, c.change)
			call(b, k.ID, "chat", chatBody).Want(t, c.status, c.code)
		}
		foreign := s.Key("bob", "bob's")
		stolen := call(b, foreign.ID, "chat", chatBody)
		stolen.Want(t, http.StatusNotFound)
		stolen.Without(t, "choices")
	})
}

// TestPlaygroundOfKinds checks the pages of the kinds that answer at once, their calls and their costs.
func TestPlaygroundOfKinds(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		k := s.Key("ada", "backend")
		form := strings.ReplaceAll("--B\nContent-Disposition: form-data; name=\"model\"\n\nsandbox-transcription\n--B\n"+
			"Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\n\nsound\n--B--\n", "\n", "\r\n")
		for _, c := range []struct{ kind, label, path, contentType, body, want, cost string }{
			{"embedding", "Compared with", "embeddings", "application/json", `{"model":"sandbox-embedding","input":"hello"}`, `"embedding":[`,
				"tokens"},
			{"rerank", "Documents", "rerank", "application/json", `{"model":"sandbox-rerank","query":"a","documents":["a"]}`,
				`"relevance_score":`, "1 search"},
			{"moderation", "Check", "moderations", "application/json", `{"model":"sandbox-moderation","input":"violence"}`, `"flagged":true`, "$"},
			{"speech", "Voice", "speech", "application/json", `{"model":"sandbox-speech","input":"hi","voice":"alloy","response_format":"wav"}`,
				"RIFF", "2 characters"},
			{"transcription", "Record", "transcriptions", "multipart/form-data; boundary=B", form, `"text":`, "1 second of audio"},
		} {
			shown := b.Get("/console/playground?model=sandbox-" + c.kind)
			shown.Want(t, http.StatusOK, `data-kind="`+c.kind+`"`, c.label, `&#34;MODEL&#34;`)
			if got := strings.Contains(shown.Header().Get("Permissions-Policy"), "microphone=(self)"); got != (c.kind == "transcription") {
				t.Errorf("%s: the page may use the microphone: %t", c.kind, got)
			}
			b.Headers["Content-Type"] = c.contentType
			answer := b.Do(http.MethodPost, "/console/playground/"+k.ID+"/"+c.path, c.body)
			delete(b.Headers, "Content-Type")
			answer.Want(t, http.StatusOK, c.want)
			b.Get("/console/playground/"+answer.Header().Get("X-Request-Id")+"/cost").Want(t, http.StatusOK, "data-final", c.cost)
		}
	})
}

// TestPlaygroundOffersModelsOfTheKey checks that the page offers the models of the chosen key, and that
// playground.js gets the keys of each model.
func TestPlaygroundOffersModelsOfTheKey(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		newKey := func(name string, models ...string) account.Key {
			return s.ChangeKey(s.Key("ada", name).ID, func(k *account.KeySettings) { k.AllowedModels = models })
		}
		s.SellReal()
		every, chat, image := s.Key("ada", "every"), newKey("chat", "sandbox-chat", "sold"), newKey("image", "sandbox-image")
		b := s.SignedIn("ada@example.com")
		option := regexp.MustCompile(`<option value="([^"]+)"`)
		offeredModels := func(query string) (models []string) {
			_, list, _ := strings.Cut(b.Get("/console/playground?"+query).Body.String(), `name="model"`)
			list, _, _ = strings.Cut(list, "</select>")
			for _, m := range option.FindAllStringSubmatch(list, -1) {
				models = append(models, m[1])
			}
			return models
		}
		for query, want := range map[string][]string{
			"key=" + every.ID:                    {"sold", "both"},
			"key=" + chat.ID:                     {"sold", "sandbox-chat"},
			"kind=image&key=" + image.ID:         {"sandbox-image"},
			"model=sandbox-image":                {"sandbox-image"},
			"model=sandbox-chat":                 {"sold", "sandbox-chat"},
			"model=sandbox-chat&key=" + every.ID: {"sold", "both"},
		} {
			if got := offeredModels(query); !slices.Equal(got, want) {
				t.Errorf("%s: the page offers %v, want %v", query, got, want)
			}
		}
		if got := offeredModels("key=" + image.ID); !slices.Contains(got, "sold") { // the key has no chat model, so another key pays
			t.Errorf("for a key without chat models, the page offers %v, want the models of another key", got)
		}
		b.Get("/console/playground?kind=image").Want(t, http.StatusOK, " (no model of this kind)", " disabled>",
			`&#34;keys&#34;:[&#34;`+image.ID+`&#34;]`)
		s.ChangeAccount("ada", account.Patch{Test: new(true)})
		if got := offeredModels("key=" + every.ID); !slices.Contains(got, "sandbox-chat") {
			t.Errorf("for a test account, the page offers %v, want sandbox-chat too", got)
		}
	})
}
