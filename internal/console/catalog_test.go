package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

func (s *scene) catalog() (text string, revision int64) {
	s.t.Helper()
	s.update(func(tx *store.Tx) error {
		doc, n, err := catalog.CurrentTx(tx)
		if err == nil {
			text, revision = string(doc.YAML()), n
		}
		return err
	})
	return text, revision
}

func TestCatalogIsEdited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		const edit = "/console/operator/catalog/edit"
		b := s.operator()
		text, _ := s.catalog()
		want(t, b.get("/console/operator/catalog"), http.StatusOK, "Revision 1", "sandbox-chat", "owned_by")
		want(t, b.get(edit), http.StatusOK, "<textarea", "owned_by")

		bad := strings.Replace(text, "priority: 1", "priority: -1", 1)
		if bad == text {
			bad = strings.Replace(text, "weight:", "waight:", 1)
		}
		if bad == text {
			bad = text + "\nnothing: here\n"
		}
		want(t, b.post(edit, "yaml", bad, "base", "1"), http.StatusUnprocessableEntity, "Nothing has changed", "line ", `id="line-`)

		changed := strings.Replace(text, "state: open", "state: maintenance", 1)
		got := b.post(edit, "yaml", strings.ReplaceAll(changed, "\n", "\r\n"), "base", "1")
		want(t, got, http.StatusOK, "1 change", "maintenance", "Apply as revision 2", `class="add"`)
		if _, n := s.catalog(); n != 1 {
			t.Fatal("applied before it was looked at")
		}
		fields := formOf(t, got, edit)
		if fields["sure"] != "yes" || fields["base"] != "1" {
			t.Fatalf("the form %v", fields)
		}
		want(t, b.post(edit, "yaml", changed, "base", "1", "sure", "yes"), http.StatusSeeOther, "done=applied")
		want(t, b.get("/console/operator/catalog?done=applied"), http.StatusOK, "Revision 2", "maintenance")

		// Who worked on revision 1 sees what he would take back.
		moved := b.post(edit, "yaml", text, "base", "1", "sure", "yes")
		want(t, moved, http.StatusConflict, "Nothing was applied", "revision 2 meanwhile", "Apply as revision 3", `class="del"`)
		if _, n := s.catalog(); n != 2 {
			t.Fatalf("revision %d", n)
		}
		want(t, b.post(edit, "yaml", changed, "base", "2", "sure", "yes"), http.StatusSeeOther, "done=same")

		want(t, b.post("/console/operator/catalog/models/sandbox-chat/open"), http.StatusSeeOther, "done=switched")
		want(t, b.post("/console/operator/catalog/models/none/open"), http.StatusNotFound)
		want(t, b.get("/console/operator/catalog/revisions/2?confirm=rollback"), http.StatusOK, "Roll back to this", "maintenance")
		want(t, b.post("/console/operator/catalog/revisions/2/apply", "base", "2"), http.StatusBadRequest, "meanwhile")
		want(t, b.post("/console/operator/catalog/revisions/2/apply", "base", "3"), http.StatusSeeOther, "done=applied")
		if now, n := s.catalog(); n != 4 || !strings.Contains(now, "maintenance") {
			t.Errorf("revision %d", n)
		}
		want(t, b.get("/console/operator/catalog/revisions/9"), http.StatusNotFound)
		want(t, b.get("/console/operator/catalog/revisions/x"), http.StatusNotFound)
		if rows := s.log(operator.CatalogApply); len(rows) != 3 || rows[0].Object != "4" {
			t.Errorf("log %+v", rows)
		}
	})
}

// TestLongCatalogs: a catalog may be longer than other forms.
func TestLongCatalogs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.operator()
		text, _ := s.catalog()
		long := text + "# " + strings.Repeat("x", 200<<10) + "\n"
		got := b.do(http.MethodPost, "/console/operator/catalog/edit", url.Values{"yaml": {long}, "base": {"1"}}.Encode())
		want(t, got, http.StatusOK, "there is nothing to apply")
	})
}
