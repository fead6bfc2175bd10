package line_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
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

// office is a provider that accepts some keys and refuses others. It records the key of each call:
// "new" or "old", with "probe" for the gateway's own calls.
type office struct {
	mu    sync.Mutex
	fails map[string]*upstream.Failure // by key; nil answers
	calls []string
}

func (o *office) open(t upstream.Target) (chatcall.Adapter, error) {
	return desk{office: o, key: t.Key}, nil
}

// set makes calls with a key fail, or answers them for nil.
func (o *office) set(key string, f *upstream.Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fails == nil {
		o.fails = map[string]*upstream.Failure{}
	}
	o.fails[key] = f
}

// heard returns the calls since the last time.
func (o *office) heard() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	calls := strings.Join(o.calls, " ")
	o.calls = nil
	return calls
}

// asked records a call and returns its result.
func (o *office) asked(key, what string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, strings.Split(key, "-")[1]+what)
	if f := o.fails[key]; f != nil {
		copied := *f
		return &copied
	}
	return nil
}

// desk is the office as one key has it.
type desk struct {
	maker
	office *office
	key    string
}

func (d desk) Chat(_ context.Context, c chatcall.Call) (*chatcall.Response, error) {
	what := ""
	if strings.Contains(string(c.Body.Bytes()), "ping") {
		what = ":probe"
	}
	if err := d.office.asked(d.key, what); err != nil {
		return nil, err
	}
	return &chatcall.Response{ContentType: "application/json",
		Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"hi"}}]}`))}, nil
}

func (d desk) CountTokens(context.Context, chatcall.Call) (int64, error) {
	return 7, d.office.asked(d.key, ":count")
}

// job returns the result of a job's call.
func (d desk) job(what string) error {
	if err := d.office.asked(d.key, what); err != nil {
		f := (*upstream.Failure)(nil)
		errors.As(err, &f)
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return nil
}

func (d desk) Submit(context.Context, jobcall.Task) (*jobcall.TaskStatus, error) {
	return &jobcall.TaskStatus{Ticket: "t"}, d.job(":submit")
}

func (d desk) Poll(context.Context, jobcall.Task, string) (*jobcall.TaskStatus, error) {
	return &jobcall.TaskStatus{}, d.job(":poll")
}

// keyed returns a catalog with a line and some of the keys NEW and OLD, present on the node.
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

// states are those of the line's keys.
func states(l *line.Lines) string {
	var words []string
	for _, k := range l.Statuses()[0].Keys {
		words = append(words, k.State)
	}
	return strings.Join(words, " ")
}

// rotating plays with a line of two keys, the new one first, on a fake clock.
func rotating(t *testing.T, play func(t *testing.T, o *office, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := keyed(1, "NEW", "OLD")
		var o office
		var log bytes.Buffer
		l := line.New(line.Options{Open: o.open, Current: func() *catalog.Snapshot { return s }, Log: slog.New(slog.NewTextHandler(&log, nil))})
		stop := keepUp(t, l)
		play(t, &o, l, s, &log)
		stop()
		for _, secret := range []string{newKey, oldKey} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has a key: %s", log.String())
			}
		}
	})
}

// TestARefusedKeyMovesOn checks that a refused key costs one request a call and no request its
// answer. Later requests use the other key at once, and the operator gets one alert. A probe finds
// the key accepted again.
func TestARefusedKeyMovesOn(t *testing.T) {
	t.Parallel()
	rotating(t, func(t *testing.T, o *office, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer) {
		good := func(want string) {
			t.Helper()
			attempts, err := ask(l, request(s))
			synctest.Wait() // for the log too
			if got := o.heard(); err != nil || got != want || len(attempts) != len(strings.Fields(want)) {
				t.Errorf("asked with %q in %+v, %v; want %q", got, attempts, err, want)
			}
		}
		good("new")
		if got := states(l); got != "in_use ready" {
			t.Errorf("the keys are %s", got)
		}
		o.set(newKey, said(401, `{"error":{"message":"Incorrect API key provided: `+newKey+`","code":"invalid_api_key"}}`))
		good("new old")
		good("old")
		good("old")
		if got, state := states(l), l.Statuses()[0]; got != "refused in_use" || state.State != "in_service" || state.Keys[0].Since == 0 ||
			state.Keys[0].Hint != "…NEWW" || strings.Contains(fmt.Sprintf("%+v", state), newKey) {
			t.Errorf("the line is %+v", state)
		}
		if n := strings.Count(log.String(), "a key is refused"); n != 1 || !strings.Contains(log.String(), "key 1 (…NEWW), ${NEW}") {
			t.Errorf("told %d times: %s", n, log.String())
		}
		time.Sleep(5*time.Minute + time.Second)
		if got := o.heard(); got != "new:probe" {
			t.Errorf("probed with %s", got)
		}
		good("old")
		o.set(newKey, nil)
		time.Sleep(5 * time.Minute) // the second wait is twice as long
		if got := o.heard(); got != "" {
			t.Errorf("probed with %s", got)
		}
		time.Sleep(5*time.Minute + time.Second)
		if got := o.heard(); got != "new:probe" {
			t.Errorf("probed with %s", got)
		}
		good("new")
		if n := strings.Count(log.String(), "accepted again"); n != 1 || states(l) != "in_use ready" {
			t.Errorf("told %d times; the keys are %s", n, states(l))
		}
	})
}

// TestACountGoesOnWithTheNextKey checks that a count uses the next key after a refused one, and
// that later requests use it too. If all keys are refused, the count is unknown and the line stays
// in service.
func TestACountGoesOnWithTheNextKey(t *testing.T) {
	t.Parallel()
	rotating(t, func(t *testing.T, o *office, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		count := func() (int64, bool) {
			n, known, err := l.Count(t.Context(), request(s), func(*line.Candidate) (chatcall.Call, error) { return chatcall.Call{}, nil })
			if err != nil {
				t.Error(err)
			}
			return n, known
		}
		o.set(newKey, noKey())
		if n, known := count(); n != 7 || !known || o.heard() != "new:count old:count" || states(l) != "refused in_use" {
			t.Errorf("%d, %t; the keys are %s", n, known, states(l))
		}
		if n, known := count(); n != 7 || !known || o.heard() != "old:count" {
			t.Errorf("%d, %t", n, known)
		}
		o.set(oldKey, noKey())
		if _, known := count(); known || o.heard() != "old:count" || l.Statuses()[0].State != "in_service" {
			t.Errorf("%t; the line is %+v", known, l.Statuses()[0])
		}
	})
}

// TestALineIsOutWithoutAnyKey checks that a line is out only if all keys are refused, and that a
// remaining key brings the line back.
func TestALineIsOutWithoutAnyKey(t *testing.T) {
	t.Parallel()
	rotating(t, func(t *testing.T, o *office, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		o.set(newKey, noKey())
		o.set(oldKey, noKey())
		if _, err := ask(l, request(s)); fault.Of(err).Code != fault.UpstreamUnavailable || o.heard() != "new old" {
			t.Errorf("%v", err)
		}
		if got := l.Statuses()[0]; got.State != "credentials_out" || states(l) != "refused refused" {
			t.Errorf("the line is %+v", got)
		}
		if attempts, _ := ask(l, request(s)); skipped(attempts) != "a:credentials_out" || o.heard() != "" {
			t.Errorf("%+v", attempts)
		}
		o.set(oldKey, nil)
		time.Sleep(5*time.Minute + time.Second)
		o.heard()
		if _, err := ask(l, request(s)); err != nil || o.heard() != "old" || states(l) != "refused in_use" {
			t.Errorf("%v, the keys are %s", err, states(l))
		}
	})
}

// TestWhatARequestBringsAboutTakesNoKey checks that an unproven status counts against a key only if
// the next key answers the same request, and against the line only if a probe meets it too.
func TestWhatARequestBringsAboutTakesNoKey(t *testing.T) {
	t.Parallel()
	rotating(t, func(t *testing.T, o *office, l *line.Lines, s *catalog.Snapshot, _ *bytes.Buffer) {
		hostile := func() {
			_, err := l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { return upstream.Classify(403, "", nil, nil) })
			if fault.Of(err).Code != fault.UpstreamUnavailable {
				t.Errorf("%v", err)
			}
			synctest.Wait()
		}
		hostile()
		if got := l.Statuses()[0]; got.State != "in_service" || states(l) != "in_use ready" || o.heard() != "new:probe" {
			t.Errorf("the line is %+v", got)
		}
		o.set(newKey, upstream.Classify(403, "", nil, nil))
		if _, err := ask(l, request(s)); err != nil || o.heard() != "new old" || states(l) != "refused in_use" {
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
	var o office
	before, after := keyed(1, "OLD"), keyed(2, "NEW")
	l := line.New(line.Options{Open: o.open})
	for _, s := range []*catalog.Snapshot{before, after} {
		if _, err := ask(l, request(s)); err != nil {
			t.Fatal(err)
		}
	}
	o.set(oldKey, noKey())
	o.heard()
	if _, err := ask(l, request(before)); err != nil || o.heard() != "old new" {
		t.Errorf("a request of the older catalog: %v", err)
	}
	if _, err := ask(l, request(after)); err != nil || o.heard() != "new" {
		t.Errorf("a request of the newer catalog: %v", err)
	}
}

// TestJobsKeepTheirKey checks that a job is polled with the key that submitted it, if the key is
// accepted, and with the line's present key afterwards.
func TestJobsKeepTheirKey(t *testing.T) {
	t.Parallel()
	var o office
	one, both, other := keyed(1, "OLD"), keyed(2, "NEW", "OLD"), keyed(3, "NEW")
	l := line.New(line.Options{Open: o.open})
	job := func(s *catalog.Snapshot) *line.Candidate { return l.CandidateFor(s, "a", "swift") }
	made, err := job(one).Generator.Submit(t.Context(), jobcall.Task{})
	if err != nil || made.KeyMark == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	polled := func(s *catalog.Snapshot, mark, want string) {
		t.Helper()
		o.heard()
		_, err := job(s).Generator.Poll(t.Context(), jobcall.Task{KeyMark: mark}, "t")
		if got := o.heard(); err != nil || got != want {
			t.Errorf("polled with %q, %v; want %q", got, err, want)
		}
	}
	polled(both, made.KeyMark, "old:poll")
	polled(both, "", "new:poll")
	polled(other, made.KeyMark, "new:poll") // the old one is on the list no more
	o.set(oldKey, noKey())
	polled(one, made.KeyMark, "old:poll new:poll") // on its own catalog
	polled(both, made.KeyMark, "new:poll")
	if made, err := job(both).Generator.Submit(t.Context(), jobcall.Task{}); err != nil || made.KeyMark == "" {
		t.Errorf("submitted: %+v, %v", made, err)
	}
}
