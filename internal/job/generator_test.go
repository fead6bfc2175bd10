package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"sync"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// generator is a line's adapter for tests. A call with a nil function succeeds.
type generator struct {
	chatcall.NoChat
	blocks bool
	submit func(n int, w jobcall.Task) (*jobcall.TaskStatus, error)
	poll   func(n int, ticket string) (*jobcall.TaskStatus, error)
	fetch  func(n int, r jobcall.Result) (*jobcall.Download, error)
	find   func(w jobcall.Task) (string, error)
	// before is called at the beginning of the steps "submit", "poll" and "fetch" and may block. An
	// error of before acts like a broken connection.
	before func(ctx context.Context, step string) error

	mu                     sync.Mutex
	submitted              []jobcall.Task
	polls, fetches, atOnce int
	maxAtOnce              int // the highest number of concurrent submissions
	cancelled              []string
}

func (m *generator) ParamRule(jobcall.Task) jobcall.ParamRule {
	return jobcall.AllParamsExcept().Roles("last_frame")
}

func (m *generator) Blocks(jobcall.Task) bool { return m.blocks }

func (m *generator) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	m.mu.Lock()
	m.submitted = append(m.submitted, task)
	n := len(m.submitted)
	m.atOnce++
	m.maxAtOnce = max(m.maxAtOnce, m.atOnce)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.atOnce--
		m.mu.Unlock()
	}()
	if err := m.callBefore(ctx, "submit"); err != nil {
		return nil, upstream.LostAnswer(ctx, err)
	}
	if m.submit != nil {
		status, err := m.submit(n, task)
		if status != nil || err != nil {
			return status, err
		}
	}
	if m.blocks {
		return &jobcall.TaskStatus{Done: true, Results: pictures(task.Count)}, nil
	}
	return &jobcall.TaskStatus{Ticket: fmt.Sprintf("ticket-%d", n)}, nil
}

func (m *generator) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	m.mu.Lock()
	m.polls++
	n := m.polls
	m.mu.Unlock()
	if err := m.callBefore(ctx, "poll"); err != nil {
		return nil, later(err)
	}
	if m.poll != nil {
		status, err := m.poll(n, ticket)
		if status != nil || err != nil {
			return status, err
		}
	}
	var results []jobcall.Result
	for i := range task.Count {
		results = append(results, jobcall.Result{Ref: fmt.Sprintf("%s/%d", ticket, i)})
	}
	return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, nil
}

func (m *generator) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	m.mu.Lock()
	m.fetches++
	n := m.fetches
	m.mu.Unlock()
	if err := m.callBefore(ctx, "fetch"); err != nil {
		return nil, later(err)
	}
	if m.fetch != nil {
		file, err := m.fetch(n, r)
		if file != nil || err != nil {
			return file, err
		}
	}
	raw := picture()
	if task.Kind == upstream.KindVideo {
		raw = clip()
	}
	return &jobcall.Download{Body: io.NopCloser(bytes.NewReader(raw)), Size: int64(len(raw))}, nil
}

func (m *generator) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancelled = append(m.cancelled, ticket)
	return nil
}

func (m *generator) callBefore(ctx context.Context, step string) error {
	if m.before == nil {
		return nil
	}
	return m.before(ctx, step)
}

// later returns the failure of an unanswered poll or download.
func later(err error) *upstream.JobFailure {
	return upstream.FailJob(upstream.Fail(fault.UpstreamConnectionError, err), fault.UpstreamError, upstream.NextPoll)
}

// block blocks one step until its context ends, and signals reached.
func block(blocked string, reached chan<- struct{}) func(context.Context, string) error {
	return func(ctx context.Context, step string) error {
		if step != blocked {
			return nil
		}
		select {
		case reached <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// gate lets one call of a step pass for each value in free.
func gate(gated string, free <-chan struct{}) func(context.Context, string) error {
	return func(ctx context.Context, step string) error {
		if step != gated {
			return nil
		}
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finder is a generator whose provider can find lost submissions.
type finder struct{ *generator }

func (f finder) Find(ctx context.Context, task jobcall.Task) (string, error) { return f.find(task) }

// count returns the number of submissions.
func (m *generator) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.submitted)
}

func (m *generator) checkSubmissions(t testing.TB, want int) {
	t.Helper()
	if got := m.count(); got != want {
		t.Errorf("the line got %d submissions, want %d", got, want)
	}
}

// picture returns a small PNG.
func picture() []byte {
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// clip returns the beginning of an MP4.
func clip() []byte {
	return append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"), bytes.Repeat([]byte{0}, 64)...)
}

func pictures(n int) []jobcall.Result {
	var results []jobcall.Result
	for range n {
		results = append(results, jobcall.Result{Data: picture(), Type: "image/png"})
	}
	return results
}

func failure(job fault.Code, next upstream.Next) *upstream.JobFailure {
	return upstream.FailJob(upstream.Fail(fault.UpstreamUnavailable, errors.New("scripted")), job, next)
}

// lostAnswer is the failure of a submission with a lost answer.
func lostAnswer(next upstream.Next) *upstream.JobFailure {
	t := failure(fault.UpstreamError, next)
	t.Lost = true
	return t
}

// failedOn returns the stored trace of a job that failed on a line.
func failedOn(line string) string {
	var t row.Trace
	t.Begin(line, 0)
	t.End(failure(fault.UpstreamError, upstream.NextLine), 1)
	return row.Text(t)
}
