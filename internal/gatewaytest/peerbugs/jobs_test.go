package peerbugs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// failedJobs is QuantumNous/new-api#2050, #4211 and #6074 and Wei-Shaw/sub2api#4837: a failed job
// is charged, or refunded to the balance but not to the limits, or refunded at each poll.
func failedJobs(t testing.TB) peerScene {
	fal := fakestudio.Providers()[0]
	studio := fal.Open(t)
	gate := make(chan struct{})
	bad := fal.UnsafeVideo
	bad.Until = gate
	studio.Expect(bad)
	return peerScene{
		models: []map[string]any{scene.VideoModel("bug24", nil)},
		lines:  []map[string]any{fal.JobLine("bug24", studio, "video", nil, "bug24")},
		play: func(t *testing.T, g *gateway) {
			other := g.another()
			// The key's limits are the exact price of one clip.
			c := g.open(money.USD, map[string]any{"total_limit_usd": money.Amount(scene.PriceClip),
				"daily_budget_usd": money.Amount(scene.PriceClip)})
			body := string(scene.JobRequest("bug24", "a hat", nil))
			first := c.wants(scene.PathVideo, body, http.StatusAccepted, "")
			c.owns(0, scene.PriceClip)
			c.checkSpending(0, scene.PriceClip)
			c.wants(scene.PathVideo, body, http.StatusPaymentRequired, "insufficient_quota")
			close(gate)
			pollers := make(chan scene.Job, 20)
			for i := range cap(pollers) {
				at := c.at([]*gateway{g, other}[i%2])
				go func() {
					var j scene.Job
					defer func() { pollers <- j }()
					j = at.finishes(t, "video", first)
				}()
			}
			for range cap(pollers) {
				if j := <-pollers; j.Status != "failed" || j.Error == nil || j.Error.Code != "content_policy" {
					t.Errorf("the job is %s", j.Raw)
				}
			}
			c.owns(0, 0)
			c.checkSpending(0, 0)
			second := c.wants(scene.PathVideo, body, http.StatusAccepted, "") // the refund applies to every limit
			if j := c.finishes(t, "video", second); j.Status != "succeeded" {
				t.Errorf("the job is %s", j.Raw)
			}
			c.owns(scene.PriceClip, 0)
			c.checkSpending(scene.PriceClip, 0)
			c.totals(usageTotals{Cost: scene.PriceClip, Requests: 2, Billed: 1, Failed: 1})
			c.wants(scene.PathVideo, body, http.StatusPaymentRequired, "insufficient_quota")
		},
	}
}

// finishes polls an accepted job until its end.
func (c client) finishes(t *testing.T, kind string, accepted scene.FormAnswer) (j scene.Job) {
	t.Helper()
	id := scene.ReadJob(t, scene.Reply{Raw: []byte(accepted.Raw)}).ID
	scene.Eventually(t, "job "+id+" has ended", func() bool {
		j = scene.ReadJob(t, scene.Reply{Raw: []byte(c.call("GET", "/v1/"+kind+"s/jobs/"+id, "").Raw)})
		return j.Final()
	})
	return j
}

// manyJobs is QuantumNous/new-api#5717 and #5715: tasks are polled in series, so hundreds take
// hours, and a timed out task is failed in one place and running in another.
func manyJobs(t testing.TB) peerScene {
	fal := fakestudio.Providers()[0]
	studio, endless := fal.Open(t), fal.Open(t)
	gate := make(chan struct{})
	studio.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: gate} })
	endless.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: make(chan struct{})} })
	return peerScene{
		models: []map[string]any{scene.VideoModel("bug25", nil), scene.VideoModel("bug25-endless", nil)},
		lines: []map[string]any{fal.JobLine("bug25", studio, "video", nil, "bug25"),
			fal.JobLine("bug25-endless", endless, "video", map[string]any{"timeouts": map[string]any{"total": "1s"}}, "bug25-endless")},
		play: func(t *testing.T, g *gateway) {
			const jobs = 30
			c := g.open(100*money.USD, nil)
			accepted := make([]scene.FormAnswer, jobs)
			for i := range accepted {
				accepted[i] = c.wants(scene.PathVideo, string(scene.JobRequest("bug25", fmt.Sprint(i), nil)), http.StatusAccepted, "")
			}
			// None is done and all are polled. In series, they would wait.
			scene.Eventually(t, "all jobs are rendered and polled", func() bool { return studio.PolledTasks() == jobs })
			c.owns(0, jobs*scene.PriceClip)
			close(gate)
			for _, job := range accepted {
				if j := c.finishes(t, "video", job); j.Status != "succeeded" {
					t.Errorf("the job is %s", j.Raw)
				}
			}
			c.owns(jobs*scene.PriceClip, 0)

			late := g.open(money.USD, nil)
			job := late.wants(scene.PathVideo, string(scene.JobRequest("bug25-endless", "x", nil)), http.StatusAccepted, "")
			failed := late.finishes(t, "video", job)
			if failed.Status != "failed" || failed.Error.Code != "wait_timeout" {
				t.Errorf("the job is %s", failed.Raw)
			}
			late.owns(0, 0)
			if again := late.at(g.another()).finishes(t, "video", job); again.Raw != failed.Raw {
				t.Errorf("another node says %s and not %s", again.Raw, failed.Raw)
			}
			var seen scene.OperatorJob
			g.admin("GET", "/jobs/"+failed.ID, nil, &seen)
			row := late.log(1)[0]
			if seen.Status != "failed" || seen.Error.Code != "wait_timeout" || seen.Cost != 0 || row.Code != "wait_timeout" || row.Cost != 0 {
				t.Errorf("the operator sees %+v and in the log %+v", seen, row)
			}
		},
	}
}

// creditsOnce is QuantumNous/new-api#4179 and Helicone/helicone#4344: a payment is not credited, or
// credited twice, because the gateway checks for its id but never stores it.
func creditsOnce(t testing.TB) peerScene {
	return peerScene{play: func(t *testing.T, g *gateway) {
		node := g.apart(nil)
		other := node.another()
		c := node.open(0, nil)
		path, paid := "/accounts/"+c.Account+"/credits", map[string]any{"usd": "5.000000001", "note": "invoice 7"}
		const credit = 5*money.USD + 1
		answers := make(chan string, 12)
		for i := range cap(answers) {
			at := []*gateway{node, other}[i%2]
			go func() {
				answer := "nothing"
				defer func() { answers <- answer }()
				status, text := at.operate("POST", path, paid, "Idempotency-Key", "payment-7")
				answer = fmt.Sprint(status, " ", text)
			}()
		}
		for range cap(answers) {
			if text := <-answers; !strings.HasPrefix(text, "20") || !strings.Contains(text, `"balance_usd":5.000000001`) {
				t.Errorf("a credit was answered %s", text)
			}
		}
		c.had = credit
		c.totals(usageTotals{}) // the balance changes before the answer
		node = node.again()
		if status, text := node.operate("POST", path, paid, "Idempotency-Key", "payment-7"); status >= 300 {
			t.Errorf("after a restart: %d %s", status, text)
		}
		another := map[string]any{"usd": 6}
		if status, text := node.operate("POST", path, another, "Idempotency-Key", "payment-7"); status != http.StatusBadRequest {
			t.Errorf("another payment under the same key: %d %s", status, text)
		}
		c = c.at(node)
		c.owns(0, 0)
		var entries struct{ Data []struct{ USD money.Amount } }
		node.admin("GET", "/accounts/"+c.Account+"/entries", nil, &entries)
		if len(entries.Data) != 1 || entries.Data[0].USD != credit {
			t.Errorf("movements of money: %+v", entries.Data)
		}
		if status, text := node.operate("POST", path, paid, "Idempotency-Key", "payment-8"); status >= 300 {
			t.Errorf("the next payment: %d %s", status, text)
		}
		c.had += credit
		c.owns(0, 0)

		// A payment with a reference needs no key: each repetition gets the first answer.
		paid["reference"] = "pi_9"
		nodes := []*gateway{node, node.another()}
		var group sync.WaitGroup
		for i := range cap(answers) {
			group.Go(func() {
				status, text := nodes[i%2].operate("POST", path, paid)
				if status != http.StatusOK || !strings.Contains(text, `"balance_usd":15.000000003`) {
					t.Errorf("a payment with a reference: %d %s", status, text)
				}
			})
		}
		group.Wait()
		c.had += credit
		c.owns(0, 0)
		node.Audit(t)
	}}
}
