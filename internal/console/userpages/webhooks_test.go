package userpages_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// TestWebhooks checks the form of the receiver, the secret, the test event and the log of deliveries.
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
			"Low balance must be a number of credits")
		both := b.Post("/console/webhooks", "url", "http://10.0.0.1/x", "events", "video.completed", "balance_low_credits", "many")
		both.Want(t, http.StatusUnprocessableEntity, `id="f-url-wrong"`, "Low balance must be a number of credits", `value="many"`)
		b.Get("/console/webhooks").Want(t, http.StatusOK, `name="url" value=""`, `name="balance_low_credits" value=""`)
		b.Post("/console/webhooks", "url", "http://10.0.0.1/x", "balance_low_credits", "500").Want(t, http.StatusUnprocessableEntity)
		b.Get("/console/webhooks").Want(t, http.StatusOK, `name="balance_low_credits" value=""`)
		b.Post("/console/webhooks", "url", receiver.URL, "events", "video.completed", "events", "balance.low",
			"balance_low_credits", "500").Want(t, http.StatusSeeOther, "done=saved")
		page := b.Get("/console/webhooks?done=saved")
		page.Want(t, http.StatusOK, receiver.URL, `value="video.completed" checked`, `value="balance.low" checked`, `value="500"`, "Saved.")
		secret := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]{20,}`)
		if secret.MatchString(page.Body.String()) {
			t.Error("the page shows the secret before a request for it")
		}
		first := secret.FindString(html.UnescapeString(b.Post("/console/webhooks/secret").Body.String()))
		rolled := secret.FindString(html.UnescapeString(b.Post("/console/webhooks/roll").Body.String()))
		if first == "" || rolled == "" || first == rolled {
			t.Errorf("the secret is %q and the new one %q, want two different secrets", first, rolled)
		}

		s.Update(func(tx *store.Tx) error {
			_, err := s.Options.Webhooks.PutEndpointTx(tx, s.Accounts["ada"].ID,
				webhook.Endpoint{URL: receiver.URL, Events: []string{"image.failed", "webhook.test"}})
			return err
		})
		b.Get("/console/webhooks").Want(t, http.StatusOK, "image.failed: an image failed", "Example receivers")
		b.Post("/console/webhooks", "url", receiver.URL, "events", "image.failed").Want(t, http.StatusSeeOther)
		s.Update(func(tx *store.Tx) error {
			if e, err := webhook.EndpointTx(tx, s.Accounts["ada"].ID); err != nil || !slices.Equal(e.Events, []string{"image.failed",
				"webhook.test"}) {
				t.Errorf("saving the form changed an event outside the form: %v, %v", e.Events, err)
			}
			return nil
		})

		b.Post("/console/webhooks/test").Want(t, http.StatusOK, "The test was not delivered.", "It answered 500")
		list := b.Get("/console/webhooks")
		list.Want(t, http.StatusOK, "webhook.test", "failed", "500 in ")
		link := regexp.MustCompile(`/console/webhooks/deliveries/[a-z0-9_]+`).FindString(list.Body.String())
		b.Get(link).Want(t, http.StatusOK, receiver.URL, "Attempts", "What is sent", "{\n  &#34;id&#34;: &#34;evt_",
			"{&#34;id&#34;:&#34;evt_")
		b.Get("/console/webhooks?state=failed").Want(t, http.StatusOK, link)
		b.Get("/console/webhooks?state=delivered").Want(t, http.StatusOK, "Nothing matches these filters", "All deliveries")
		b.Get("/console/webhooks?state=lost").Want(t, http.StatusBadRequest)
		event := regexp.MustCompile(`evt_[0-9a-z]+`).FindString(b.Get(link).Body.String())
		b.Get("/console/find?q="+event).Want(t, http.StatusSeeOther, link)
		s.SignedIn("bob@example.com").Get("/console/find?q="+event).Want(t, http.StatusOK, "Nothing in your account")
		status.Store(http.StatusNoContent)
		b.Post(link+"/resend").Want(t, http.StatusSeeOther, "done=sent")
		b.Get(link+"?done=sent").Want(t, http.StatusOK, "It was sent again.", "204", "delivered")
		b.Post("/console/webhooks/test").Want(t, http.StatusOK, "Your receiver works.", "It answered 204 in ")
		b.Post("/console/webhooks", "url", "").Want(t, http.StatusSeeOther)
		b.Get("/console/webhooks").Want(t, http.StatusOK, `name="url" value=""`)
	})
}

// TestReceiversEqualTheGuides checks that the guides have the example receivers in Python, Node and Go.
// Another test runs the programs of the guides.
func TestReceiversEqualTheGuides(t *testing.T) {
	t.Parallel()
	guides := ""
	for _, name := range []string{"webhooks", "webhooks-in-go"} {
		raw, err := os.ReadFile("../../../docs/guides/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		guides += string(raw)
	}
	for _, name := range []string{"receiver.py", "receiver.mjs", "receiver.go.txt"} {
		raw, err := os.ReadFile("receiver/" + name)
		if err != nil || !strings.Contains(guides, strings.TrimSuffix(name, ".txt")+"\n"+string(raw)+"```") {
			t.Errorf("%s differs from the program in the guides: %v", name, err)
		}
	}
}
