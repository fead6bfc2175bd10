// Package fakestudio owns providers of images and video for tests: real HTTP
// servers on the loopback that speak each provider's own protocol, do real work
// (pictures and clips that can be opened) and misbehave where the test says so:
// they refuse, lose answers after they have accepted, render for as long as the
// test wants, fail, and serve results badly.
//
// Invariants:
//   - Every submission is recorded before it is answered, whether it was
//     accepted or not.
//   - Behaviours meet submissions in the order in which these arrived; without
//     one a submission is accepted and done at the second poll.
//   - A request that the protocol does not know fails the test.
//   - When the test ends nothing of it runs any more.
package fakestudio

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Behaviour is how one submission fares. The zero value is a good one.
type Behaviour struct {
	// Status and Body answer the submission in place of acceptance, with Header
	// beside; Status 0: it is accepted.
	Status int
	Body   string
	Header http.Header
	// LoseAnswer resets the connection after the submission was accepted.
	LoseAnswer bool
	// Reset resets the connection before anything was accepted.
	Reset bool
	// Polls is how many polls say that the work goes on, before it ends; for
	// providers that answer at once it does nothing. 0 stands for 1, but for
	// providers that want to be left alone for seconds between polls.
	Polls int
	// Until keeps the work going until the channel is closed; for providers
	// that answer at once it keeps the answer back. nil: see Polls.
	Until <-chan struct{}
	// Failed is what the provider's protocol says of the work in place of a
	// result: the JSON of its error or status object, as the fake's own
	// documentation says. Empty: it succeeds.
	Failed string
	// Lost makes the provider forget the work: polls answer as for an unknown
	// id.
	Lost bool
	// PollStatus answers so many polls with this status first, 429 or 5xx.
	PollStatus, PollStatusTimes int
	// BadLinks is how many downloads of the result answer 403; CutLinks how
	// many break off in the middle. They count before good ones.
	BadLinks, CutLinks int
	// Images is how many images come; 0: as many as were asked for.
	Images int
	// Answer keeps back the answer to a submission, whether it was accepted or
	// not, and Links every download of its results, until the channel is closed
	// or the caller is gone. nil: they come at once.
	Answer, Links <-chan struct{}
}

// Submission is one that arrived.
type Submission struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	// Ticket is what the provider named it; empty if it was not accepted or is
	// answered at once.
	Ticket   string
	Accepted bool
}

// Studio is a fake provider. Each protocol embeds one; it is safe for concurrent
// use.
type Studio struct {
	t    testing.TB
	http *httptest.Server
	slow bool // the provider wants seconds between polls

	mu          sync.Mutex
	script      []Behaviour
	rule        func(body []byte) Behaviour // for submissions beyond the script; nil: good ones
	submissions []Submission
	works       map[string]*work
	cancelled   []string
	polls       int
}

// work is what the studio knows of an accepted submission.
type work struct {
	how    Behaviour
	polls  int
	images int
	bad    int
	cut    int
	body   []byte // of the submission
}

// open starts the server of a protocol. handle is given every request.
func (s *Studio) open(t testing.TB, handle http.HandlerFunc) {
	s.t, s.works = t, map[string]*work{}
	s.http = httptest.NewServer(handle)
	t.Cleanup(s.Close)
}

// Host is the server's address without a path: `http://127.0.0.1:PORT`.
func (s *Studio) Host() string { return s.http.URL }

// Close ends the server; a test's end does it too.
func (s *Studio) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Expect adds behaviours for the submissions to come.
func (s *Studio) Expect(how ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, how...)
}

// Always sets how submissions fare that no behaviour was added for, by what is
// in their bodies. The rule may be called from several goroutines, one at a time.
func (s *Studio) Always(rule func(body []byte) Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

// Submissions returns those that arrived so far.
func (s *Studio) Submissions() []Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Submission(nil), s.submissions...)
}

// Accepted counts the submissions that were accepted.
func (s *Studio) Accepted() int {
	n := 0
	for _, sub := range s.Submissions() {
		if sub.Accepted {
			n++
		}
	}
	return n
}

// Polls counts the questions about works.
func (s *Studio) Polls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// Polled counts the works that were asked about at least once.
func (s *Studio) Polled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, it := range s.works {
		if it.polls > 0 {
			n++
		}
	}
	return n
}

// Cancelled returns the tickets that were cancelled.
func (s *Studio) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.cancelled...)
}

// submit records a submission and returns its ticket and how it fares; w is
// answered already when ok is false. images is how many were asked for.
func (s *Studio) submit(w http.ResponseWriter, r *http.Request, body []byte, prefix string,
	images int) (ticket string, how Behaviour, ok bool) {
	s.mu.Lock()
	if len(s.script) > 0 {
		how, s.script = s.script[0], s.script[1:]
	} else if s.rule != nil {
		how = s.rule(body)
	}
	accepted := how.Status == 0 && !how.Reset
	if accepted {
		ticket = fmt.Sprintf("%s%06d", prefix, len(s.submissions)+1)
		if how.Images > 0 {
			images = how.Images
		}
		s.works[ticket] = &work{how: how, images: images, bad: how.BadLinks, cut: how.CutLinks, body: body}
	}
	s.submissions = append(s.submissions, Submission{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Ticket: ticket,
		Accepted: accepted})
	s.mu.Unlock()
	if !await(r, how.Answer) {
		return ticket, how, false
	}
	switch {
	case how.Reset || how.LoseAnswer:
		reset(w)
		return ticket, how, false
	case !accepted:
		for name, values := range how.Header {
			w.Header()[name] = values
		}
		kind := "application/json"
		if strings.HasPrefix(how.Body, "<") {
			kind = "text/html"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(how.Status)
		_, _ = w.Write([]byte(how.Body))
		return ticket, how, false
	}
	return ticket, how, true
}

// state is where a work stands at a poll.
type state int

// The states of a work.
const (
	unknown state = iota
	going
	failed
	done
	answered // by a PollStatus; w is answered already
)

// poll counts a question about a work and says where it stands.
func (s *Studio) poll(w http.ResponseWriter, ticket string) (state, *work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	it := s.works[ticket]
	if it == nil || it.how.Lost {
		return unknown, nil
	}
	if it.how.PollStatusTimes > 0 {
		it.how.PollStatusTimes--
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(it.how.PollStatus)
		_, _ = w.Write([]byte(`{"error":{"message":"not now"}}`))
		return answered, it
	}
	it.polls++
	least := 1
	if s.slow {
		least = 0
	}
	if it.how.Until != nil {
		select {
		case <-it.how.Until:
		default:
			return going, it
		}
	} else if it.polls <= max(it.how.Polls, least) {
		return going, it
	}
	if it.how.Failed != "" {
		return failed, it
	}
	return done, it
}

// cancel notes that a work was cancelled.
func (s *Studio) cancel(ticket string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = append(s.cancelled, ticket)
}

// serve serves a result's bytes, well or badly as its work's behaviour says.
func (s *Studio) serve(w http.ResponseWriter, r *http.Request, ticket, contentType string, file []byte) {
	s.mu.Lock()
	it := s.works[ticket]
	bad, cut := false, false
	if it != nil && it.bad > 0 {
		it.bad--
		bad = true
	} else if it != nil && it.cut > 0 {
		it.cut--
		cut = true
	}
	s.mu.Unlock()
	if it != nil && !await(r, it.how.Links) {
		return
	}
	switch {
	case it == nil:
		http.NotFound(w, r)
	case bad:
		http.Error(w, "expired", http.StatusForbidden)
	case cut:
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		_, _ = w.Write(file[:len(file)/2])
		_ = http.NewResponseController(w).Flush()
		reset(w)
	default:
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		_, _ = w.Write(file)
	}
}

// await waits for a channel; false: the caller is gone. nil is no wait.
func await(r *http.Request, until <-chan struct{}) bool {
	if until == nil {
		return true
	}
	select {
	case <-until:
		return true
	case <-r.Context().Done():
		return false
	}
}

// strange fails the test for a request that the protocol does not know.
func (s *Studio) strange(w http.ResponseWriter, r *http.Request) {
	s.t.Errorf("fake studio: the protocol has no %s %s", r.Method, r.URL)
	http.NotFound(w, r)
}

// reset ends the connection without an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
