package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"tollgate/internal/console/ui"
	"tollgate/internal/httpapi"
)

// TestHeadReadsOneBatch checks that a HEAD request for a download reads only the first batch.
func TestHeadReadsOneBatch(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int{http.MethodGet: 3, http.MethodHead: 1} {
		w, batches := httptest.NewRecorder(), 0
		r := httptest.NewRequestWithContext(context.Background(), method, "/console/requests/table", nil)
		v := &Visit{Exchange: &httpapi.Exchange{ResponseWriter: w, Request: r}}
		err := CSV{Name: "requests", Next: func() (ui.DataTable, bool, error) {
			batches++
			return ui.DataTable{Columns: []ui.Column{{Title: "Model"}}}, batches < 3, nil
		}}.send(v)
		if err != nil || batches != want || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" ||
			w.Header().Get("Content-Disposition") != `attachment; filename="requests.csv"` {
			t.Errorf("%s: read %d batches, want %d; headers %v, error %v", method, batches, want, w.Header(), err)
		}
		if empty := w.Body.Len() == 0; empty != (method == http.MethodHead) {
			t.Errorf("%s: the body is %q, want an empty body only for HEAD", method, w.Body)
		}
	}
}
