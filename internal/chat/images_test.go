package chat

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// inlineSnapshot returns a catalog with a model for inline images only.
func inlineSnapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	return snapshotOf(t, `
models: [{id: swift-1, kind: chat, context_window: 100000, max_output_tokens: 1000, price: {input: 1, output: 10}}]
lines: [{id: only, provider: script, models: {swift-1: gemini-2.5-flash}}]`, wire.FormGemini)
}

// showing returns a request with the images at n addresses, the first one twice.
func showing(n int) string {
	parts := []string{`{"type":"image_url","image_url":{"url":"https://example.com/0"}}`}
	for i := range n {
		parts = append(parts, fmt.Sprintf(`{"type":"image_url","image_url":{"url":"https://example.com/%d"}}`, i))
	}
	return `{"model":"swift-1","messages":[{"role":"user","content":[` + strings.Join(parts, ",") + `]}]}`
}

// album fetches images, each in a second of the bubble's clock.
type album struct {
	mu        sync.Mutex
	fetched   map[string]int
	now, most int
	missing   string // the address without an image
}

func (a *album) fetch(_ context.Context, address string) (string, []byte, error) {
	a.mu.Lock()
	if a.fetched == nil {
		a.fetched = map[string]int{}
	}
	a.fetched[address]++
	a.now++
	a.most = max(a.most, a.now)
	a.mu.Unlock()
	time.Sleep(time.Second)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now--
	if address == a.missing {
		return "", nil, fault.New(fault.InvalidRequest, "It is gone.")
	}
	return "image/png", []byte(address), nil
}

// TestImagesAreFetchedAtOnce checks that the images of a request are fetched concurrently, at most
// fetchedAtOnce at a time and each once. If there are too many images, none is fetched.
func TestImagesAreFetchedAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		images, took, fetched int
		missing, param        string
	}{
		"one":        {1, 1, 1, "", ""},
		"some":       {4, 1, 4, "", ""},
		"many":       {16, 4, 16, "", ""},
		"one gone":   {6, 2, 6, "https://example.com/4", "messages[0].content[5].image_url.url"},
		"more still": {17, 0, 0, "", "messages[0].content[17].image_url.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, good(wire.FormGemini, false))
				accepted := chatCall(t, inlineSnapshot(t), showing(c.images))
				a := &album{missing: c.missing}
				accepted.Image = a.fetch
				begun := time.Now()
				out := tr.send(accepted)
				if took := time.Since(begun); took != time.Duration(c.took)*time.Second {
					t.Errorf("it took %s", took)
				}
				if len(a.fetched) != c.fetched || a.most > fetchedAtOnce {
					t.Errorf("%d of %d were fetched, %d at once", len(a.fetched), c.images, a.most)
				}
				for address, times := range a.fetched {
					if times != 1 {
						t.Errorf("%s was fetched %d times", address, times)
					}
				}
				if c.param != "" {
					if f := wantFault(t, out, fault.InvalidRequest); f.Param != c.param || len(tr.provider.calls) != 0 {
						t.Errorf("param %q, %d calls", f.Param, len(tr.provider.calls))
					}
					return
				}
				if out.err != nil {
					t.Fatal(out.err)
				}
				if sent := string(tr.provider.calls[0].Body.Bytes()); strings.Count(sent, `"inlineData"`) != c.images+1 {
					t.Errorf("sent %s", sent)
				}
			})
		})
	}
}

// TestImagesThatPanic checks that a panic over an untrusted file does not end the process.
func TestImagesThatPanic(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	accepted := chatCall(t, inlineSnapshot(t), showing(1))
	accepted.Image = func(context.Context, string) (string, []byte, error) { panic("odd file") }
	if f := wantFault(t, tr.send(accepted), fault.ServiceUnavailable); !strings.Contains(fmt.Sprint(f.Unwrap()), "odd file") {
		t.Errorf("%v", f.Unwrap())
	}
}

// countingProvider is a provider with a token counter.
type countingProvider struct {
	*provider
	asked []string
}

// CountTokens implements chatcall.TokenCounter.
func (c *countingProvider) CountTokens(_ context.Context, call chatcall.Call) (int64, error) {
	c.asked = append(c.asked, string(call.Body.Bytes()))
	return 777, nil
}

// TestCountsHaveImages checks that a count on a line for inline images fetches images by address if
// the account could make the request itself, and otherwise returns the gateway's own count.
func TestCountsHaveImages(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"who may": nil, "who may not": fault.New(fault.InsufficientQuota, "No.")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, counter := inlineSnapshot(t), &countingProvider{provider: &provider{t: t}}
			conductor := New(call.New(call.Options{Lines: line.New(line.Options{
				Open:    func(upstream.Target) (chatcall.Adapter, error) { return counter, nil },
				Catalog: catalog.NewStaticWatcher(s),
			})}), Options{})
			asked := 0
			conductor.Admissible = func(_ context.Context, a ledger.Admission) error {
				asked++
				if a.Account != "acct_1" || a.Amount <= 0 {
					t.Errorf("admission %+v", a)
				}
				return refusal
			}
			fetched := 0
			accepted := chatCall(t, s, showing(1))
			accepted.Image = func(context.Context, string) (string, []byte, error) {
				fetched++
				return "image/png", []byte("bytes"), nil
			}
			n, _, err := conductor.CountTokens(t.Context(), accepted)
			if err != nil || asked != 1 || (n == 777) != (refusal == nil) || n == 0 {
				t.Errorf("%d tokens, %v, %d questions", n, err, asked)
			}
			if refusal != nil && (fetched != 0 || len(counter.asked) != 0) {
				t.Errorf("%d fetched, %d counts", fetched, len(counter.asked))
			}
			if refusal == nil && (fetched != 1 || strings.Count(counter.asked[0], `"inlineData":{"mimeType":"image/png","data":"Ynl0ZXM="}`) != 2) {
				t.Errorf("%d fetched, %v", fetched, counter.asked)
			}
		})
	}
}
