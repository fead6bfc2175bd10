package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// delivery sends a test of an account to a receiver that works, and returns its
// delivery.
func (s *scene) delivery(name string) string {
	s.t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.t.Cleanup(receiver.Close)
	s.update(func(tx *store.Tx) error {
		_, err := s.options.Webhooks.PutEndpointTx(tx, s.accounts[name].ID, webhook.Endpoint{URL: receiver.URL})
		return err
	})
	if _, err := s.options.Webhooks.Test(s.t.Context(), s.accounts[name].ID); err != nil {
		s.t.Fatal(err)
	}
	var id string
	s.update(func(tx *store.Tx) error {
		list, _, err := s.options.Webhooks.DeliveriesTx(tx, s.accounts[name].ID, "", 1)
		if err == nil {
			id = list[0].ID
		}
		return err
	})
	return id
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		status := atomic.Int64{}
		status.Store(http.StatusInternalServerError)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
		defer receiver.Close()
		b := s.signedIn("ada@example.com")
		want(t, b.get("/console/webhooks"), http.StatusOK, "Nothing was sent yet", "video.completed")
		want(t, b.post("/console/webhooks/test"), http.StatusOK, "has no webhook address to test")
		want(t, b.post("/console/webhooks", "url", "http://10.0.0.1/x", "events", "video.completed"), http.StatusUnprocessableEntity,
			`value="http://10.0.0.1/x"`, `id="f-url-wrong"`, `value="video.completed" checked`)
		want(t, b.post("/console/webhooks", "url", receiver.URL, "balance_low_credits", "many"), http.StatusUnprocessableEntity,
			"Low balance is a number of credits")
		want(t, b.post("/console/webhooks", "url", receiver.URL, "events", "video.completed", "events", "balance.low",
			"balance_low_credits", "500"),
			http.StatusSeeOther, "done=saved")
		page := b.get("/console/webhooks?done=saved")
		want(t, page, http.StatusOK, receiver.URL, `value="video.completed" checked`, `value="balance.low" checked`, `value="500"`, "Saved.")
		secret := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
		if secret.MatchString(page.Body.String()) {
			t.Error("the secret is shown without being asked for")
		}
		first := secret.FindString(html.UnescapeString(b.post("/console/webhooks/secret").Body.String()))
		rolled := secret.FindString(html.UnescapeString(b.post("/console/webhooks/roll").Body.String()))
		if first == "" || rolled == "" || first == rolled {
			t.Errorf("the secret %q is rolled to %q", first, rolled)
		}

		want(t, b.post("/console/webhooks/test"), http.StatusOK, "The test was not delivered.", "It answered 500")
		list := b.get("/console/webhooks")
		want(t, list, http.StatusOK, "webhook.test", "failed", "500 in ")
		link := regexp.MustCompile(`/console/webhooks/deliveries/[a-z0-9_]+`).FindString(list.Body.String())
		want(t, b.get(link), http.StatusOK, receiver.URL, "Attempts")
		status.Store(http.StatusNoContent)
		want(t, b.post(link+"/resend"), http.StatusSeeOther, "done=sent")
		want(t, b.get(link+"?done=sent"), http.StatusOK, "It was sent again.", "204", "delivered")
		want(t, b.post("/console/webhooks/test"), http.StatusOK, "Your receiver works.", "It answered 204 in ")
		want(t, b.post("/console/webhooks", "url", ""), http.StatusSeeOther)
		want(t, b.get("/console/webhooks"), http.StatusOK, `name="url" value=""`)
	})
}
