package partition

import (
	"fmt"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// writesRun reports whether a COMMIT writes a step of a job between its submission and its end.
func writesRun(c faultproxy.Commit) bool { return c.Has("UPDATE job_run") }

// takesOver reports whether a COMMIT takes over a job.
func takesOver(c faultproxy.Commit) bool { return c.Has("UPDATE job_run SET epoch = $1, fence") }

// lostSteps loses the COMMIT of each step of a job, or the answer to the COMMIT, and closes the
// connection. The node stays alive, so no other node takes over the job, but the job must still end.
func lostSteps(t *testing.T, binary string) {
	const steps = 5
	c := newCluster(t, binary, storetest.PostgreSQL(t), 1, leaseOfScenes)
	n, s := c.nodes[0], c.newJobClient()
	for _, effect := range []faultproxy.Effect{faultproxy.DropAnswer, faultproxy.DropCommit} {
		for nth := range steps {
			hit := n.proxy.Arm(faultproxy.Fault{Match: writesRun, Nth: nth + 1, Effect: effect})
			o := s.order(c, false)
			c.settleOrder(s, o)
			ended := soon(t, fmt.Sprintf("the job ends after fault %[2]d of step %[1]d: %[3]s", nth+1, effect, o), func() bool {
				_, err := s.pollFinal(o)
				return err == nil
			})
			if !ended {
				t.Fatalf("the job: %s\n%s", n.OperatorJob(t, o.id), tail(n.Output()))
			}
			if nth < 3 && !hit.Happened() {
				t.Errorf("the fault did not hit step %d", nth+1)
			}
			n.proxy.Disarm()
		}
	}
	c.checkBooks()
}

// lostTakeover loses the answer to the COMMIT of a take-over.
func lostTakeover(t *testing.T, binary string) {
	c, first, second := twoNodes(t, binary)
	s := c.newJobClient()
	rendered := make(chan struct{})
	defer close(rendered)
	c.studio.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: rendered} })
	second.proxy.Freeze() // second must not start the job
	o := s.order(c, false)
	c.settleOrder(s, o)
	first.WaitForStep(t, o.id, "ticket")
	hit := second.proxy.Arm(faultproxy.Fault{Match: takesOver, Effect: faultproxy.DropAnswer})
	first.Kill()
	second.proxy.Reopen()
	scene.Eventually(t, "the job is taken over", hit.Happened)
	polls := c.studio.Polls()
	if !soon(t, "a node polls the job", func() bool { return c.studio.Polls() > polls+1 }) {
		t.Logf("the job: %s\n%s", second.OperatorJob(t, o.id), tail(second.Output()))
	}
}

// idleReturn checks that a node declared dead while idle returns with a new epoch and takes over
// another node's job once.
func idleReturn(t *testing.T, binary string) {
	c, first, second := twoNodes(t, binary)
	s := c.newJobClient()
	rendered := make(chan struct{})
	release := sync.OnceFunc(func() { close(rendered) })
	defer release()
	c.studio.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: rendered} })
	second.proxy.Freeze()
	o := s.order(c, false)
	c.settleOrder(s, o)
	first.WaitForStep(t, o.id, "ticket")
	c.waitSwept(second)
	second.proxy.Reopen()
	first.Kill()
	second.WaitForStep(t, o.id, "taken_over")
	polls := c.studio.Polls()
	if !soon(t, "a node polls the job", func() bool { return c.studio.Polls() > polls+5 }) {
		t.Logf("the job: %s\n%s", second.OperatorJob(t, o.id), tail(second.Output()))
	}
	takeovers := 0
	for _, step := range second.OperatorJob(t, o.id).Steps {
		if step.Name == "taken_over" {
			takeovers++
		}
	}
	if takeovers != 1 {
		t.Errorf("the job was taken over %d times; want 1: %s", takeovers, second.OperatorJob(t, o.id))
	}
	release()
	s.Process = second.Process
	soon(t, "the job ends", func() bool {
		j, err := s.pollFinal(o)
		return err == nil && j.Status == "succeeded"
	})
}
