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
	d := &desk{bodies: newBodies(1, size/2)} // as much as one such file
	d.Guard = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	reference := &jobrequest.Reference{Address: host.URL, Param: "image"}
	first := d.bodies.reference("a")
	if data, err := d.bytesOf(t.Context(), reference, first.grow); err != nil || len(data) != size || first.bytes < size {
		t.Errorf("%d bytes, %v, with %d held", len(data), err, first.bytes)
	}
	second := d.bodies.reference("b")
	_, err := d.bytesOf(t.Context(), reference, second.grow)
	if f := fault.Of(err); f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("one more than there is room for: %v", err)
	}
	second.release()
	first.release()
	if _, err := d.bytesOf(t.Context(), reference, second.grow); err != nil {
		t.Error("when there is room again:", err)
	}
	second.release()
	if d.bodies.held != 0 || len(d.bodies.by) != 0 {
		t.Errorf("%d bytes are left, of %v", d.bodies.held, d.bodies.by)
	}
}

// TestAFileOfTheLargestSizeFits: where half of the budget is less, an account may
// have one such file, and its bodies still get half.
func TestAFileOfTheLargestSizeFits(t *testing.T) {
	t.Parallel()
	b := newBodies(115<<20, 32<<20)
	file, body := b.reference("a"), b.body("a")
	if err := file.grow(LargestReference + 1); err != nil {
		t.Error(err)
	}
	if err := body.grow(1); err == nil {
		t.Error("its bodies get room beside the file")
	}
	file.release()
	for range 2 {
		if err := body.grow(16 << 20); err != nil {
			t.Error(err)
		}
	}
	if err := body.grow(1 << 20); err == nil {
		t.Errorf("%d bytes of an account's bodies of %d", body.bytes, b.most)
	}
}
