package jobs

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// outageOfTheMediaStore removes the media folder during jobs of every provider, kills the node that
// keeps the results, and restores the folder. Each job succeeds, is charged once, and is submitted
// once.
func outageOfTheMediaStore(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	nodes := []*scene.Node{p}
	lite := strings.HasPrefix(database, "sqlite:")
	if !lite {
		nodes = append(nodes, p.Second())
	}
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	good := func(fakestudio.Behaviour, <-chan struct{}) []fakestudio.Behaviour { return nil }
	kept := step{name: "kept", state: "succeeded", least: 1, most: 1, behaviours: good}
	var jobs stepJobs
	var models, lines []map[string]any
	for i, m := range fakestudio.All() {
		kinds := m.Kinds()
		kind := kinds[i%len(kinds)]
		w := newStepJob(t, m, kept, kind, open)
		jobs = append(jobs, w)
		models = append(models, modelAt(m, kind, w.model))
		lines = append(lines, m.JobLine(w.model, w.Fake, kind, nil, w.model))
	}
	p.SetCatalog(models, lines)
	move(t, p.Media, p.Media+".away")
	if warned(t, p) {
		t.Error("a node warns about the media store before any access failed")
	}
	jobs.each(func(w *stepJob) {
		w.owner = p.Customer()
		w.id = w.owner.Submit(t, w.kind, scene.JobRequest(w.model, "a boat", nil))
	})
	countKept := func() (n int) {
		for _, w := range jobs {
			if p.OperatorJob(t, w.id).Has("kept") {
				n++
			}
		}
		return n
	}
	scene.Eventually(t, "a node keeps results, and no submission waits for an answer", func() bool {
		for _, w := range jobs {
			if o := p.OperatorJob(t, w.id); o.Has("submitted") && !o.Has("kept") && !o.Has("ticket") {
				return false
			}
		}
		return countKept() > 0
	})
	scene.Eventually(t, "the outage is reported", func() bool {
		return slices.ContainsFunc(nodes, func(n *scene.Node) bool { return warned(t, n) })
	})
	p.Kill()
	if lite {
		move(t, p.Media+".away", p.Media)
		p.Restart()
	} else {
		p.Process = nodes[1].Process
		scene.Eventually(t, "kept results are taken over", func() bool {
			for _, w := range jobs {
				if o := p.OperatorJob(t, w.id); o.Has("kept") && o.Has("taken_over") {
					return true
				}
			}
			return countKept() == 0
		})
		move(t, p.Media+".away", p.Media)
	}
	jobs.each(func(w *stepJob) { w.check(t, p) })
	scene.Eventually(t, "the end of the outage is reported", func() bool { return !warned(t, p) })
	p.Audit(t)
	p.CheckStop(t)
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// warned reports whether a node's /readyz warns about the media store. The status of a warning must
// be 200.
func warned(t *testing.T, n *scene.Node) bool {
	t.Helper()
	answer, err := n.Client.Get(n.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	warns := strings.Contains(string(body), `"media"`)
	if err != nil || warns && answer.StatusCode != 200 {
		t.Errorf("/readyz answers %d %s: %v", answer.StatusCode, body, err)
	}
	return warns
}
