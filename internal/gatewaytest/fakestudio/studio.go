// Package fakestudio owns fake providers of images and video for tests: HTTP servers on the loopback
// with the protocol of each provider and real pictures and clips. A test can make a fake reject
// submissions, lose answers, delay or fail tasks, and break downloads.
//
// Invariants:
//   - Every submission is recorded before its answer, accepted or not.
//   - The behaviours of Expect apply to the submissions in the order of their arrival. Without a
//     behaviour, a submission is accepted, and its task is done at the second poll.
//   - A request that the protocol does not have fails the test.
//   - The servers stop at the end of the test.
package fakestudio

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Behaviour decides the outcome of one submission. The zero value is a success.
type Behaviour struct {
	// If Status is not 0, the submission is rejected with Status, Header and Body.
	Status int
	Body   string
	Header http.Header
	// LoseAnswer accepts the submission and then resets the connection.
	LoseAnswer bool
	// Reset resets the connection without accepting the submission.
	Reset bool
	// Polls is the number of polls before the end of the task. Zero means one, or no poll for providers
	// that require seconds between polls.
	Polls int
	// Until keeps the task running until the channel is closed. If the provider answers with the
	// results, Until delays the answer. If nil, see Polls.
	Until <-chan struct{}
	// Failure describes the failure of the task in the format of the protocol, as each fake documents.
	// If empty, the task succeeds.
	Failure string
	// Lost makes the provider forget the task. Polls get the answer for an unknown id.
	Lost bool
	// The first PollStatusTimes polls answer with PollStatus, 429 or 5xx.
	PollStatus, PollStatusTimes int
	// The first BadLinks downloads of a result get a 403. The next CutLinks downloads break off in
	// the middle.
	BadLinks, CutLinks int
	// Images is the number of images. Zero means the number in the request.
	Images int
	// Answer delays the answer to a submission, accepted or not. Links delays every download of the
	// results. The delay ends when the channel is closed or the client disconnects. If nil, there is no
	// delay.
	Answer, Links <-chan struct{}
}

// Refusal returns a behaviour that rejects a submission.
func Refusal(status int, body string) Behaviour { return Behaviour{Status: status, Body: body} }

// Failure returns a behaviour whose task fails. failed is Behaviour.Failure.
func Failure(failed string) Behaviour { return Behaviour{Failure: failed} }

// Submission is a request for images or a clip.
type Submission struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	// Ticket is the provider's id of the task. It is empty if the submission was rejected.
	Ticket   string
	Accepted bool
}

// Studio is the common part of all fakes. It is safe for concurrent use.
type Studio struct {
	t     testing.TB
	api   *httptest.Server
	files *httptest.Server // serves the results
	base  string           // the path of the API
	slow  bool             // the provider requires seconds between polls

	mu          sync.Mutex
	script      []Behaviour
	rule        func(body []byte) Behaviour // for submissions after the end of the script; may be nil
	submissions []Submission
	tasks       map[string]*task // by ticket
	cancelled   []string
	polls       int
}

// task is an accepted submission.
type task struct {
	Behaviour
	ticket string
	number int // of the submission, from 1
	body   []byte
	polls  int
	images int
}

// open starts the servers of a protocol. base is the path of the API. routes has a handler for each
// pattern of http.ServeMux, with paths relative to base. authorize reports whether a request has a
// credential. Otherwise it answers the request.
func (s *Studio) open(
	t testing.TB, base string, authorize func(http.ResponseWriter, *http.Request) bool, routes map[string]http.HandlerFunc,
) {
	t.Helper()
	s.t, s.base, s.tasks = t, base, map[string]*task{}
	mux := http.NewServeMux()
	for pattern, handler := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+base+path, func(w http.ResponseWriter, r *http.Request) {
			if authorize(w, r) {
				handler(w, r)
			} else if r.Method == http.MethodPost {
				s.record(r, nil)
			}
		})
	}
	mux.HandleFunc("/", s.unknownRoute)
	s.api = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	listener, err := net.Listen("tcp", FilesHost+":0")
	if err != nil {
		t.Fatal(err)
	}
	s.files = httptest.NewUnstartedServer(http.HandlerFunc(s.file))
	_ = s.files.Listener.Close()
	s.files.Listener = listener
	s.files.Start()
	t.Cleanup(func() { closeServer(s.files) })
}

// Host returns the address of the API without a path: `http://127.0.0.1:PORT`.
func (s *Studio) Host() string { return s.api.URL }

// URL returns the base_url of a line.
func (s *Studio) URL() string { return s.Host() + s.base }

// Close stops the API before the end of the test.
func (s *Studio) Close() { closeServer(s.api) }

func closeServer(s *httptest.Server) {
	s.CloseClientConnections()
	s.Close()
}

// Expect adds behaviours for the next submissions.
func (s *Studio) Expect(behaviours ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, behaviours...)
}

// Always sets the behaviour of submissions without a behaviour from Expect. The calls of rule do not
// overlap, but may come from several goroutines.
func (s *Studio) Always(rule func(body []byte) Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

// Submissions returns the submissions so far.
func (s *Studio) Submissions() []Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.submissions)
}

// AcceptedCount returns the number of accepted submissions.
func (s *Studio) AcceptedCount() int {
	n := 0
	for _, sub := range s.Submissions() {
		if sub.Accepted {
			n++
		}
	}
	return n
}

// Polls returns the number of polls.
func (s *Studio) Polls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// PolledTasks returns the number of tasks with at least one poll.
func (s *Studio) PolledTasks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range s.tasks {
		if t.polls > 0 {
			n++
		}
	}
	return n
}

// CancelledTickets returns the tickets of the cancelled tasks.
func (s *Studio) CancelledTickets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cancelled)
}

// submit records a submission and returns its task. images is the number of images in the request. If
// ok is false, submit has answered the request.
func (s *Studio) submit(w http.ResponseWriter, r *http.Request, body []byte, prefix string, images int) (t *task, ok bool) {
	s.mu.Lock()
	var b Behaviour
	if len(s.script) > 0 {
		b, s.script = s.script[0], s.script[1:]
	} else if s.rule != nil {
		b = s.rule(body)
	}
	if b.Images > 0 {
		images = b.Images
	}
	number := len(s.submissions) + 1
	t = &task{Behaviour: b, ticket: fmt.Sprintf("%s%06d", prefix, number), number: number, body: body, images: images}
	sub := Submission{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	if b.Status == 0 && !b.Reset {
		sub.Ticket, sub.Accepted = t.ticket, true
		s.tasks[t.ticket] = t
	}
	s.submissions = append(s.submissions, sub)
	s.mu.Unlock()
	if !await(r, b.Answer) {
		return nil, false
	}
	switch {
	case b.Reset || b.LoseAnswer:
		reset(w)
		return nil, false
	case b.Status != 0:
		for name, values := range b.Header {
			w.Header()[name] = values
		}
		kind := "application/json"
		if strings.HasPrefix(b.Body, "<") {
			kind = "text/html"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(b.Status)
		_, _ = w.Write([]byte(b.Body))
		return nil, false
	}
	return t, true
}

// finish is like submit, for providers that answer with the results. It also waits for
// Behaviour.Until.
func (s *Studio) finish(w http.ResponseWriter, r *http.Request, body []byte, prefix string, images int) (t *task, ok bool) {
	t, ok = s.submit(w, r, body, prefix, images)
	return t, ok && await(r, t.Until)
}

// record records a submission that the protocol rejects. It uses up no behaviour.
func (s *Studio) record(r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submissions = append(s.submissions, Submission{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
}

// state is the state of a task at a poll.
type state int

// The states of a task.
const (
	unknown state = iota
	running
	failed
	done
	answered // poll has answered with Behaviour.PollStatus
)

// poll counts a poll and returns the state of the task.
func (s *Studio) poll(w http.ResponseWriter, ticket string) (state, *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	t := s.tasks[ticket]
	if t == nil || t.Lost {
		return unknown, nil
	}
	if t.PollStatusTimes > 0 {
		t.PollStatusTimes--
		answerJSON(w, t.PollStatus, object{"error": object{"message": "not now"}})
		return answered, t
	}
	t.polls++
	least := 1
	if s.slow {
		least = 0
	}
	if t.Until != nil {
		select {
		case <-t.Until:
		default:
			return running, t
		}
	} else if t.polls <= max(t.Polls, least) {
		return running, t
	}
	if t.Failure != "" {
		return failed, t
	}
	return done, t
}

// waits reports whether an accepted task has not begun. A task begins at the second poll.
func (s *Studio) waits(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.polls <= 1
}

// find returns a task, or nil if the ticket is unknown.
func (s *Studio) find(ticket string) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[ticket]
}

// remove deletes and returns a task, or nil if the ticket is unknown.
func (s *Studio) remove(ticket string) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[ticket]
	delete(s.tasks, ticket)
	return t
}

// cancel records the cancellation of a task.
func (s *Studio) cancel(ticket string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = append(s.cancelled, ticket)
}

// await waits until a channel is closed. It returns false if the client disconnects first. A nil
// channel does not wait.
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

// unknownRoute handles requests that the protocol does not have. It fails the test.
func (s *Studio) unknownRoute(w http.ResponseWriter, r *http.Request) {
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
