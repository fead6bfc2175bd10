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

// openKeys opens an adapter whose calls are recorded by key instead of line.
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

// job records a job's call and returns its error.
func (d fakeKey) job(call string) error {
	if err := d.provider.call(d.key, d.name+call); err != nil {
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

// keySnapshot returns a catalog with one line with some of the keys NEW and OLD.
func keySnapshot(revision int64, keys ...string) *catalog.Snapshot {
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

// keyStates returns the states of the line's keys.
func keyStates(l *line.Lines) string {
	var words []string
	for _, k := range l.Statuses()[0].Keys {
		words = append(words, k.State)
	}
	return strings.Join(words, " ")
}

// withTwoKeys runs a test on a synctest clock with a line with the keys NEW and OLD, in this order.
func withTwoKeys(t *testing.T, test func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := keySnapshot(1, "NEW", "OLD")
		var p fakeProvider
		var log bytes.Buffer
		l := line.New(line.Options{Open: p.openKeys, Catalog: catalog.NewStaticWatcher(s),
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		stop := runUpkeep(t, l)
		test(t, &p, l, s, &log)
		stop()
		for _, secret := range []string{newKey, oldKey} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log contains a key: %s", log.String())
			}
		}
	})
}

// TestRefusedKeyUsesNextKey checks that the request with a refused key continues with the next key,
// that later requests use the next key at once, and that a probe finds out when the first key is
// accepted again. Each change is logged once.
func TestRefusedKeyUsesNextKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer) {
		askAndCheck := func(want string) {
			t.Helper()
			attempts, err := ask(l, request(s))
			synctest.Wait() // waits for the log too
			if got := p.takeCalls(); err != nil || got != want || len(attempts) != len(strings.Fields(want)) {
				t.Errorf("calls %q, attempts %+v, %v; want %q", got, attempts, err, want)
			}
		}
		askAndCheck("new")
		if got := keyStates(l); got != "in_use ready" {
			t.Errorf("keys %s, want in_use ready", got)
		}
		p.set(newKey, failure(401, `{"error":{"message":"Incorrect API key provided: `+newKey+`","code":"invalid_api_key"}}`))
		askAndCheck("new old")
		askAndCheck("old")
		askAndCheck("old")
		if got, state := keyStates(l), l.Statuses()[0]; got != "refused in_use" || state.State != "in_service" || state.Keys[0].Since == 0 ||
			state.Keys[0].Hint != "…NEWW" || strings.Contains(fmt.Sprintf("%+v", state), newKey) {
			t.Errorf("line %+v, want key 1 refused and the line in service", state)
		}
		if n := strings.Count(log.String(), "a key is refused"); n != 1 || !strings.Contains(log.String(), "key 1 (…NEWW), ${NEW}") {
			t.Errorf("%d log lines about refused keys, want 1 that names key 1: %s", n, log.String())
		}
		time.Sleep(5*time.Minute + time.Second)
		checkCalls(t, p, "new:probe")
		askAndCheck("old")
		p.set(newKey, nil)
		time.Sleep(5 * time.Minute) // the second wait is twice as long
		checkCalls(t, p, "")
		time.Sleep(5*time.Minute + time.Second)
		checkCalls(t, p, "new:probe")
		askAndCheck("new")
		if n := strings.Count(log.String(), "accepted again"); n != 1 || keyStates(l) != "in_use ready" {
			t.Errorf("%d log lines about accepted keys, keys %s; want 1 and in_use ready", n, keyStates(l))
		}
	})
}

// TestCountUsesNextKey checks that a count continues with the next key after a refusal, and that
// later counts use this key first. If all keys are refused, the count is unknown and the line stays
// in service.
func TestCountUsesNextKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		count := func() (int64, bool) {
			n, known, err := l.Count(t.Context(), request(s))
			if err != nil {
				t.Error(err)
			}
			return n, known
		}
		p.set(newKey, invalidKey())
		if n, known := count(); n != 7 || !known || p.takeCalls() != "new:count old:count" || keyStates(l) != "refused in_use" {
			t.Errorf("Count = %d, %t, keys %s; want 7, true and key new refused", n, known, keyStates(l))
		}
		if n, known := count(); n != 7 || !known || p.takeCalls() != "old:count" {
			t.Errorf("second Count = %d, %t; want 7, true with key old only", n, known)
		}
		p.set(oldKey, invalidKey())
		if _, known := count(); known || p.takeCalls() != "old:count" || l.Statuses()[0].State != "in_service" {
			t.Errorf("with refused keys: Count is known: %t, line %+v; want false and in_service", known, l.Statuses()[0])
		}
	})
}

// TestLineIsOutWithoutAnyKey checks that a line is out if all keys are refused, and returns when one
// key is accepted.
func TestLineIsOutWithoutAnyKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		p.set(newKey, invalidKey())
		p.set(oldKey, invalidKey())
		if _, err := ask(l, request(s)); fault.Of(err).Code != fault.UpstreamUnavailable || p.takeCalls() != "new old" {
			t.Errorf("error %v, want upstream_unavailable after calls with both keys", err)
		}
		if got := l.Statuses()[0]; got.State != "credentials_out" || keyStates(l) != "refused refused" {
			t.Errorf("line %+v, want credentials_out and both keys refused", got)
		}
		if attempts, _ := ask(l, request(s)); skipReasons(attempts) != "a:credentials_out" || p.takeCalls() != "" {
			t.Errorf("attempts %+v, want the line skipped without a call", attempts)
		}
		p.set(oldKey, nil)
		time.Sleep(5*time.Minute + time.Second)
		p.takeCalls()
		if _, err := ask(l, request(s)); err != nil || p.takeCalls() != "old" || keyStates(l) != "refused in_use" {
			t.Errorf("after a key is accepted: error %v, keys %s; want an answer with key old", err, keyStates(l))
		}
	})
}

// TestUnprovenRefusalOfKey checks that an unproven 403 counts against a key only if the next key
// answers the same request or a probe fails too.
func TestUnprovenRefusalOfKey(t *testing.T) {
	t.Parallel()
	withTwoKeys(t, func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		sendHostile := func() {
			_, err := l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { return upstream.Classify(403, "", nil, nil) })
			if fault.Of(err).Code != fault.UpstreamUnavailable {
				t.Errorf("error %v, want upstream_unavailable", err)
			}
			synctest.Wait()
		}
		sendHostile()
		if got := l.Statuses()[0]; got.State != "in_service" || keyStates(l) != "in_use ready" || p.takeCalls() != "new:probe" {
			t.Errorf("line %+v, want in_service, both keys in use, and one probe", got)
		}
		p.set(newKey, upstream.Classify(403, "", nil, nil))
		if _, err := ask(l, request(s)); err != nil || p.takeCalls() != "new old" || keyStates(l) != "refused in_use" {
			t.Errorf("error %v, keys %s; want an answer with key old, key new refused", err, keyStates(l))
		}
		time.Sleep(2 * time.Minute)
		sendHostile()
		if got := l.Statuses()[0]; got.State != "in_service" || keyStates(l) != "refused in_use" {
			t.Errorf("line %+v, want in_service with key new refused", got)
		}
	})
}

// TestKeyReplacedDuringRequest checks that a request with an older catalog continues with the new
// catalog's key if its own key is refused.
func TestKeyReplacedDuringRequest(t *testing.T) {
	t.Parallel()
	var p fakeProvider
	oldCatalog, newCatalog := keySnapshot(1, "OLD"), keySnapshot(2, "NEW")
	l := line.New(line.Options{Open: p.openKeys})
	for _, s := range []*catalog.Snapshot{oldCatalog, newCatalog} {
		if _, err := ask(l, request(s)); err != nil {
			t.Fatal(err)
		}
	}
	p.set(oldKey, invalidKey())
	p.takeCalls()
	if _, err := ask(l, request(oldCatalog)); err != nil || p.takeCalls() != "old new" {
		t.Errorf("request with the older catalog: error %v, want an answer after calls with keys old and new", err)
	}
	if _, err := ask(l, request(newCatalog)); err != nil || p.takeCalls() != "new" {
		t.Errorf("request with the newer catalog: error %v, want an answer after a call with key new", err)
	}
}

// TestJobsKeepTheirKey checks that a job is polled with the key that submitted the job, and with
// another key if the first is refused or was removed.
func TestJobsKeepTheirKey(t *testing.T) {
	t.Parallel()
	var p fakeProvider
	oldOnly, bothKeys, newOnly := keySnapshot(1, "OLD"), keySnapshot(2, "NEW", "OLD"), keySnapshot(3, "NEW")
	l := line.New(line.Options{Open: p.openKeys})
	job := func(s *catalog.Snapshot) *line.Candidate { return l.CandidateFor(s, "a", "swift") }
	status, err := job(oldOnly).Generator.Submit(t.Context(), jobcall.Task{})
	if err != nil || status.KeyMark == "" {
		t.Fatalf("Submit = %+v, %v, want a status with the key's mark", status, err)
	}
	checkPoll := func(s *catalog.Snapshot, mark, want string) {
		t.Helper()
		p.takeCalls()
		_, err := job(s).Generator.Poll(t.Context(), jobcall.Task{KeyMark: mark}, "t")
		if got := p.takeCalls(); err != nil || got != want {
			t.Errorf("polled with %q, %v; want %q", got, err, want)
		}
	}
	checkPoll(bothKeys, status.KeyMark, "old:poll")
	checkPoll(bothKeys, "", "new:poll")
	checkPoll(newOnly, status.KeyMark, "new:poll") // the old key is not in the newest catalog
	p.set(oldKey, invalidKey())
	checkPoll(oldOnly, status.KeyMark, "old:poll new:poll") // the old key is in the job's catalog
	checkPoll(bothKeys, status.KeyMark, "new:poll")
	if status, err := job(bothKeys).Generator.Submit(t.Context(), jobcall.Task{}); err != nil || status.KeyMark == "" {
		t.Errorf("Submit = %+v, %v, want a status with the key's mark", status, err)
	}
}
