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

// step is a point in the life of a job. The test kills the job's node there.
type step struct {
	name string
	// behaviours returns the provider's behaviours for the submissions. unsafe is the behaviour that
	// rejects a job. gate is closed after the last kill.
	behaviours func(unsafe fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour
	// reached reports whether the job has reached the step.
	reached func(o scene.OperatorJob, s fakestudio.Fake) bool
	// state and code are the final status of the job and its error code.
	state, code string
	// least and most are the limits for the number of submissions at the provider.
	least, most int
	// ticket means that the step needs a provider that returns tickets.
	ticket bool
	// own means that the step depends on the provider's protocol, so every provider plays it. Other
	// steps are distributed over the providers.
	own bool
}

// steps returns all steps of successful and failed jobs.
func steps() []step {
	good := func(fakestudio.Behaviour, <-chan struct{}) []fakestudio.Behaviour { return nil }
	until := func(_ fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour {
		return []fakestudio.Behaviour{{Until: gate}}
	}
	arrived := func(n int) func(scene.OperatorJob, fakestudio.Fake) bool {
		return func(_ scene.OperatorJob, s fakestudio.Fake) bool { return len(s.Submissions()) == n }
	}
	// unanswered leaves the first n submissions without an answer. If refused is true, it rejects the
	// next.
	unanswered := func(n int, refused bool) func(fakestudio.Behaviour, <-chan struct{}) []fakestudio.Behaviour {
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
		{name: "queued", behaviours: good, reached: has("queued"), state: "succeeded", least: 1, most: 1},
		{name: "calling", behaviours: unanswered(1, false), reached: arrived(1), state: "succeeded", least: 2, most: 2, own: true},
		{name: "calling twice", behaviours: unanswered(2, false), reached: arrived(1),
			state: "failed", code: "upstream_error", least: 2, most: 2},
		{name: "calling, then refused", behaviours: unanswered(1, true), reached: arrived(1), state: "failed", least: 2, most: 2},
		{name: "ticket", behaviours: until, reached: has("ticket"), state: "succeeded", least: 1, most: 1, ticket: true},
		{name: "rendering", behaviours: until, reached: func(_ scene.OperatorJob, s fakestudio.Fake) bool { return s.Polls() > 0 },
			state: "succeeded", least: 1, most: 1, ticket: true, own: true},
		{name: "rendering, then refused", behaviours: func(unsafe fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour {
			unsafe.Until = gate
			return []fakestudio.Behaviour{unsafe}
		}, reached: has("ticket"), state: "failed", least: 1, most: 1, ticket: true},
		{name: "cancelled", behaviours: until, reached: has("ticket"), state: "failed", code: "upstream_error", least: 1, most: 1, ticket: true,
			own: true},
		{name: "rendered", behaviours: func(_ fakestudio.Behaviour, gate <-chan struct{}) []fakestudio.Behaviour {
			return []fakestudio.Behaviour{{Links: gate}}
		}, reached: has("rendered"), state: "succeeded", least: 1, most: 1, ticket: true, own: true},
		{name: "stored", behaviours: good, reached: has("stored"), state: "succeeded", least: 1, most: 1},
		{name: "succeeded", behaviours: good, reached: has("succeeded"), state: "succeeded", least: 1, most: 1},
		{name: "failed", behaviours: func(unsafe fakestudio.Behaviour, _ <-chan struct{}) []fakestudio.Behaviour {
			return []fakestudio.Behaviour{unsafe}
		}, reached: has("failed"), state: "failed", least: 1, most: 1},
	}
}

// stepJob is a job for one step.
type stepJob struct {
	step
	provider fakestudio.Provider
	kind     string
	model    string
	price    money.Amount
	calls    int // calls per submission: two for providers with one image per task
	fakestudio.Fake
	owner *scene.Customer
	id    string
	last  string // the job's body, if the job ended before the kill
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

// killsAtEachStep kills a node with jobs at every step, and then the next node. Each job ends once,
// is charged at most once, and is free if it fails. The provider gets no second submission after a
// ticket.
func killsAtEachStep(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	jobs, models, lines := newStepJobs(t, database, open)
	p.SetCatalog(models, lines)
	// Jobs with a model stored-… cannot finish until releaseEnds.
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
		scene.Eventually(t, w.model+" reaches its step", func() bool { return w.reached(p.OperatorJob(t, w.id), w.Fake) })
		if j := w.owner.Poll(t, w.kind, w.id); j.Final() {
			w.last = j.Raw
		}
	})

	replace(p, database)
	jobs.each(func(w *stepJob) {
		if w.least > 1 { // submit again, and kill the node again
			scene.Eventually(t, w.model+" is submitted again", func() bool { return len(w.Submissions()) == 2 })
		}
		if w.least > 1 && w.code == "" { // the answer to the second submission is not lost
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
			if cancelled := len(w.CancelledTickets()) == w.calls; w.provider.Cancels && !cancelled {
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

// newStepJobs returns jobs, each with a model and a line. A step with own has a job for each
// provider; each database gets half of these jobs. Every other step has one job of each kind.
func newStepJobs(t *testing.T, database string, open <-chan struct{}) (jobs stepJobs, models, lines []map[string]any) {
	add := func(m fakestudio.Provider, s step, kind string) {
		w := newStepJob(t, m, s, kind, open)
		jobs = append(jobs, w)
		models = append(models, modelAt(m, kind, w.model))
		lines = append(lines, m.JobLine(w.model, w.Fake, kind, nil, w.model))
	}
	parity, turn := 0, 0 // the database gets every second job
	if !strings.HasPrefix(database, "sqlite:") {
		parity = 1
	}
	for i, s := range steps() {
		providers := map[string][]fakestudio.Provider{}
		for _, m := range fakestudio.All() {
			kinds := m.Kinds()
			if s.ticket && m.Blocks {
				kinds = kinds[1:] // images have no tickets
			}
			if s.name == "rendered" && m.Inline {
				kinds = nil // results have no links
			}
			for _, kind := range kinds {
				providers[kind] = append(providers[kind], m)
			}
			if turn++; s.own && len(kinds) > 0 && turn%2 == parity {
				add(m, s, kinds[turn/2%len(kinds)])
			}
		}
		for _, kind := range []string{"image", "video"} {
			if list := providers[kind]; !s.own {
				add(list[i%len(list)], s, kind)
			}
		}
	}
	return jobs, models, lines
}

// newStepJob returns a job of a kind at a provider.
func newStepJob(t *testing.T, m fakestudio.Provider, s step, kind string, open <-chan struct{}) *stepJob {
	w := &stepJob{step: s, provider: m, kind: kind, Fake: m.Open(t), price: scene.PricePicture, calls: 1}
	switch {
	case kind == "video":
		w.price = scene.PriceClip
	case m.Single && s.ticket: // one submission per image
		w.calls, w.price = 2, 2*scene.PricePicture
	}
	if m.Finds && s.least > 1 { // the provider finds the first submission
		w.state, w.code, w.least, w.most = "succeeded", "", 1, 1
	}
	w.model = strings.NewReplacer(" ", "-", ",", "").Replace(s.name) + "-" + m.Name + "-" + kind
	unsafe, _ := m.Unsafe(kind)
	w.Expect(s.behaviours(unsafe, open)...)
	return w
}

// check waits for the end of a job and checks the result, the charge, the submissions and the steps.
func (j *stepJob) check(t *testing.T, p *scene.Node) {
	job := j.owner.Becomes(t, j.kind, j.id, j.state)
	if j.last != "" && job.Raw != j.last {
		t.Errorf("%s was %s before the kill and is %s now", j.model, j.last, job.Raw)
	}
	charged := j.owner.Charges(t)
	switch {
	case j.state == "succeeded":
		checkResult(t, j.owner, j.kind, j.model, job)
		j.owner.CheckFunds(t, j.price, 0)
		if len(charged) != 1 || charged[j.id] != j.price {
			t.Errorf("%s: charged %v", j.model, charged)
		}
	default:
		j.owner.CheckFunds(t, 0, 0)
		if len(charged) != 0 || j.code != "" && job.Error.Code != j.code {
			t.Errorf("%s: charged %v; the job is %s", j.model, charged, job.Raw)
		}
	}
	if n := len(j.Submissions()); n < j.least*j.calls || n > j.most*j.calls {
		t.Errorf("%s: %d submissions; want %d to %d, each of %d calls; %s", j.model, n, j.least, j.most, j.calls, p.OperatorJob(t, j.id))
	}
	ends := 0
	for _, s := range p.OperatorJob(t, j.id).Steps {
		if s.Name == "succeeded" || s.Name == "failed" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%s: the job ended %d times: %s", j.model, ends, p.OperatorJob(t, j.id))
	}
}

// replace kills the node and starts a new one. On PostgreSQL, the new node starts before the kill.
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

// refuse makes the database reject the changes of a table that match event and when, until allow is
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
