package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/wire/jobrequest"
)

// TestReferencesCountAsBodies: a file that is fetched finds room in the budget of
// its account, or is not read on; what was taken is given back.
func TestReferencesCountAsBodies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size)) // the reader may have left
	}))
	defer host.Close()
	d := &desk{bodies: newBodies(1, 2*size)} // memory grows to twice the size
	d.Guard = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	reference := &jobrequest.Reference{Address: host.URL, Param: "image"}
	first := held{budget: d.bodies, account: "a"}
	if data, err := d.bytesOf(t.Context(), reference, first.grow); err != nil || len(data) != size || first.bytes < size {
		t.Errorf("%d bytes, %v, with %d held", len(data), err, first.bytes)
	}
	second := held{budget: d.bodies, account: "a"}
	_, err := d.bytesOf(t.Context(), reference, second.grow)
	if f := fault.Of(err); f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("a second one of the account: %v", err)
	}
	other := held{budget: d.bodies, account: "b"}
	if _, err := d.bytesOf(t.Context(), reference, other.grow); err != nil {
		t.Error("another account's:", err)
	}
	first.release()
	second.release()
	other.release()
	if d.bodies.held != 0 {
		t.Errorf("%d bytes are left", d.bodies.held)
	}
}
