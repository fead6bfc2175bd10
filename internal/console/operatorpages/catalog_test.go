package operatorpages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// TestPreviewWarns checks that the preview of a catalog, and of a rollback, shows unusable lines and
// removed models with requests.
func TestPreviewWarns(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const edit = "/console/operator/catalog/edit"
		b := s.Operator()
		s.AddUsage("ada", 2, spending.UsageRow{Model: "sandbox-chat", Line: "sandbox", Sums: spending.Sums{Requests: 3, Billed: 3}})
		const other = `models:
  - {id: other, kind: chat, context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: main, provider: openai, forms: [chat], api_keys: ["${NOBODY_SET_ONE}", "${NOBODY_SET_TWO}"], models: {other: vendor}}
`
		const unset = "lines[0]: the variable NOBODY_SET_ONE is not set on this node, and the variable NOBODY_SET_TWO is not set on this node"
		const lost = "models: this removes sandbox-chat, which had 3 requests in the last 30 days. Revision 1 still has the model"
		b.Post(edit, "yaml", other, "base", "1").Want(t, http.StatusOK, unset, lost, "Apply as revision 2")
		b.Post(edit, "yaml", other, "base", "1", "sure", "yes").Want(t, http.StatusSeeOther, "done=applied")
		s.Update(func(tx *store.Tx) error { // another operator applies revision 1 again
			doc, err := catalog.RevisionTx(tx, 1)
			if err == nil {
				_, err = catalog.ApplyTx(tx, doc)
			}
			return err
		})
		b.Get("/console/operator/catalog/revisions/2?confirm=rollback").Want(t, http.StatusOK, "Roll back to this",
			"NOBODY_SET_ONE", "this removes sandbox-chat, which had 3")
	})
}

// currentCatalog returns the catalog of a scene.
func currentCatalog(s *consoletest.Scene) (text string, revision int64) {
	s.Update(func(tx *store.Tx) error {
		doc, n, err := catalog.CurrentTx(tx)
		if err == nil {
			text, revision = string(doc.YAML()), n
		}
		return err
	})
	return text, revision
}

// TestEditCatalog checks the editor with its preview, its faults and its conflicts, the buttons for a
// model's state, and the rollback.
func TestEditCatalog(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const edit = "/console/operator/catalog/edit"
		b := s.Operator()
		text, _ := currentCatalog(s)
		b.Get("/console/operator/catalog").Want(t, http.StatusOK, "Revision 1", "sandbox-chat", "owned_by",
			"$0.25 in, $2.00 out per million tokens", "$0.03 per image (1K)", "free, 100 requests a day")
		b.Get(edit).Want(t, http.StatusOK, "<textarea", "owned_by", "Examples", "EXAMPLE_API_KEY")

		bad := strings.Replace(text, "priority: 1", "priority: -1", 1)
		if bad == text {
			bad = strings.Replace(text, "weight:", "waight:", 1)
		}
		if bad == text {
			bad = text + "\nnothing: here\n"
		}
		b.Post(edit, "yaml", bad, "base", "1").Want(t, http.StatusUnprocessableEntity, "Nothing has changed", "line ", `id="line-`,
			` class="wrong"><td class="n"`)

		changed := strings.Replace(text, "state: open", "state: maintenance", 1)
		got := b.Post(edit, "yaml", strings.ReplaceAll(changed, "\n", "\r\n"), "base", "1")
		got.Want(t, http.StatusOK, "1 change", "maintenance", "Apply as revision 2", `class="add"`)
		if _, n := currentCatalog(s); n != 1 {
			t.Fatal("the catalog was applied before the preview was confirmed")
		}
		fields := formOf(t, got, edit)
		if fields["sure"] != "yes" || fields["base"] != "1" {
			t.Fatalf("the preview's form has the values %v, want sure = yes and base = 1", fields)
		}
		b.Post(edit, "yaml", changed, "base", "1", "sure", "yes").Want(t, http.StatusSeeOther, "done=applied")
		b.Get("/console/operator/catalog?done=applied").Want(t, http.StatusOK, "Revision 2", "maintenance", "</time> by operator&#39;s token",
			`data-label="By"><span class="break">operator&#39;s token</span>`)

		// An editor of revision 1 sees the changes that would be undone.
		conflict := b.Post(edit, "yaml", text, "base", "1", "sure", "yes")
		conflict.Want(t, http.StatusConflict, "Nothing was applied", "revision 2 in the meantime", "Apply as revision 3", `class="del"`)
		if _, n := currentCatalog(s); n != 2 {
			t.Fatalf("the current revision is %d, want 2", n)
		}
		b.Post(edit, "yaml", changed, "base", "2", "sure", "yes").Want(t, http.StatusSeeOther, "done=same")

		b.Post("/console/operator/catalog/models/sandbox-chat/open").Want(t, http.StatusSeeOther, "done=switched")
		b.Post("/console/operator/catalog/models/none/open").Want(t, http.StatusNotFound)
		b.Get("/console/operator/catalog/revisions/2?confirm=rollback").Want(t, http.StatusOK, "Roll back to this", "maintenance")
		b.Post("/console/operator/catalog/revisions/2/apply", "base", "2").Want(t, http.StatusBadRequest, "in the meantime")
		b.Post("/console/operator/catalog/revisions/2/apply", "base", "3").Want(t, http.StatusSeeOther, "done=applied")
		if now, n := currentCatalog(s); n != 4 || !strings.Contains(now, "maintenance") {
			t.Errorf("the current revision is %d, want 4 with a model in maintenance: %s", n, now)
		}
		b.Get("/console/operator/catalog/revisions/9").Want(t, http.StatusNotFound)
		b.Get("/console/operator/catalog/revisions/x").Want(t, http.StatusNotFound)
		if rows := logged(t, s, operator.CatalogApply, 3); rows[0].Object != "4" {
			t.Errorf("the log has %+v, want revision 4 first", rows)
		}
	})
}

// TestLongCatalogs checks that a catalog may be longer than other forms.
func TestLongCatalogs(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		text, _ := currentCatalog(s)
		long := text + "# " + strings.Repeat("x", 200<<10) + "\n"
		got := b.Do(http.MethodPost, "/console/operator/catalog/edit", url.Values{"yaml": {long}, "base": {"1"}}.Encode())
		got.Want(t, http.StatusOK, "there is nothing to apply")
	})
}

// TestModelStateButtons checks that the usual change of a model's state is a button, and that
// the other changes are in a menu.
func TestModelStateButtons(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		page := s.Operator().Get("/console/operator/catalog").Body.String()
		for _, m := range s.Options.Catalog.Current().Models() {
			usual := map[catalog.ModelState]catalog.ModelState{catalog.StateOpen: catalog.StateMaintenance}[m.State]
			if usual == "" {
				usual = catalog.StateOpen
			}
			path := "/console/operator/catalog/models/" + url.PathEscape(m.ID) + "/"
			first, menu := strings.Index(page, path+string(usual)), strings.Index(page, `Other<span class="hidden"> states of `+m.ID+"<")
			if first < 0 || menu < first {
				t.Errorf("%s: the button for %s is at %d, want it before the menu at %d", m.ID, usual, first, menu)
			}
			for _, state := range []catalog.ModelState{catalog.StateOpen, catalog.StateMaintenance, catalog.StateComingSoon, catalog.StateRetired} {
				button := strings.Index(page, `action="`+path+string(state)+`"`)
				if state == m.State && button >= 0 || state != m.State && state != usual && button < menu {
					t.Errorf("%s has state %s, and a button for %s at %d outside the menu", m.ID, m.State, state, button)
				}
			}
		}
	})
}

// TestSandboxCanBeRetired checks that the catalog page offers to retire the sandbox models in one
// revision after a real line was applied. A sandbox model with a real line stays.
func TestSandboxCanBeRetired(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		const offer = "Retire the sandbox models"
		b.Get("/console/operator/catalog").Without(t, offer)
		s.SellReal()
		b.Get("/console/operator/catalog").Want(t, http.StatusOK, offer, "sandbox-chat, ")
		b.Post("/console/operator/catalog/sandbox/retire", "more", "x").Want(t, http.StatusBadRequest)
		b.Post("/console/operator/catalog/sandbox/retire").Want(t, http.StatusSeeOther, "done=switched")
		b.Get("/console/operator/catalog").Without(t, offer)
		if _, n := currentCatalog(s); n != 3 {
			t.Errorf("the current revision is %d, want 3", n)
		}
		for _, m := range s.Options.Catalog.Current().Models() {
			if want := s.Options.Catalog.Current().IsSandbox(m.ID) || m.ID == "sandbox-old"; want != (m.State == catalog.StateRetired) {
				t.Errorf("%s is %s, want retired: %v", m.ID, m.State, want)
			}
		}
		if rows := logged(t, s, operator.CatalogApply, 1); rows[0].Object != "3" {
			t.Errorf("the log has %+v, want revision 3", rows)
		}
		b.Post("/console/operator/catalog/sandbox/retire").Want(t, http.StatusSeeOther)
		if _, n := currentCatalog(s); n != 3 {
			t.Errorf("after retiring no model, the current revision is %d, want 3", n)
		}
	})
}

// TestScheduleCatalog checks that a change is scheduled from the preview, shown, and cancelled, and the
// errors of its form.
func TestScheduleCatalog(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const changes = "/console/operator/catalog/changes"
		b := s.Operator()
		text, _ := currentCatalog(s)
		text = strings.Replace(text, "input: ", "input: 7", 1)
		b.Post("/console/operator/catalog/edit", "yaml", text, "base", "1").Want(t, http.StatusOK, "Apply later", "datetime-local")
		b.Post(changes, "yaml", text, "base", "1", "at", "2020-01-01T00:00").Want(t, http.StatusUnprocessableEntity,
			"Time in UTC must be in the future", "sandbox-chat")
		b.Post(changes, "yaml", text, "base", "1", "at", "soon").Want(t, http.StatusUnprocessableEntity, "Time in UTC must be a date")
		b.Post(changes, "yaml", text, "base", "2", "at", time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04")).Want(t,
			http.StatusUnprocessableEntity, "in the meantime")
		b.Post(changes, "yaml", text, "base", "1", "at", time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04"), "note", "for December",
			"tell_customers", "on").Want(t, http.StatusSeeOther, "done=scheduled")
		id := logged(t, s, operator.CatalogSchedule, 1)[0].Object
		b.Get("/console/operator/catalog").Want(t, http.StatusOK, "Scheduled changes", "for December", "pending", id)
		b.Get(changes+"/"+id).Want(t, http.StatusOK, "for December", "Cancel the change", "price.input")
		b.Post(changes+"/"+id+"/cancel").Want(t, http.StatusSeeOther, "done=cancelled")
		b.Get(changes+"/"+id).Want(t, http.StatusOK, "cancelled")
		b.Post(changes+"/"+id+"/cancel").Want(t, http.StatusBadRequest, "cannot be cancelled")
		b.Get("/console/operator/log").Want(t, http.StatusOK, `href="`+changes+"/"+id+`"`)
	})
}
