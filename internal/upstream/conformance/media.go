package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

// Studio is a fake provider of images and video: a protocol of fakestudio.
type Studio interface {
	// URL is the base address for a line.
	URL() string
	// Expect adds behaviours for the submissions to come.
	Expect(how ...fakestudio.Behaviour)
	// Submissions returns the submissions received so far.
	Submissions() []fakestudio.Submission
	// Cancelled returns the cancelled tickets.
	Cancelled() []string
	// Close ends the server.
	Close()
}

// Making is a provider of images and video.
type Making struct {
	// Provider is its name in the catalog.
	Provider string
	// Start starts the provider's fake, which accepts the tasks below.
	Start func(t testing.TB) Studio
	// Tasks are tasks of a job by a name for people: at least one per kind made by the provider,
	// and more if a kind has several kinds of calls.
	Tasks map[string]jobcall.Task
	// Ticket returns a valid ticket not issued by the provider.
	Ticket func(w jobcall.Task) string
	// Params pass, and have the number 41417 somewhere, or the marker.
	Params string
	// Marker is the part of Params expected at the provider; 41417 by default.
	Marker string
	// Plays are the options to simulate each trouble, for a provider without HTTP. If nil, the fake
	// simulates the troubles.
	Plays map[Trouble]map[string]any
}

// Media runs the cases of images and video for each task.
func Media(t *testing.T, p Making) {
	for _, kind := range infoOf(t, p.Provider).Kinds {
		has := func(w jobcall.Task) bool { return w.Kind == kind }
		if kind != "chat" && !slices.ContainsFunc(slices.Collect(values(p.Tasks)), has) {
			t.Errorf("%s makes %ss, and no task of that kind is tried", p.Provider, kind)
		}
	}
	t.Run("a task is done", p.done)
	t.Run("submissions that fail", p.refused)
	t.Run("polls that fail", p.polls)
	t.Run("downloads that fail", p.downloads)
	t.Run("cancelling", p.cancels)
	t.Run("a deadline and a caller who leaves", p.ends)
	t.Run("params", p.params)
	t.Run("what is not sent", p.unsent)
	t.Run("the vocabulary", p.vocabulary)
	if p.Plays == nil {
		t.Run("the credential stays on the own host", p.credential)
		t.Run("strange tickets", p.tickets)
		t.Run("an answer without a name", p.nameless)
		t.Run("malformed answers", p.malformed)
		t.Run("answers without end", p.endless)
		t.Run("nobody there", p.nobody)
	}
}

func values(tasks map[string]jobcall.Task) func(yield func(jobcall.Task) bool) {
	return func(yield func(jobcall.Task) bool) {
		for _, w := range tasks {
			if !yield(w) {
				return
			}
		}
	}
}

// each runs a case for each task.
func (p Making) each(t *testing.T, run func(t *testing.T, w jobcall.Task)) {
	for name, w := range p.Tasks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if w.Reading == nil {
				w.Reading = task.Freely
			}
			w.Key = "sub_1"
			run(t, w)
		})
	}
}

// meeting opens a line with a trouble at the next task. Studio is nil if the provider is without
// HTTP.
func (p Making) meeting(t *testing.T, trouble Trouble) (jobcall.Generator, Studio) {
	t.Helper()
	if p.Plays != nil {
		options, ok := p.Plays[trouble]
		if !ok && trouble != Well {
			t.Fatalf("%s plays no trouble %d", p.Provider, trouble)
		}
		return p.generator(t, "", options), nil
	}
	studio := p.Start(t)
	studio.Expect(behaviourOf(trouble))
	return p.generator(t, studio.URL(), nil), studio
}

// generator opens a line.
func (p Making) generator(t testing.TB, base string, options map[string]any) jobcall.Generator {
	t.Helper()
	g, ok := open(t, p.Provider, base, options).(jobcall.Generator)
	if !ok {
		t.Fatalf("%s makes nothing", p.Provider)
	}
	return g
}

// behaviourOf is a trouble as a behaviour of the fake studio.
func behaviourOf(trouble Trouble) fakestudio.Behaviour {
	failing := func(status int, message string) fakestudio.Behaviour {
		return fakestudio.Behaviour{Status: status, Body: `{"error":{"message":"` + message + `"}}`}
	}
	switch trouble {
	case Resets:
		return fakestudio.Behaviour{Reset: true}
	case LosesAnswer:
		return fakestudio.Behaviour{LoseAnswer: true}
	case Busy:
		return failing(429, "slow down")
	case Unauthorized:
		return failing(401, "bad key "+Secret)
	case Broken:
		return failing(500, "oops")
	case Page:
		return fakestudio.Behaviour{Status: 502, Body: "<html>bad gateway</html>"}
	case BreaksPolls:
		return fakestudio.Behaviour{PollStatus: 503, PollStatusTimes: 1}
	case Forgets:
		return fakestudio.Behaviour{Lost: true}
	case RefusesLink:
		return fakestudio.Behaviour{BadLinks: 1}
	case CutsLink:
		return fakestudio.Behaviour{CutLinks: 1}
	}
	return fakestudio.Behaviour{}
}

// failedJob returns a generator's error as a failure, and fails the test if the error is not a
// valid failure.
func failedJob(t testing.TB, what string, err error) *upstream.JobFailure {
	t.Helper()
	var f *upstream.JobFailure
	if !errors.As(err, &f) || f.Failure == nil {
		t.Fatalf("%s: error %v (%T), want a *upstream.JobFailure", what, err, err)
	}
	sees(t, what, f.Error(), f.Told(), f.Message, f.Param)
	if f.Passed != nil {
		sees(t, what, f.Passed.Error(), string(f.Passed.Body()))
	}
	if fault.LookupJob(f.Job).Code != f.Job {
		t.Errorf("%s: a failed job cannot have the code %q", what, f.Job)
	}
	if f.Next < upstream.NextPoll || f.Next > upstream.NextNone || f.Cause == nil || len(f.Error()) > maxFailureText {
		t.Errorf("%s: %+v", what, f)
	}
	return f
}

// submitted submits a task and fails the test after an error.
func submitted(t testing.TB, g jobcall.Generator, w jobcall.Task) *jobcall.TaskStatus {
	t.Helper()
	p, err := jobcall.Submit(t.Context(), g, w)
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, g, w, p)
	return p
}

// accepted fails the test if the status of a submission is inconsistent.
func accepted(t testing.TB, g jobcall.Generator, w jobcall.Task, p *jobcall.TaskStatus) {
	t.Helper()
	if blocks := g.Blocks(w); p.Done != blocks || blocks == (p.Ticket != "") || p.Done != (len(p.Results) > 0) ||
		len(p.Results) > w.Count || p.Wait < 0 {
		t.Errorf("blocks %t, and the answer is %+v", blocks, p)
	}
}

// done tests that any process can continue with only the ticket, polls change nothing, and the
// results are the requested results, each downloadable.
func (p Making) done(t *testing.T) {
	p.each(t, func(t *testing.T, w jobcall.Task) {
		g, studio := p.meeting(t, Well)
		made := submitted(t, g, w)
		address := ""
		if studio != nil {
			address = studio.URL()
		}
		g = p.generator(t, address, nil)
		made = polled(t, g, w, made)
		if len(made.Results) != w.Count {
			t.Errorf("%d results, want %d", len(made.Results), w.Count)
		}
		for _, r := range made.Results {
			data, kind, err := fetched(t, g, w, r)
			if err != nil || len(data) == 0 || !strings.HasPrefix(kind, w.Kind+"/") {
				t.Errorf("%d bytes of %q: %v", len(data), kind, err)
			}
		}
	})
}

// polled polls an accepted task until it is done.
func polled(t testing.TB, g jobcall.Generator, w jobcall.Task, made *jobcall.TaskStatus) *jobcall.TaskStatus {
	t.Helper()
	for range 20 {
		if made.Done {
			return made
		}
		next, err := g.Poll(t.Context(), w, made.Ticket)
		if err != nil {
			t.Fatal(err)
		}
		if next.Ticket != made.Ticket || next.Done != (len(next.Results) > 0) || len(next.Results) > w.Count {
			t.Fatalf("%+v became %+v", made, next)
		}
		made = next
	}
	t.Fatal("the task does not end")
	return nil
}

// fetched reads a result whole.
func fetched(t testing.TB, g jobcall.Generator, w jobcall.Task, r jobcall.Result) (data []byte, kind string, err error) {
	t.Helper()
	file, err := g.Fetch(t.Context(), w, r)
	if err != nil {
		if f := failedJob(t, "fetch", err); f.Next != upstream.NextPoll {
			t.Errorf("a download that failed says more than that: %+v", f)
		}
		return nil, "", err
	}
	defer file.Body.Close()
	data, err = io.ReadAll(file.Body)
	if err == nil && file.Size >= 0 && file.Size != int64(len(data)) {
		t.Errorf("%d bytes, %d were announced", len(data), file.Size)
	}
	return data, file.Type, err
}

// refused tests that a status of a submission has the same meaning everywhere, a lost response sets
// Lost, and nothing is submitted twice.
func (p Making) refused(t *testing.T) {
	for name, tt := range map[string]struct {
		trouble Trouble
		health  upstream.Health
		next    upstream.Next
		lost    bool
	}{
		"busy":           {Busy, upstream.HealthCool, upstream.NextLater, false},
		"unauthorized":   {Unauthorized, upstream.HealthCredential, upstream.NextLine, false},
		"broken":         {Broken, upstream.HealthFail, upstream.NextLine, false},
		"page":           {Page, upstream.HealthFail, upstream.NextLine, false},
		"reset":          {Resets, upstream.HealthFail, upstream.NextLine, true},
		"answer is lost": {LosesAnswer, upstream.HealthFail, upstream.NextLine, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.each(t, func(t *testing.T, w jobcall.Task) {
				w.Count = 1
				g, studio := p.meeting(t, tt.trouble)
				_, err := jobcall.Submit(t.Context(), g, w)
				f := failedJob(t, name, err)
				if f.Job != fault.UpstreamError || f.Health != tt.health || f.Next != tt.next || f.Lost != tt.lost {
					t.Errorf("%+v, health %s: %v", f, f.Health, f)
				}
				if studio != nil && len(studio.Submissions()) != 1 {
					t.Errorf("%d submissions", len(studio.Submissions()))
				}
			})
		})
	}
}

// ticketed runs a case for the polled tasks.
func (p Making) ticketed(t *testing.T, run func(t *testing.T, w jobcall.Task)) {
	p.each(t, func(t *testing.T, w jobcall.Task) {
		if g := p.generator(t, "http://127.0.0.1:9", nil); !g.Blocks(w) {
			run(t, w)
		}
	})
}

// vanished returns the code of a task no longer known to the provider.
func vanished(kind string) fault.Code {
	if kind == upstream.KindVideo {
		return fault.UpstreamUnstable
	}
	return fault.UpstreamError
}

// polls tests that a failed poll says nothing about the task, except if the provider does not know
// the task. Count is 1, because of several images, each a task at the provider, the others would
// continue.
func (p Making) polls(t *testing.T) {
	p.ticketed(t, func(t *testing.T, w jobcall.Task) {
		w.Count = 1
		g, studio := p.meeting(t, BreaksPolls)
		made := submitted(t, g, w)
		_, err := g.Poll(t.Context(), w, made.Ticket)
		if f := failedJob(t, "not now", err); f.Next != upstream.NextPoll {
			t.Errorf("a poll that failed: %+v", f)
		}
		if studio != nil {
			polled(t, g, w, made)
		}
		g, studio = p.meeting(t, Forgets)
		made = submitted(t, g, w)
		_, err = g.Poll(t.Context(), w, made.Ticket)
		if f := failedJob(t, "forgotten", err); f.Job != vanished(w.Kind) || f.Next != upstream.NextLine {
			t.Errorf("a forgotten task: %+v", f)
		}
		if studio != nil {
			studio.Close()
			_, err = g.Poll(t.Context(), w, made.Ticket)
			if f := failedJob(t, "closed", err); f.Next != upstream.NextPoll || f.Health != upstream.HealthFail {
				t.Errorf("a provider that is gone: %+v", f)
			}
		}
	})
}

// downloads tests that after a failed download the same link may work, or another poll returns a
// new link.
func (p Making) downloads(t *testing.T) {
	for name, trouble := range map[string]Trouble{"refused": RefusesLink, "cut": CutsLink} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.each(t, func(t *testing.T, w jobcall.Task) {
				w.Count = 1
				g, studio := p.meeting(t, trouble)
				made := polled(t, g, w, submitted(t, g, w))
				if made.Results[0].Data != nil || studio == nil && g.Blocks(w) {
					return // its results have no links
				}
				if data, _, err := fetched(t, g, w, made.Results[0]); err == nil {
					t.Errorf("a bad link gave %d bytes", len(data))
				}
				if studio != nil {
					if data, _, err := fetched(t, g, w, made.Results[0]); err != nil || len(data) == 0 {
						t.Errorf("a good link: %d bytes, %v", len(data), err)
					}
				}
			})
		})
	}
}

// cancels tests that a failed cancellation is a failure, and that cancelling twice, or cancelling
// an unknown task, does no harm.
func (p Making) cancels(t *testing.T) {
	p.ticketed(t, func(t *testing.T, w jobcall.Task) {
		g, studio := p.meeting(t, Well)
		made := submitted(t, g, w)
		for _, ticket := range []string{made.Ticket, made.Ticket, p.Ticket(w), "", ".."} {
			if err := g.Cancel(t.Context(), w, ticket); err != nil {
				_ = failedJob(t, "cancel", err)
			}
		}
		if studio == nil {
			return
		}
		for _, ticket := range studio.Cancelled() {
			if !strings.Contains(made.Ticket, ticket) {
				t.Errorf("%q was cancelled, the task is %q", ticket, made.Ticket)
			}
		}
		studio.Close()
		if err := g.Cancel(t.Context(), w, made.Ticket); err != nil {
			_ = failedJob(t, "cancel", err)
		}
	})
}

// ends: an end of the context is an end of every call.
func (p Making) ends(t *testing.T) {
	for cause, code := range map[error]fault.Code{context.DeadlineExceeded: fault.UpstreamTimeout, context.Canceled: fault.ClientClosed} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			p.each(t, func(t *testing.T, w jobcall.Task) {
				g, _ := p.meeting(t, Well)
				made := submitted(t, g, w)
				over, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				_, err := jobcall.Submit(over, g, w)
				if f := failedJob(t, "submit", err); f.Code != code {
					t.Errorf("submit: %v", f)
				}
				if made.Ticket != "" {
					_, err = g.Poll(over, w, made.Ticket)
					if f := failedJob(t, "poll", err); f.Code != code || f.Next != upstream.NextPoll {
						t.Errorf("poll: %+v", f)
					}
				}
			})
		})
	}
	if p.Plays != nil {
		return
	}
	p.each(t, func(t *testing.T, w jobcall.Task) { // while the answer is waited for
		ctx, cancel := context.WithCancelCause(t.Context())
		base := saying(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice the disconnect
			cancel(context.DeadlineExceeded)
			<-r.Context().Done()
		})
		_, err := jobcall.Submit(ctx, p.generator(t, base, nil), w)
		if f := failedJob(t, "submit", err); f.Code != fault.UpstreamTimeout || !f.Lost {
			t.Errorf("submit: %+v", f)
		}
	})
}

// params tests that no param replaces a field of the gateway, in any kind of task, and that allowed
// params reach the provider.
func (p Making) params(t *testing.T) {
	p.each(t, func(t *testing.T, w jobcall.Task) {
		w.Count = 1
		g, studio := p.meeting(t, Well)
		refused := map[string]string{"a list": `[1]`, "null": `null`, "half": `{"seed":`}
		for _, name := range []string{"model", "prompt", "n", "size", "resolution", "duration", "ratio", "aspect_ratio", "stream",
			"image", "images", "reference_images", "references", "first_frame", "last_frame", "mask", "callback_url", "callBackUrl"} {
			refused[name] = `{"` + name + `":"x"}`
		}
		for name, params := range refused {
			with := w
			with.Params = json.RawMessage(params)
			_, err := jobcall.Submit(t.Context(), g, with)
			f := failedJob(t, name, err)
			if f.Health != upstream.HealthNone || f.Next != upstream.NextLine || f.Lost || f.Code != fault.UpstreamUnavailable {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if studio != nil && len(studio.Submissions()) != 0 {
			t.Fatalf("%d submissions with fields of the gateway's own", len(studio.Submissions()))
		}
		w.Params = json.RawMessage(p.Params)
		submitted(t, g, w)
		if studio != nil && !bytes.Contains(studio.Submissions()[0].Body, []byte(cmp.Or(p.Marker, "41417"))) {
			t.Errorf("%s did not arrive: %s", p.Params, studio.Submissions()[0].Body)
		}
	})
}

// unsent tests that an impossible task is not sent and does not affect the line's health.
func (p Making) unsent(t *testing.T) {
	p.each(t, func(t *testing.T, w jobcall.Task) {
		g, studio := p.meeting(t, Well)
		w.Kind = "sound"
		_, err := jobcall.Submit(t.Context(), g, w)
		if f := failedJob(t, "another kind", err); f.Health != upstream.HealthNone || f.Next != upstream.NextLine || f.Lost {
			t.Errorf("another kind: %+v", f)
		}
		if studio != nil && len(studio.Submissions()) != 0 {
			t.Errorf("%d submissions", len(studio.Submissions()))
		}
	})
}

// credential tests that no other host gets the credential, neither as the host of a result nor
// after a redirect.
func (p Making) credential(t *testing.T) {
	other := saying(t, func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			sees(t, "another host in "+name, values...)
		}
		sees(t, "another host", r.URL.String())
		_, _ = io.WriteString(w, "file")
	})
	own := saying(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusFound) })
	p.each(t, func(t *testing.T, w jobcall.Task) {
		g := p.generator(t, own, nil)
		for _, address := range []string{other + "/files/1", own + "/files/1"} {
			if data, _, err := fetched(t, g, w, jobcall.Result{Ref: address}); err != nil || string(data) != "file" {
				t.Errorf("%s: %q, %v", address, data, err)
			}
		}
	})
}

// tickets tests that a ticket not from the provider is not used in an address.
func (p Making) tickets(t *testing.T) {
	base := saying(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was asked for", r.Method, r.URL) })
	p.ticketed(t, func(t *testing.T, w jobcall.Task) {
		g := p.generator(t, base, nil)
		for _, ticket := range []string{"", ".", "..", "../models", "a/../b", "a?b", "a%2fb", "a b", "a\nb", strings.Repeat("a", 5000)} {
			_, err := g.Poll(t.Context(), w, ticket)
			if f := failedJob(t, ticket, err); f.Next == upstream.NextPoll {
				t.Errorf("%.20q would be asked about again", ticket)
			}
			if err := g.Cancel(t.Context(), w, ticket); err != nil {
				_ = failedJob(t, ticket, err)
			}
		}
	})
}

// malformed tests that every response leads to a failure or a valid status, without the credential.
// After a good response to a submission without a task ID the failure has Lost set, unless the
// response has an error.
func (p Making) malformed(t *testing.T) {
	for name, body := range malformed() {
		says := strings.Contains(body, "error") || strings.Contains(body, Secret)
		for _, status := range []int{200, 400, 401, 403, 404, 422, 429, 500, 503} {
			p.each(t, func(t *testing.T, w jobcall.Task) {
				g := p.generator(t, saying(t, document(status, body)), nil)
				if made, err := jobcall.Submit(t.Context(), g, w); err == nil {
					accepted(t, g, w, made)
				} else if f := failedJob(t, name, err); status == 200 && !says && !g.Blocks(w) && !f.Lost {
					t.Errorf("%s: it may have been accepted, and is not said to be lost: %+v", name, f)
				} else if status != 200 && f.Lost {
					t.Errorf("%s with %d: it was refused, and is said to be lost", name, status)
				}
				if g.Blocks(w) {
					return
				}
				if made, err := g.Poll(t.Context(), w, p.Ticket(w)); err != nil {
					_ = failedJob(t, name, err)
				} else if made.Ticket != p.Ticket(w) || made.Done != (len(made.Results) > 0) || len(made.Results) > w.Count {
					t.Errorf("%s with %d: %+v", name, status, made)
				}
				if err := g.Cancel(t.Context(), w, p.Ticket(w)); err != nil {
					_ = failedJob(t, name, err)
				}
			})
		}
	}
}

// endless tests that the adapter closes an endless response.
func (p Making) endless(t *testing.T) {
	p.each(t, func(t *testing.T, w jobcall.Task) {
		left := make(chan struct{}, 64)
		for _, status := range []int{200, 500} {
			g := p.generator(t, saying(t, endless(status, left)), nil)
			w.Count = 1
			_, err := jobcall.Submit(t.Context(), g, w)
			_ = failedJob(t, "submit", err)
			await(t, left)
			if g.Blocks(w) {
				continue
			}
			_, err = g.Poll(t.Context(), w, p.Ticket(w))
			if f := failedJob(t, "poll", err); f.Next != upstream.NextPoll {
				t.Errorf("poll: %+v", f)
			}
			await(t, left)
		}
	})
}

// nobody tests that Lost is not set if nothing was sent.
func (p Making) nobody(t *testing.T) {
	p.each(t, func(t *testing.T, w jobcall.Task) {
		studio := p.Start(t)
		base := studio.URL()
		studio.Close()
		_, err := jobcall.Submit(t.Context(), p.generator(t, base, nil), w)
		if f := failedJob(t, "nobody", err); f.Lost || f.Next != upstream.NextLine || f.Health != upstream.HealthFail {
			t.Errorf("%+v", f)
		}
	})
}
