package jobs

import (
	"database/sql"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// step is a point in the life of a job for a kill of its node.
type step struct {
	name string
	// how returns the provider's behaviours. unsafe refuses a job of the kind, and gate is closed
	// after the last kill.
	how func(unsafe fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour
	// there reports whether the job has reached the step.
	there func(o scene.OperatorJob, s fakestudio.Fake) bool
	// state and code are the end of the job.
	state, code string
	// least and most bound the submissions at the provider.
	least, most int
	// ticket is true if the step is for providers with tickets only.
	ticket bool
	// own is true if the step depends on the protocol, so that it is played for every provider.
	// Other steps are distributed over the providers.
	own bool
}

// steps returns the states of a job, and its ends.
func steps() []step {
	good := func(fakestudio.Behaviour, <-chan struct{}) []fakestudio.Behaviour { return nil }
	until := func(_ fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour {
		return []fakestudio.Behaviour{{Until: gate}}
	}
	arrived := func(n int) func(scene.OperatorJob, fakestudio.Fake) bool {
		return func(_ scene.OperatorJob, s fakestudio.Fake) bool { return len(s.Submissions()) == n }
	}
	// held never answers the first n submissions.
	held := func(n int, refused bool) func(fakestudio.Behaviour, <-chan struct{}) []fakestudio.Behaviour {
		return func(unsafe fakestudio.Behaviour, _ <-chan struct{}) []fakestudio.Behaviour {
			all := make([]fakestudio.Behaviour, n)
			for i := range all {
				all[i].Answer = make(chan struct{})
			}
			if refused {
				all = append(all, unsafe)
			}
			return all
		}
	}
	has := func(name string) func(scene.OperatorJob, fakestudio.Fake) bool {
		return func(o scene.OperatorJob, _ fakestudio.Fake) bool { return o.Has(name) }
	}
	return []step{
		{name: "queued", how: good, there: has("queued"), state: "succeeded", least: 1, most: 1},
		{name: "calling", how: held(1, false), there: arrived(1), state: "succeeded", least: 2, most: 2, own: true},
		{name: "calling twice", how: held(2, false), there: arrived(1), state: "failed", code: "upstream_error", least: 2, most: 2},
		{name: "calling, then refused", how: held(1, true), there: arrived(1), state: "failed", least: 2, most: 2},
		{name: "ticket", how: until, there: has("ticket"), state: "succeeded", least: 1, most: 1, ticket: true},
		{name: "rendering", how: until, there: func(_ scene.OperatorJob, s fakestudio.Fake) bool { return s.Polls() > 0 }, state: "succeeded",
			least: 1, most: 1, ticket: true, own: true},
		{name: "rendering, then refused", how: func(unsafe fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour {
			unsafe.Until = gate
			return []fakestudio.Behaviour{unsafe}
		}, there: has("ticket"), state: "failed", least: 1, most: 1, ticket: true},
		{name: "cancelled", how: until, there: has("ticket"), state: "failed", code: "upstream_error", least: 1, most: 1, ticket: true,
			own: true},
		{name: "rendered", how: func(_ fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour {
			return []fakestudio.Behaviour{{Links: gate}}
		}, there: has("rendered"), state: "succeeded", least: 1, most: 1, ticket: true, own: true},
		{name: "stored", how: good, there: has("stored"), state: "succeeded", least: 1, most: 1},
		{name: "succeeded", how: good, there: has("succeeded"), state: "succeeded", least: 1, most: 1},
		{name: "failed", how: func(unsafe fakestudio.Behaviour, _ <-chan struct{}) []fakestudio.Behaviour {
			return []fakestudio.Behaviour{unsafe}
		}, there: has("failed"), state: "failed", least: 1, most: 1},
	}
}

// stepJob is a job for one step.
type stepJob struct {
	step
	maker fakestudio.Provider
	kind  string
	model string
	price money.Amount
	calls int // of one submission: two for providers with one image a task
	fakestudio.Fake
	owner *scene.Customer
	id    string
	last  string // the job's body, if it ended before the kill
}

type stepJobs []*stepJob

// each calls do for all jobs at the same time.
func (j stepJobs) each(do func(w *stepJob)) {
	var all sync.WaitGroup
	for _, w := range j {
		all.Go(func() { do(w) })
	}
	all.Wait()
}

// killsAtEachStep kills the node of jobs at every step, and then the next node. Each job ends once,
// is charged at most once, and is free if it fails. The provider gets no second submission after it
// gave a ticket.
func killsAtEachStep(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	jobs, models, lines := newStepJobs(t, database, open)
	p.SetCatalog(models, lines)
	// Jobs with a model stored-… stop before their last step.
	releaseEnds := refuse(t, scene.OpenDatabase(t, database), database, "UPDATE OF status", "job", "WHEN (NEW.model LIKE 'stored-%')")
	jobs.each(func(w *stepJob) {
		w.owner = p.Customer()
		if w.name == "queued" {
			p.Admin("POST", "/lines/"+w.model+"/drain", map[string]any{}, nil)
		}
		more := map[string]any{}
		if w.calls > 1 {
			more["n"] = w.calls
		}
		w.id = w.owner.Submit(t, w.kind, scene.JobRequest(w.model, "a boat", more))
		scene.Eventually(t, w.model+" is there", func() bool { return w.there(p.OperatorJob(t, w.id), w.Fake) })
		if j := w.owner.Poll(t, w.kind, w.id); j.Final() {
			w.last = j.Raw
		}
	})

	replace(p, database)
	jobs.each(func(w *stepJob) {
		if w.least > 1 { // submit again, and kill the node again
			scene.Eventually(t, w.model+" is submitted again", func() bool { return len(w.Submissions()) == 2 })
		}
		if w.least > 1 && w.code == "" { // this answer is not lost
			scene.Eventually(t, w.model+" has its answer", func() bool {
				o := p.OperatorJob(t, w.id)
				return o.Has("ticket") || o.Has("stored") || o.Final()
			})
		}
		if w.ticket {
			scene.Eventually(t, w.model+" is taken over", func() bool { return p.OperatorJob(t, w.id).Has("taken_over") })
		}
	})
	replace(p, database)
	releaseEnds()
	jobs.each(func(w *stepJob) {
		if w.name == "cancelled" {
			p.Admin("POST", "/jobs/"+w.id+"/cancel", map[string]any{}, nil)
			if cancelled := len(w.CancelledTickets()) == w.calls; w.maker.Cancels && !cancelled {
				t.Errorf("%s: the provider got no cancellation", w.model)
			}
		}
	})
	release()
	jobs.each(func(w *stepJob) {
		if w.name == "queued" {
			p.Admin("POST", "/lines/"+w.model+"/resume", map[string]any{}, nil)
		}
		w.check(t, p)
	})
	p.Audit(t)
	p.CheckStop(t)
	scene.CheckBooks(t, binary, p.Settings)
}

// newStepJobs returns jobs, each with a model and a line. There is a job for each provider and step
// with own, half of them on each database, and a job of each kind for every other step.
func newStepJobs(t *testing.T, database string, open <-chan struct{}) (jobs stepJobs, models, lines []map[string]any) {
	add := func(m fakestudio.Provider, s step, kind string) {
		w := newStepJob(t, m, s, kind, open)
		jobs = append(jobs, w)
		models = append(models, modelAt(m, kind, w.model))
		lines = append(lines, m.JobLine(w.model, w.Fake, kind, nil, w.model))
	}
	here, turn := 0, 0
	if !strings.HasPrefix(database, "sqlite:") {
		here = 1
	}
	for i, s := range steps() {
		able := map[string][]fakestudio.Provider{}
		for _, m := range fakestudio.All() {
			kinds := m.Kinds()
			if s.ticket && m.Blocks {
				kinds = kinds[1:] // images have no tickets
			}
			if s.name == "rendered" && m.Inline {
				kinds = nil // there are no links
			}
			for _, kind := range kinds {
				able[kind] = append(able[kind], m)
			}
			if turn++; s.own && len(kinds) > 0 && turn%2 == here {
				add(m, s, kinds[turn/2%len(kinds)])
			}
		}
		for _, kind := range []string{"image", "video"} {
			if of := able[kind]; !s.own {
				add(of[i%len(of)], s, kind)
			}
		}
	}
	return jobs, models, lines
}

// newStepJob returns a job of a kind at a provider.
func newStepJob(t *testing.T, m fakestudio.Provider, s step, kind string, open <-chan struct{}) *stepJob {
	w := &stepJob{step: s, maker: m, kind: kind, Fake: m.Open(t), price: scene.PricePicture, calls: 1}
	switch {
	case kind == "video":
		w.price = scene.PriceClip
	case m.Single && s.ticket: // one of several submissions
		w.calls, w.price = 2, 2*scene.PricePicture
	}
	if m.Finds && s.least > 1 { // the provider finds the first submission
		w.state, w.code, w.least, w.most = "succeeded", "", 1, 1
	}
	w.model = strings.NewReplacer(" ", "-", ",", "").Replace(s.name) + "-" + m.Name + "-" + kind
	unsafe, _ := m.Unsafe(kind)
	w.Expect(s.how(unsafe, open)...)
	return w
}

// check waits for the end of a job and checks its traces.
func (w *stepJob) check(t *testing.T, p *scene.Node) {
	j := w.owner.Becomes(t, w.kind, w.id, w.state)
	if w.last != "" && j.Raw != w.last {
		t.Errorf("%s was shown as %s and then as %s", w.model, w.last, j.Raw)
	}
	charged := w.owner.Charges(t)
	switch {
	case w.state == "succeeded":
		checkResult(t, w.owner, w.kind, w.model, j)
		w.owner.CheckFunds(t, w.price, 0)
		if len(charged) != 1 || charged[w.id] != w.price {
			t.Errorf("%s: charged %v", w.model, charged)
		}
	default:
		w.owner.CheckFunds(t, 0, 0)
		if len(charged) != 0 || w.code != "" && j.Error.Code != w.code {
			t.Errorf("%s: charged %v, and shown as %s", w.model, charged, j.Raw)
		}
	}
	if n := len(w.Submissions()); n < w.least*w.calls || n > w.most*w.calls {
		t.Errorf("%s: %d submissions of %d calls, want %d to %d; %s", w.model, n, w.calls, w.least, w.most, p.OperatorJob(t, w.id))
	}
	ends := 0
	for _, s := range p.OperatorJob(t, w.id).Steps {
		if s.Name == "succeeded" || s.Name == "failed" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%s: %d ends in %s", w.model, ends, p.OperatorJob(t, w.id))
	}
}

// replace kills the process. On SQLite, it restarts the process. On PostgreSQL, another node is
// running already.
func replace(p *scene.Node, database string) {
	p.T.Helper()
	if strings.HasPrefix(database, "sqlite:") {
		p.Kill()
		p.Restart()
		return
	}
	next := p.Second()
	p.Kill()
	p.Process = next.Process
}

// refuse makes the database refuse the changes of a table that match event and when, until allow is
// called.
func refuse(t *testing.T, db *sql.DB, database, event, table, when string) (allow func()) {
	exec := func(text string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	trigger := `CREATE TRIGGER refuse BEFORE ` + event + ` ON ` + table + ` FOR EACH ROW ` + when
	if strings.HasPrefix(database, "sqlite:") {
		exec(trigger + ` BEGIN SELECT RAISE(ABORT, 'not yet'); END`)
		return func() { exec(`DROP TRIGGER refuse`) }
	}
	exec(`CREATE FUNCTION not_yet() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'not yet'; END$$`)
	exec(trigger + ` EXECUTE FUNCTION not_yet()`)
	return func() { exec(`DROP TRIGGER refuse ON ` + table) }
}
