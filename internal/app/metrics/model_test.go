package metrics

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// snapshot is a catalog with some models.
func snapshot(t testing.TB, revision int64, models ...string) *catalog.Snapshot {
	t.Helper()
	var text strings.Builder
	text.WriteString("models:\n")
	for _, m := range models {
		text.WriteString("  - {id: " + m + ", kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}\n")
	}
	doc, _, err := catalog.Parse([]byte(text.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.NewSnapshot(revision, doc, nil, func(string) (string, bool) { return "", false })
}

// lines returns the lines of a scrape with a metric's name.
func lines(t *testing.T, m *Metrics, name string) []string {
	t.Helper()
	return regexp.MustCompile("(?m)^"+name+".*$").FindAllString(scrape(t, m), -1)
}

func TestModelsAreCounted(t *testing.T) {
	t.Parallel()
	m := New("test")
	m.Follow(func() *catalog.Snapshot { return snapshot(t, 1, "swift-1") })
	observer := m.Ledger()
	for range 2 {
		observer.Ended(books.EndedRequest{Model: "swift-1", Tokens: books.Tokens{Prompt: 10, Cached: 4, Completion: 5}, Charged: money.USD / 4})
	}
	observer.Ended(books.EndedRequest{Model: "swift-1", Code: "upstream_error"})
	observer.Ended(books.EndedRequest{Model: "swift-1", Code: "render_failed"})
	observer.Ended(books.EndedRequest{Model: "swift-1", Code: "a provider's word"})
	observer.Ended(books.EndedRequest{Model: "a caller's word", Code: "model_not_found"})
	observer.Ended(books.EndedRequest{Code: "invalid_api_key"})
	m.FirstToken("swift-1", 400*time.Millisecond)
	observer.Held(ledger.OpenHolds{Holds: 2, Amount: 3 * money.USD}, ledger.OpenHolds{Holds: 1, Amount: money.USD / 2})
	got := scrape(t, m)
	for _, want := range []string{
		`tollgate_model_requests_total{code="",model="swift-1"} 2`,
		`tollgate_model_requests_total{code="upstream_error",model="swift-1"} 1`,
		`tollgate_model_requests_total{code="upstream_unavailable",model="swift-1"} 0`,
		`tollgate_model_requests_total{code="render_failed",model="swift-1"} 1`,
		`tollgate_model_requests_total{code="rejected",model="swift-1"} 1`,
		`tollgate_model_requests_total{code="model_not_found",model=""} 1`,
		`tollgate_model_requests_total{code="invalid_api_key",model=""} 1`,
		`tollgate_model_tokens_total{kind="prompt",model="swift-1"} 20`,
		`tollgate_model_tokens_total{kind="cached",model="swift-1"} 8`,
		`tollgate_model_tokens_total{kind="completion",model="swift-1"} 10`,
		`tollgate_model_charged_usd_total{model="swift-1"} 0.5`,
		`tollgate_model_first_token_seconds_bucket{model="swift-1",le="0.3"} 0`,
		`tollgate_model_first_token_seconds_bucket{model="swift-1",le="0.5"} 1`,
		`tollgate_held_usd{kind="request"} 3`, `tollgate_held_usd{kind="job"} 0.5`, `tollgate_open_holds{kind="job"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, "word") {
		t.Error("a caller's text is a label")
	}
}

// TestModelsFollowTheCatalog checks that a scrape shows the models of the newest catalog, with zero
// before the first request, and no removed model.
func TestModelsFollowTheCatalog(t *testing.T) {
	t.Parallel()
	var current atomic.Pointer[catalog.Snapshot]
	current.Store(snapshot(t, 1, "stays", "goes"))
	m := New("test")
	m.Follow(current.Load)
	ended := m.Ledger().Ended
	ended(books.EndedRequest{Model: "stays", Charged: money.USD})
	ended(books.EndedRequest{Model: "goes", Charged: money.USD})
	current.Store(snapshot(t, 2, "stays", "comes"))
	ended(books.EndedRequest{Model: "comes", Charged: 2 * money.USD}) // before a scrape
	ended(books.EndedRequest{Model: "goes", Charged: 4 * money.USD})
	want := []string{`tollgate_model_charged_usd_total{model=""} 4`, `tollgate_model_charged_usd_total{model="comes"} 2`,
		`tollgate_model_charged_usd_total{model="stays"} 1`}
	if got := lines(t, m, "tollgate_model_charged_usd_total"); !slices.Equal(got, want) {
		t.Errorf("the scrape has %q, want %q", got, want)
	}
	if strings.Contains(scrape(t, m), `"goes"`) {
		t.Error("the scrape has a removed model")
	}
	current.Store(snapshot(t, 3, "new"))
	got := lines(t, m, "tollgate_model_charged_usd_total")
	if !slices.Contains(got, `tollgate_model_charged_usd_total{model="new"} 0`) || len(got) != 2 {
		t.Errorf("the scrape of the new catalog has %q", got)
	}
}

// TestCountingAllocatesNothing checks that counting a request allocates no memory.
func TestCountingAllocatesNothing(t *testing.T) {
	m := New("test")
	s := snapshot(t, 1, "swift-1")
	m.Follow(func() *catalog.Snapshot { return s })
	ended := m.Ledger().Ended
	if n := testing.AllocsPerRun(100, func() { ended(typicalRequest) }); n != 0 {
		t.Errorf("the end of a request allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { m.FirstToken("swift-1", time.Second) }); n != 0 {
		t.Errorf("a first token allocates %v times", n)
	}
}

var typicalRequest = books.EndedRequest{Model: "swift-1", Charged: money.USD / 100,
	Tokens: books.Tokens{Prompt: 1000, Cached: 500, Completion: 200}}

func BenchmarkEnded(b *testing.B) {
	m := New("test")
	s := snapshot(b, 1, "swift-1")
	m.Follow(func() *catalog.Snapshot { return s })
	ended := m.Ledger().Ended
	b.ReportAllocs()
	for b.Loop() {
		ended(typicalRequest)
	}
}
