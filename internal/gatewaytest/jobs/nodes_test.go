package jobs

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// slotsOverNodes submits jobs to two nodes, more than the line's max_concurrent, and kills one node.
// The limit applies to all nodes together, also after the kill.
func slotsOverNodes(t *testing.T, binary, database string) {
	const slots, jobs = 3, 12
	p := scene.NewNode(t, binary, database, nil)
	fal := fakestudio.ProviderOf(t, "fal")
	s := fal.Open(t)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	s.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: open} })
	p.SetCatalog([]map[string]any{scene.ImageModel("capped", nil)}, []map[string]any{
		fal.JobLine("capped", s, "image", map[string]any{"max_concurrent": slots}, "capped")})
	other := p.Second()
	first := p.Customer()
	second := first.On(other)
	ids := make([]string, jobs)
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() {
			c := []*scene.Customer{first, second}[i%2]
			ids[i] = c.Submit(t, "image", scene.JobRequest("capped", fmt.Sprint(i), nil))
		})
	}
	all.Wait()
	db := scene.OpenDatabase(t, database)
	slotsTaken := func() (n int) {
		if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM line_job`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	scene.Eventually(t, "every slot has a job with a ticket", func() bool {
		tickets := 0
		for _, o := range p.JobsOf(t, first.ID) {
			if o.Has("ticket") {
				tickets++
			}
		}
		return tickets == slots
	})
	p.Kill()
	p.Process = other.Process
	for _, id := range ids {
		if o := p.OperatorJob(t, id); o.Status == "processing" && o.Node == "" {
			t.Errorf("job %s has no node: %s", id, o)
		}
	}
	scene.Eventually(t, "the jobs of the dead node are taken over", func() bool {
		nodes := map[string]bool{}
		for _, o := range p.JobsOf(t, first.ID) {
			if o.Status == "processing" {
				nodes[o.Node] = true
			}
		}
		return len(nodes) == 1
	})
	if n := s.AcceptedCount(); n != slots {
		t.Errorf("%d jobs were submitted to a line with %d slots", n, slots)
	}
	release()
	for _, id := range ids {
		scene.Eventually(t, "job "+id+" has ended", func() bool {
			if n := slotsTaken(); n > slots {
				t.Errorf("%d of %d slots are taken", n, slots)
			}
			return first.Poll(t, "image", id).Final()
		})
	}
	first.CheckFunds(t, jobs*scene.PricePicture, 0)
	if n := len(s.Submissions()); n != jobs {
		t.Errorf("%d submissions for %d jobs", n, jobs)
	}
	if n := slotsTaken(); n != 0 {
		t.Errorf("%d slots are taken without a job", n)
	}
	p.Audit(t)
}

// stopWithJobs stops the process during jobs and restarts it. The process waits for short calls to
// end, and all other jobs continue after the restart.
func stopWithJobs(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	open, callsDone, never := make(chan struct{}), make(chan struct{}), make(chan struct{})
	release, finishCalls := sync.OnceFunc(func() { close(open) }), sync.OnceFunc(func() { close(callsDone) })
	defer release()
	defer finishCalls()
	jobs := []struct {
		name, provider, kind string
		behaviour            fakestudio.Behaviour
		submissions          int
	}{
		{"rendering", "fal", "video", fakestudio.Behaviour{Until: open}, 1},
		{"downloading", "replicate", "image", fakestudio.Behaviour{Links: open}, 1},
		{"ending call", "dashscope", "image", fakestudio.Behaviour{Until: callsDone}, 1},
		{"ending call with the images", "openai", "image", fakestudio.Behaviour{Until: callsDone}, 1},
		{"ending submission", "fal", "image", fakestudio.Behaviour{Answer: callsDone}, 1},
		{"endless call", "gemini", "image", fakestudio.Behaviour{Until: never}, 2},
		{"queued", "fal", "image", fakestudio.Behaviour{}, 1},
	}
	var models, lines []map[string]any
	studios := make([]fakestudio.Fake, len(jobs))
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		m, id := fakestudio.ProviderOf(t, j.provider), strings.ReplaceAll(j.name, " ", "-")
		studios[i] = m.Open(t)
		studios[i].Expect(j.behaviour)
		models = append(models, modelOf(j.kind, id, nil))
		lines = append(lines, m.JobLine(id, studios[i], j.kind, nil, id))
	}
	p.SetCatalog(models, lines)
	p.Admin("POST", "/lines/queued/drain", map[string]any{}, nil)
	c := p.Customer()
	for i, j := range jobs {
		ids[i] = c.Submit(t, j.kind, scene.JobRequest(strings.ReplaceAll(j.name, " ", "-"), "x", nil))
	}
	for i, j := range jobs {
		switch j.name {
		case "queued":
		case "downloading":
			p.WaitForStep(t, ids[i], "rendered")
		default:
			scene.Eventually(t, j.name+" is submitted", func() bool { return studios[i].AcceptedCount() == 1 })
		}
	}
	p.WaitForStep(t, ids[0], "ticket")
	began := time.Now()
	ended := make(chan int)
	go func() { ended <- p.Stop() }()
	scene.Eventually(t, "the process is stopping", func() bool { return strings.Contains(p.Output(), "stopping") })
	finishCalls()
	// Waiting for the endless call would take a minute.
	if code := <-ended; code != 0 || time.Since(began) > 50*time.Second {
		t.Errorf("exit code %d after %s\n%s", code, time.Since(began), p.Output())
	}
	release()
	p.Restart()
	p.Admin("POST", "/lines/queued/resume", map[string]any{}, nil)
	for i, j := range jobs {
		c.Becomes(t, j.kind, ids[i], "succeeded")
		if n := len(studios[i].Submissions()); n != j.submissions {
			t.Errorf("%s: %d submissions, want %d; %s", j.name, n, j.submissions, p.OperatorJob(t, ids[i]))
		}
	}
	c.CheckFunds(t, scene.PriceClip+6*scene.PricePicture, 0)
	p.Audit(t)
}
