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

// failedJobs is QuantumNous/new-api#2050, #4211 and #6074 and Wei-Shaw/sub2api#4837: a failed job is
// charged, or refunded to the balance but not to the limits, or refunded at each poll.
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
			other := g.secondNode()
			// The key's limits are the exact price of one clip.
			c := g.open(money.USD, map[string]any{"total_limit_usd": money.Amount(scene.PriceClip),
				"daily_budget_usd": money.Amount(scene.PriceClip)})
			body := string(scene.JobRequest("bug24", "a hat", nil))
			first := c.wantStatus(scene.PathVideo, body, http.StatusAccepted, "")
			c.wantFunds(0, scene.PriceClip)
			c.wantSpent(0, scene.PriceClip)
			c.wantStatus(scene.PathVideo, body, http.StatusPaymentRequired, "insufficient_quota")
			close(gate)
			pollers := make(chan scene.Job, 20)
			for i := range cap(pollers) {
				at := c.onNode([]*gateway{g, other}[i%2])
				go func() {
					var j scene.Job
					defer func() { pollers <- j }()
					j = at.waitForJob(t, "video", first)
				}()
			}
			for range cap(pollers) {
				if j := <-pollers; j.Status != "failed" || j.Error == nil || j.Error.Code != "content_policy" {
					t.Errorf("the job is %s", j.Raw)
				}
			}
			c.wantFunds(0, 0)
			c.wantSpent(0, 0)
			second := c.wantStatus(scene.PathVideo, body, http.StatusAccepted, "") // the refund applies to every limit
			if j := c.waitForJob(t, "video", second); j.Status != "succeeded" {
				t.Errorf("the job is %s", j.Raw)
			}
			c.wantFunds(scene.PriceClip, 0)
			c.wantSpent(scene.PriceClip, 0)
			c.wantTotals(usageTotals{Cost: scene.PriceClip, Requests: 2, Billed: 1, Failed: 1})
			c.wantStatus(scene.PathVideo, body, http.StatusPaymentRequired, "insufficient_quota")
		},
	}
}

// waitForJob polls an accepted job until it has ended.
func (c client) waitForJob(t *testing.T, kind string, accepted scene.FormAnswer) (j scene.Job) {
	t.Helper()
	id := scene.ReadJob(t, scene.Reply{Raw: []byte(accepted.Raw)}).ID
	scene.Eventually(t, "job "+id+" has ended", func() bool {
		j = scene.ReadJob(t, scene.Reply{Raw: []byte(c.call("GET", "/v1/"+kind+"s/jobs/"+id, "").Raw)})
		return j.Final()
	})
	return j
}

// manyJobs is QuantumNous/new-api#5717 and #5715: tasks are polled one after the other, so hundreds
// of tasks take hours, and a task after its timeout is failed in one place and running in another.
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
				accepted[i] = c.wantStatus(scene.PathVideo, string(scene.JobRequest("bug25", fmt.Sprint(i), nil)), http.StatusAccepted, "")
			}
			// No task is done, but all are polled. If polled one after the other, all others would wait for
			// the first.
			scene.Eventually(t, "all jobs are polled", func() bool { return studio.PolledTasks() == jobs })
			c.wantFunds(0, jobs*scene.PriceClip)
			close(gate)
			for _, job := range accepted {
				if j := c.waitForJob(t, "video", job); j.Status != "succeeded" {
					t.Errorf("the job is %s", j.Raw)
				}
			}
			c.wantFunds(jobs*scene.PriceClip, 0)

			slow := g.open(money.USD, nil)
			job := slow.wantStatus(scene.PathVideo, string(scene.JobRequest("bug25-endless", "x", nil)), http.StatusAccepted, "")
			timedOut := slow.waitForJob(t, "video", job)
			if timedOut.Status != "failed" || timedOut.Error.Code != "wait_timeout" {
				t.Errorf("the job is %s", timedOut.Raw)
			}
			slow.wantFunds(0, 0)
			if again := slow.onNode(g.secondNode()).waitForJob(t, "video", job); again.Raw != timedOut.Raw {
				t.Errorf("another node returned %s instead of %s", again.Raw, timedOut.Raw)
			}
			var o scene.OperatorJob
			g.admin("GET", "/jobs/"+timedOut.ID, nil, &o)
			row := slow.log(1)[0]
			if o.Status != "failed" || o.Error.Code != "wait_timeout" || o.Cost != 0 || row.Code != "wait_timeout" || row.Cost != 0 {
				t.Errorf("the operator API returned %+v, and the log has %+v", o, row)
			}
		},
	}
}

// creditsOnce is QuantumNous/new-api#4179 and Helicone/helicone#4344: a payment is not credited, or
// is credited twice because the gateway looks for the payment's id but never stores the id.
func creditsOnce(t testing.TB) peerScene {
	return peerScene{play: func(t *testing.T, g *gateway) {
		node := g.startSeparate(nil)
		other := node.secondNode()
		c := node.open(0, nil)
		path, payment := "/accounts/"+c.Account+"/credits", map[string]any{"usd": "5.000000001", "note": "invoice 7"}
		const credit = 5*money.USD + 1
		answers := make(chan string, 12)
		for i := range cap(answers) {
			at := []*gateway{node, other}[i%2]
			go func() {
				answer := "nothing"
				defer func() { answers <- answer }()
				status, text := at.operate("POST", path, payment, "Idempotency-Key", "payment-7")
				answer = fmt.Sprint(status, " ", text)
			}()
		}
		for range cap(answers) {
			if text := <-answers; !strings.HasPrefix(text, "20") || !strings.Contains(text, `"balance_usd":5.000000001`) {
				t.Errorf("a credit was answered with %s", text)
			}
		}
		c.credit = credit
		c.wantTotals(usageTotals{}) // the balance changes before the answer
		node = node.restart()
		if status, text := node.operate("POST", path, payment, "Idempotency-Key", "payment-7"); status >= 300 {
			t.Errorf("after a restart: %d %s", status, text)
		}
		another := map[string]any{"usd": 6}
		if status, text := node.operate("POST", path, another, "Idempotency-Key", "payment-7"); status != http.StatusBadRequest {
			t.Errorf("another payment with the same key: %d %s", status, text)
		}
		c = c.onNode(node)
		c.wantFunds(0, 0)
		var entries struct{ Data []struct{ USD money.Amount } }
		node.admin("GET", "/accounts/"+c.Account+"/entries", nil, &entries)
		if len(entries.Data) != 1 || entries.Data[0].USD != credit {
			t.Errorf("entries of the account: %+v; want one credit", entries.Data)
		}
		if status, text := node.operate("POST", path, payment, "Idempotency-Key", "payment-8"); status >= 300 {
			t.Errorf("the next payment: %d %s", status, text)
		}
		c.credit += credit
		c.wantFunds(0, 0)

		// A payment with a reference needs no key: each repetition gets the first answer.
		payment["reference"] = "pi_9"
		nodes := []*gateway{node, node.secondNode()}
		var group sync.WaitGroup
		for i := range cap(answers) {
			group.Go(func() {
				status, text := nodes[i%2].operate("POST", path, payment)
				if status != http.StatusOK || !strings.Contains(text, `"balance_usd":15.000000003`) {
					t.Errorf("a payment with a reference: %d %s", status, text)
				}
			})
		}
		group.Wait()
		c.credit += credit
		c.wantFunds(0, 0)
		node.Audit(t)
	}}
}
