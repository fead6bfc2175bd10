package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// Prices of the models in nano-dollars. All prices and their sums differ.
const (
	pSmall, pMiddle, pLarge = 30_000_001, 50_000_003, 110_000_007 // an image at 1K, 2K and 4K
	pSecond, pSecondLarge   = 10_700_009, 21_400_021              // a second at 720p and 1080p
	pClip, pClipLarge       = 400_000_013, 700_000_017            // a clip at 720p and 1080p
)

// receipt is a job with its expected hold and charge. Both are calculated by hand, independent of the
// product.
type receipt struct {
	name       string
	model      string
	more       map[string]any // members of the request
	behaviour  fakestudio.Behaviour
	held, cost money.Amount
}

func receipts() []receipt {
	return []receipt{
		{"an image", "easel", nil, fakestudio.Behaviour{}, pSmall, pSmall},
		{"three at the middle tier", "easel", map[string]any{"size": "2K", "n": 3}, fakestudio.Behaviour{}, 3 * pMiddle, 3 * pMiddle},
		{"two of three images", "easel", map[string]any{"size": "2K", "n": 3}, fakestudio.Behaviour{Images: 2}, 3 * pMiddle, 2 * pMiddle},
		{"one of four images", "easel", map[string]any{"n": 4}, fakestudio.Behaviour{Images: 1}, 4 * pSmall, pSmall},
		{"five instead of four images", "easel", map[string]any{"n": 4}, fakestudio.Behaviour{Images: 5}, 4 * pSmall, 4 * pSmall},
		{"pixel size at the smallest tier", "easel", map[string]any{"size": "1024x1024", "n": 2}, fakestudio.Behaviour{}, 2 * pSmall, 2 * pSmall},
		{"pixel size at the middle tier", "easel", map[string]any{"size": "2048x1152"}, fakestudio.Behaviour{}, pMiddle, pMiddle},
		{"pixel size at the largest tier", "easel", map[string]any{"size": "4096x4096"}, fakestudio.Behaviour{}, pLarge, pLarge},
		{"a ratio with a tier", "easel", map[string]any{"size": "16:9", "resolution": "4K"}, fakestudio.Behaviour{}, pLarge, pLarge},
		{"rejected images", "easel", map[string]any{"n": 2}, fakestudio.Behaviour{Failure: `{"status":422,"header":{"X-Fal-Retryable":"false"},` +
			`"body":{"detail":[{"loc":["body"],"msg":"flagged","type":"content_policy_violation"}]}}`}, 2 * pSmall, 0},
		{"the first duration", "reel", nil, fakestudio.Behaviour{}, 8 * pSecond, 8 * pSecond},
		{"twelve seconds", "reel", map[string]any{"duration": 12}, fakestudio.Behaviour{}, 12 * pSecond, 12 * pSecond},
		{"twelve seconds at the larger tier", "reel", map[string]any{"duration": 12, "resolution": "1080p"}, fakestudio.Behaviour{},
			12 * pSecondLarge, 12 * pSecondLarge},
		{"a rejected clip", "reel", map[string]any{"duration": 12}, fakestudio.Behaviour{Failure: `{"status":422,"header":` +
			`{"X-Fal-Retryable":"false"},"body":{"detail":[{"loc":["body"],"msg":"flagged","type":"content_policy_violation"}]}}`},
			12 * pSecond, 0},
		{"a clip priced per clip", "clip", map[string]any{"duration": 12}, fakestudio.Behaviour{}, pClip, pClip},
		{"a clip priced per clip, larger tier", "clip", map[string]any{"resolution": "1080p"}, fakestudio.Behaviour{}, pClipLarge, pClipLarge},
	}
}

// tiers returns prices by tier in order, from pairs of a name and nano-dollars. The first tier is
// the default.
func tiers(pairs ...any) json.RawMessage {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf("%q:%s", pairs[i], money.Amount(pairs[i+1].(int))))
	}
	return json.RawMessage("{" + strings.Join(all, ",") + "}")
}

// TestReceipts compares the holds and charges of jobs with bills calculated by hand.
func TestReceipts(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := scene.NewNode(t, binary, database, nil)
		fal := fakestudio.ProviderOf(t, "fal")
		prices := map[string]map[string]any{
			"easel": {"price": tiers("1K", pSmall, "2K", pMiddle, "4K", pLarge)},
			"reel":  {"price": tiers("720p", pSecond, "1080p", pSecondLarge)},
			"clip":  {"per_clip": tiers("720p", pClip, "1080p", pClipLarge)},
		}
		var models, lines []map[string]any
		var all sync.WaitGroup
		for i, r := range receipts() {
			id, kind, s := fmt.Sprintf("%s-%d", r.model, i), "video", fal.Open(t)
			if r.model == "easel" {
				kind = "image"
			}
			model := modelOf(kind, id, nil)
			delete(model, "price")
			maps.Copy(model, prices[r.model])
			s.Always(func([]byte) fakestudio.Behaviour { return r.behaviour })
			models, lines = append(models, model), append(lines, fal.JobLine(id, s, kind, nil, id))
		}
		p.SetCatalog(models, lines)
		for i, r := range receipts() {
			id, kind := models[i]["id"].(string), models[i]["kind"].(string)
			all.Go(func() {
				t.Run(r.name, func(t *testing.T) {
					c := p.Customer()
					job := c.Submit(t, kind, scene.JobRequest(id, "a boat", r.more))
					o := p.OperatorJob(t, job)
					if !o.Final() && o.Held != r.held {
						t.Errorf("%s on hold, want %s", o.Held, r.held)
					}
					state := "succeeded"
					if r.cost == 0 {
						state = "failed"
					}
					c.Becomes(t, kind, job, state)
					if o = p.OperatorJob(t, job); o.Cost != r.cost || o.Held != 0 {
						t.Errorf("charged %s with %s on hold, want %s with nothing on hold", o.Cost, o.Held, r.cost)
					}
					c.CheckFunds(t, r.cost, 0)
				})
			})
		}
		all.Wait()
		p.Audit(t)
	})
}
