package userpages_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"

	"tollgate/internal/console/consoletest"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		status := atomic.Int64{}
		status.Store(http.StatusInternalServerError)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
		defer receiver.Close()
		b := s.SignedIn("ada@example.com")
		b.Get("/console/webhooks").Want(t, http.StatusOK, "Nothing was sent yet", "video.completed")
		b.Post("/console/webhooks/test").Want(t, http.StatusOK, "has no webhook address to test")
		b.Post("/console/webhooks", "url", "http://10.0.0.1/x", "events", "video.completed").Want(t, http.StatusUnprocessableEntity,
			`value="http://10.0.0.1/x"`, `id="f-url-wrong"`, `value="video.completed" checked`)
		b.Post("/console/webhooks", "url", receiver.URL, "balance_low_credits", "many").Want(t, http.StatusUnprocessableEntity,
			"Low balance is a number of credits")
		b.Post("/console/webhooks", "url", receiver.URL, "events", "video.completed", "events", "balance.low",
			"balance_low_credits", "500").Want(t, http.StatusSeeOther, "done=saved")
		page := b.Get("/console/webhooks?done=saved")
		page.Want(t, http.StatusOK, receiver.URL, `value="video.completed" checked`, `value="balance.low" checked`, `value="500"`, "Saved.")
		secret := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
		if secret.MatchString(page.Body.String()) {
			t.Error("the secret is shown without being asked for")
		}
		first := secret.FindString(html.UnescapeString(b.Post("/console/webhooks/secret").Body.String()))
		rolled := secret.FindString(html.UnescapeString(b.Post("/console/webhooks/roll").Body.String()))
		if first == "" || rolled == "" || first == rolled {
			t.Errorf("the secret %q is rolled to %q", first, rolled)
		}

		b.Post("/console/webhooks/test").Want(t, http.StatusOK, "The test was not delivered.", "It answered 500")
		list := b.Get("/console/webhooks")
		list.Want(t, http.StatusOK, "webhook.test", "failed", "500 in ")
		link := regexp.MustCompile(`/console/webhooks/deliveries/[a-z0-9_]+`).FindString(list.Body.String())
		b.Get(link).Want(t, http.StatusOK, receiver.URL, "Attempts")
		status.Store(http.StatusNoContent)
		b.Post(link+"/resend").Want(t, http.StatusSeeOther, "done=sent")
		b.Get(link+"?done=sent").Want(t, http.StatusOK, "It was sent again.", "204", "delivered")
		b.Post("/console/webhooks/test").Want(t, http.StatusOK, "Your receiver works.", "It answered 204 in ")
		b.Post("/console/webhooks", "url", "").Want(t, http.StatusSeeOther)
		b.Get("/console/webhooks").Want(t, http.StatusOK, `name="url" value=""`)
	})
}
