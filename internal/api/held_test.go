package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/wire/jobrequest"
)

// TestReferencesCountAsBodies checks that a fetched file uses the memory budget of its account,
// that reading stops at the budget, and that the memory is returned.
func TestReferencesCountAsBodies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size)) // the reader may have left
	}))
	defer host.Close()
	d := &server{memory: httpapi.NewBudget(1, size/2, LargestReference)} // as much as one such file
	d.Guard = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	reference := &jobrequest.Reference{Address: host.URL, Param: "image"}
	first := d.memory.File("a")
	if data, err := d.referenceBytes(t.Context(), reference, first.Grow); err != nil || len(data) != size {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	second := d.memory.File("b")
	_, err := d.referenceBytes(t.Context(), reference, second.Grow)
	if f := fault.Of(err); f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("one more than there is room for: %v", err)
	}
	second.Release()
	first.Release()
	if _, err := d.referenceBytes(t.Context(), reference, second.Grow); err != nil {
		t.Error("when there is room again:", err)
	}
	second.Release()
	all := d.memory.File("c")
	if err := all.Grow(2 * (size + 2)); err != nil {
		t.Error("not all was given back:", err)
	}
	if err := all.Grow(1); err == nil {
		t.Error("there is room beside all of it")
	}
}
