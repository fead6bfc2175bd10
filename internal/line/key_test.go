package line_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire"
)

const (
	newKey = "sk-new-0123456789abcdefNEWW"
	oldKey = "sk-old-0123456789abcdefOLDD"
)

// openKeys is like open, but calls are recorded by key instead of line.
func (p *fakeProvider) openKeys(t upstream.Target) (chatcall.Adapter, error) {
	return fakeKey{provider: p, key: t.Key, name: strings.Split(t.Key, "-")[1]}, nil
}

type fakeKey struct {
	fakeGenerator
	provider  *fakeProvider
	key, name string
}

func (d fakeKey) Chat(_ context.Context, c chatcall.Call) (*chatcall.Response, error) {
	return d.provider.chat(d.key, d.name, c)
}

func (d fakeKey) CountTokens(context.Context, chatcall.Call) (int64, error) {
	return 7, d.provider.call(d.key, d.name+":count")
}

// job returns the result of a job's call.
func (d fakeKey) job(what string) error {
	if err := d.provider.call(d.key, d.name+what); err != nil {
		f := (*upstream.Failure)(nil)
		errors.As(err, &f)
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return nil
}

func (d fakeKey) Submit(context.Context, jobcall.Task) (*jobcall.TaskStatus, error) {
	return &jobcall.TaskStatus{Ticket: "t"}, d.job(":submit")
}

func (d fakeKey) Poll(context.Context, jobcall.Task, string) (*jobcall.TaskStatus, error) {
	return &jobcall.TaskStatus{}, d.job(":poll")
}

// keyed returns a catalog with a line and some of the keys NEW and OLD, which are present on the
// node.
func keyed(revision int64, keys ...string) *catalog.Snapshot {
	ln := spec("a")
	for _, k := range keys {
		ln.APIKeys = append(ln.APIKeys, "${"+k+"}")
	}
	doc := &catalog.Document{Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}}, Lines: []catalog.LineSpec{ln}}
	return catalog.NewSnapshot(revision, doc,
		map[string]catalog.Provider{"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat}, NeedsKey: true}},
		func(name string) (string, bool) {
			v, ok := map[string]string{"NEW": newKey, "OLD": oldKey}[name]
			return v, ok
		})
}

// states returns the states of the line's keys.
func states(l *line.Lines) string {
	var words []string
	for _, k := range l.Statuses()[0].Keys {
		words = append(words, k.State)
	}
	return strings.Join(words, " ")
}

// withTwoKeys runs a test with a line of two keys, the new one first, on a fake clock.
func withTwoKeys(t *testing.T, play func(t *testing.T, o *fakeProvider, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := keyed(1, "NEW", "OLD")
		var o fakeProvider
		var log bytes.Buffer
		l := line.New(line.Options{Open: o.openKeys, Catalog: catalog.NewStaticWatcher(s),
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		stop := runUpkeep(t, l)
		play(t, &o, l, s, &log)
		stop()
		for _, secret := range []string{newKey, oldKey} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log contains a key: %s", log.String())
			}
		}
	})
}

// TestARefusedKeyMovesOn checks that a refused key costs one request an additional call and no
// request its answer. Later requests use the other key at once, and the operator gets one alert. A
// probe detects when the key is accepted again.
func TestARefusedKeyMovesOn(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, o *fakeProvider, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer) {
		good := func(want string) {
			t.Helper()
			attempts, err := ask(l, request(s))
			synctest.Wait() // waits for the log too
			if got := o.takeCalls(); err != nil || got != want || len(attempts) != len(strings.Fields(want)) {
				t.Errorf("calls %q, attempts %+v, %v; want %q", got, attempts, err, want)
			}
		}
		good("new")
		if got := states(l); got != "in_use ready" {
			t.Errorf("the keys are %s", got)
		}
		o.set(newKey, failure(401, `{"error":{"message":"Incorrect API key provided: `+newKey+`","code":"invalid_api_key"}}`))
		good("new old")
		good("old")
		good("old")
		if got, state := states(l), l.Statuses()[0]; got != "refused in_use" || state.State != "in_service" || state.Keys[0].Since == 0 ||
			state.Keys[0].Hint != "…NEWW" || strings.Contains(fmt.Sprintf("%+v", state), newKey) {
			t.Errorf("the line is %+v", state)
		}
		if n := strings.Count(log.String(), "a key is refused"); n != 1 || !strings.Contains(log.String(), "key 1 (…NEWW), ${NEW}") {
			t.Errorf("%d alerts: %s", n, log.String())
		}
		time.Sleep(5*time.Minute + time.Second)
		checkCalls(t, o, "new:probe")
		good("old")
		o.set(newKey, nil)
		time.Sleep(5 * time.Minute) // the second wait is twice as long
		checkCalls(t, o, "")
		time.Sleep(5*time.Minute + time.Second)
		checkCalls(t, o, "new:probe")
		good("new")
		if n := strings.Count(log.String(), "accepted again"); n != 1 || states(l) != "in_use ready" {
			t.Errorf("%d alerts; the keys are %s", n, states(l))
		}
	})
}

// TestACountGoesOnWithTheNextKey checks that a count uses the next key after a refused one, and
// that later requests use it too. If all keys are refused, the count is unknown and the line stays
// in service.
func TestACountGoesOnWithTheNextKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, o *fakeProvider, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		count := func() (int64, bool) {
			n, known, err := l.Count(t.Context(), request(s), func(*line.Candidate) (chatcall.Call, error) { return chatcall.Call{}, nil })
			if err != nil {
				t.Error(err)
			}
			return n, known
		}
		o.set(newKey, noKey())
		if n, known := count(); n != 7 || !known || o.takeCalls() != "new:count old:count" || states(l) != "refused in_use" {
			t.Errorf("%d, %t; the keys are %s", n, known, states(l))
		}
		if n, known := count(); n != 7 || !known || o.takeCalls() != "old:count" {
			t.Errorf("%d, %t", n, known)
		}
		o.set(oldKey, noKey())
		if _, known := count(); known || o.takeCalls() != "old:count" || l.Statuses()[0].State != "in_service" {
			t.Errorf("%t; the line is %+v", known, l.Statuses()[0])
		}
	})
}

// TestALineIsOutWithoutAnyKey checks that a line is out only if all keys are refused, and that a
// remaining key brings the line back.
func TestALineIsOutWithoutAnyKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, o *fakeProvider, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		o.set(newKey, noKey())
		o.set(oldKey, noKey())
		if _, err := ask(l, request(s)); fault.Of(err).Code != fault.UpstreamUnavailable || o.takeCalls() != "new old" {
			t.Errorf("%v", err)
		}
		if got := l.Statuses()[0]; got.State != "credentials_out" || states(l) != "refused refused" {
			t.Errorf("the line is %+v", got)
		}
		if attempts, _ := ask(l, request(s)); skipped(attempts) != "a:credentials_out" || o.takeCalls() != "" {
			t.Errorf("%+v", attempts)
		}
		o.set(oldKey, nil)
		time.Sleep(5*time.Minute + time.Second)
		o.takeCalls()
		if _, err := ask(l, request(s)); err != nil || o.takeCalls() != "old" || states(l) != "refused in_use" {
			t.Errorf("%v, the keys are %s", err, states(l))
		}
	})
}

// TestWhatARequestBringsAboutTakesNoKey checks that an unproven status counts against a key only if
// the next key answers the same request, and against the line only if a probe has it too.
func TestWhatARequestBringsAboutTakesNoKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, o *fakeProvider, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		hostile := func() {
			_, err := l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { return upstream.Classify(403, "", nil, nil) })
			if fault.Of(err).Code != fault.UpstreamUnavailable {
				t.Errorf("%v", err)
			}
			synctest.Wait()
		}
		hostile()
		if got := l.Statuses()[0]; got.State != "in_service" || states(l) != "in_use ready" || o.takeCalls() != "new:probe" {
			t.Errorf("the line is %+v", got)
		}
		o.set(newKey, upstream.Classify(403, "", nil, nil))
		if _, err := ask(l, request(s)); err != nil || o.takeCalls() != "new old" || states(l) != "refused in_use" {
			t.Errorf("%v, the keys are %s", err, states(l))
		}
		time.Sleep(2 * time.Minute)
		hostile()
		if got := l.Statuses()[0]; got.State != "in_service" || states(l) != "refused in_use" {
			t.Errorf("the line is %+v", got)
		}
	})
}

// TestOfAnOlderCatalog checks that a request begun before a key was replaced continues with the new
// key if its own is refused.
func TestOfAnOlderCatalog(t *testing.T) {
	t.Parallel()
	var o fakeProvider
	before, after := keyed(1, "OLD"), keyed(2, "NEW")
	l := line.New(line.Options{Open: o.openKeys})
	for _, s := range []*catalog.Snapshot{before, after} {
		if _, err := ask(l, request(s)); err != nil {
			t.Fatal(err)
		}
	}
	o.set(oldKey, noKey())
	o.takeCalls()
	if _, err := ask(l, request(before)); err != nil || o.takeCalls() != "old new" {
		t.Errorf("request with the older catalog: %v", err)
	}
	if _, err := ask(l, request(after)); err != nil || o.takeCalls() != "new" {
		t.Errorf("request with the newer catalog: %v", err)
	}
}

// TestJobsKeepTheirKey checks that a job is polled with the key that submitted it, if the key is
// accepted, and with the line's present key afterwards.
func TestJobsKeepTheirKey(t *testing.T) {
	t.Parallel()
	var o fakeProvider
	one, both, other := keyed(1, "OLD"), keyed(2, "NEW", "OLD"), keyed(3, "NEW")
	l := line.New(line.Options{Open: o.openKeys})
	job := func(s *catalog.Snapshot) *line.Candidate { return l.CandidateFor(s, "a", "swift") }
	status, err := job(one).Generator.Submit(t.Context(), jobcall.Task{})
	if err != nil || status.KeyMark == "" {
		t.Fatalf("%+v, %v", status, err)
	}
	polled := func(s *catalog.Snapshot, mark, want string) {
		t.Helper()
		o.takeCalls()
		_, err := job(s).Generator.Poll(t.Context(), jobcall.Task{KeyMark: mark}, "t")
		if got := o.takeCalls(); err != nil || got != want {
			t.Errorf("polled with %q, %v; want %q", got, err, want)
		}
	}
	polled(both, status.KeyMark, "old:poll")
	polled(both, "", "new:poll")
	polled(other, status.KeyMark, "new:poll") // the old key is not in the newest catalog
	o.set(oldKey, noKey())
	polled(one, status.KeyMark, "old:poll new:poll") // the old key is in the job's catalog
	polled(both, status.KeyMark, "new:poll")
	if status, err := job(both).Generator.Submit(t.Context(), jobcall.Task{}); err != nil || status.KeyMark == "" {
		t.Errorf("submitted: %+v, %v", status, err)
	}
}
