package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
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

// MediaProvider is a provider of images and video.
type MediaProvider struct {
	// Provider is the provider's name in the catalog.
	Provider string
	// Start starts a fake that accepts the tasks below. If nil, fakestudio has a fake for the
	// provider.
	Start func(t testing.TB) fakestudio.Fake
	// Tasks holds tasks of a job by a name for people: at least one for each kind of the provider,
	// and several if a kind has several kinds of calls.
	Tasks map[string]jobcall.Task
	// Ticket returns a valid ticket not issued by the provider.
	Ticket func(w jobcall.Task) string
	// Params are allowed params that contain the number 41417, or Marker.
	Params string
	// Marker is the part of Params expected at the provider; 41417 by default.
	Marker string
	// SimulatorOptions are the options to simulate each behaviour, for a provider without HTTP. If nil, the fake
	// simulates the behaviours.
	SimulatorOptions map[Behaviour]map[string]any
}

// Media runs the cases of images and video for each task.
func Media(t *testing.T, p MediaProvider) {
	for _, kind := range providerInfo(t, p.Provider).Kinds {
		has := func(task jobcall.Task) bool { return task.Kind == kind }
		if kind != "chat" && !slices.ContainsFunc(slices.Collect(maps.Values(p.Tasks)), has) {
			t.Errorf("%s makes %ss, but there is no task of that kind", p.Provider, kind)
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
	if p.SimulatorOptions == nil {
		t.Run("the credential stays on the own host", p.credential)
		t.Run("strange tickets", p.tickets)
		t.Run("polls without a status", p.failedPolls)
		t.Run("an answer without a name", p.missingID)
		t.Run("malformed answers", p.malformed)
		t.Run("answers without end", p.endless)
		t.Run("nobody there", p.noListener)
	}
}

// each runs a case for each task.
func (p MediaProvider) each(t *testing.T, run func(t *testing.T, job jobcall.Task)) {
	for name, job := range p.Tasks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if job.Reading == nil {
				job.Reading = task.Freely
			}
			job.Key = "sub_1"
			run(t, job)
		})
	}
}

// openFor opens a line with a behaviour at the next task. The returned studio is nil if the
// provider does not use HTTP.
func (p MediaProvider) openFor(t *testing.T, behaviour Behaviour) (jobcall.Generator, fakestudio.Fake) {
	t.Helper()
	if p.SimulatorOptions != nil {
		options, ok := p.SimulatorOptions[behaviour]
		if !ok && behaviour != Well {
			t.Fatalf("%s simulates no behaviour %d", p.Provider, behaviour)
		}
		return p.generator(t, "", options), nil
	}
	studio := p.start(t)
	studio.Expect(studioBehaviour(behaviour))
	return p.generator(t, studio.URL(), nil), studio
}

// start starts the fake.
func (p MediaProvider) start(t testing.TB) fakestudio.Fake {
	t.Helper()
	if p.Start != nil {
		return p.Start(t)
	}
	return fakestudio.ProviderOf(t, p.Provider).Open(t)
}

// generator opens a line.
func (p MediaProvider) generator(t testing.TB, base string, options map[string]any) jobcall.Generator {
	t.Helper()
	g, ok := open(t, p.Provider, base, options).(jobcall.Generator)
	if !ok {
		t.Fatalf("the adapter of %s is no generator", p.Provider)
	}
	return g
}

// studioBehaviour returns a behaviour as a behaviour of the fake studio.
func studioBehaviour(behaviour Behaviour) fakestudio.Behaviour {
	failing := func(status int, message string) fakestudio.Behaviour {
		return fakestudio.Refusal(status, `{"error":{"message":"`+message+`"}}`)
	}
	switch behaviour {
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
		return fakestudio.Refusal(502, "<html>bad gateway</html>")
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
	checkSecret(t, what, f.Error(), f.UserMessage(), f.Message, f.Param)
	if f.Rejection != nil {
		checkSecret(t, what, f.Rejection.Error(), string(f.Rejection.Body()))
	}
	if fault.LookupJob(f.Job).Code != f.Job {
		t.Errorf("%s: a failed job cannot have the code %q", what, f.Job)
	}
	if f.Next < upstream.NextPoll || f.Next > upstream.NextNone || f.Cause == nil || len(f.Error()) > maxFailureText {
		t.Errorf("%s: %+v", what, f)
	}
	return f
}

// submit submits a task and fails the test after an error.
func submit(t testing.TB, g jobcall.Generator, task jobcall.Task) *jobcall.TaskStatus {
	t.Helper()
	p, err := jobcall.Submit(t.Context(), g, task)
	if err != nil {
		t.Fatal(err)
	}
	checkAccepted(t, g, task, p)
	return p
}

// checkAccepted fails the test if the status of a submission is inconsistent.
func checkAccepted(t testing.TB, g jobcall.Generator, task jobcall.Task, p *jobcall.TaskStatus) {
	t.Helper()
	if blocks := g.Blocks(task); p.Done != blocks || blocks == (p.Ticket != "") || p.Done != (len(p.Results) > 0) ||
		len(p.Results) > task.Count || p.Wait < 0 {
		t.Errorf("blocks %t, and the answer is %+v", blocks, p)
	}
}

// done tests that any process can continue with only the ticket, that polls change nothing, and
// that the results are the requested ones, each downloadable.
func (p MediaProvider) done(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		g, studio := p.openFor(t, Well)
		status := submit(t, g, task)
		address := ""
		if studio != nil {
			address = studio.URL()
		}
		g = p.generator(t, address, nil)
		status = pollUntilDone(t, g, task, status)
		if len(status.Results) != task.Count {
			t.Errorf("%d results, want %d", len(status.Results), task.Count)
		}
		for _, r := range status.Results {
			data, kind, err := fetch(t, g, task, r)
			if err != nil || len(data) == 0 || kind != map[string]string{"image": "image/png", "video": "video/mp4"}[task.Kind] ||
				studio != nil && kind == "video/mp4" && !bytes.Equal(data, fakestudio.Clip()) {
				t.Errorf("%d bytes of %q: %v", len(data), kind, err)
			}
		}
	})
}

// pollUntilDone polls an accepted task until it is done.
func pollUntilDone(t testing.TB, g jobcall.Generator, task jobcall.Task, status *jobcall.TaskStatus) *jobcall.TaskStatus {
	t.Helper()
	if status.Done {
		return status
	}
	status, err := PollToEnd(t, g, task, status.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// checkPolled fails the test if the status after a poll is inconsistent.
func checkPolled(t testing.TB, task jobcall.Task, ticket string, status *jobcall.TaskStatus) {
	t.Helper()
	if status.Ticket != ticket || status.Done != (len(status.Results) > 0) || len(status.Results) > max(task.Count, 1) {
		t.Fatalf("after a poll of %q: %+v", ticket, status)
	}
}

// fetch reads a whole result.
func fetch(t testing.TB, g jobcall.Generator, task jobcall.Task, r jobcall.Result) (data []byte, kind string, err error) {
	t.Helper()
	file, err := g.Fetch(t.Context(), task, r)
	if err != nil {
		if f := failedJob(t, "fetch", err); f.Next != upstream.NextPoll {
			t.Errorf("a failed download does not have NextPoll: %+v", f)
		}
		return nil, "", err
	}
	defer file.Body.Close()
	data, err = io.ReadAll(file.Body)
	if err == nil && file.Size >= 0 && file.Size != int64(len(data)) {
		t.Errorf("%d bytes, want %d", len(data), file.Size)
	}
	return data, file.Type, err
}

// refused tests that a status of a submission has the same meaning everywhere, a lost response sets
// Lost, and nothing is submitted twice.
func (p MediaProvider) refused(t *testing.T) {
	for name, tt := range map[string]struct {
		behaviour Behaviour
		health    upstream.Health
		next      upstream.Next
		lost      bool
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
			p.each(t, func(t *testing.T, task jobcall.Task) {
				task.Count = 1
				g, studio := p.openFor(t, tt.behaviour)
				_, err := jobcall.Submit(t.Context(), g, task)
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

// downloads tests that after a failed download the same link may work, or another poll returns a
// new link.
func (p MediaProvider) downloads(t *testing.T) {
	for name, behaviour := range map[string]Behaviour{"refused": RefusesLink, "cut": CutsLink} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.each(t, func(t *testing.T, task jobcall.Task) {
				task.Count = 1
				g, studio := p.openFor(t, behaviour)
				status := pollUntilDone(t, g, task, submit(t, g, task))
				if status.Results[0].Data != nil || studio == nil && g.Blocks(task) {
					return // the provider's results have no links
				}
				if data, _, err := fetch(t, g, task, status.Results[0]); err == nil {
					t.Errorf("a bad link gave %d bytes", len(data))
				}
				if studio != nil {
					if data, _, err := fetch(t, g, task, status.Results[0]); err != nil || len(data) == 0 {
						t.Errorf("a good link: %d bytes, %v", len(data), err)
					}
				}
			})
		})
	}
}

// cancels tests that a failed cancellation is a failure, and that cancelling twice, or cancelling
// an unknown task, does no harm.
func (p MediaProvider) cancels(t *testing.T) {
	p.polledTasks(t, func(t *testing.T, task jobcall.Task) {
		g, studio := p.openFor(t, Well)
		status := submit(t, g, task)
		for _, ticket := range []string{status.Ticket, status.Ticket, p.Ticket(task), "", ".."} {
			if err := g.Cancel(t.Context(), task, ticket); err != nil {
				_ = failedJob(t, "cancel", err)
			}
		}
		if studio == nil {
			return
		}
		for _, ticket := range studio.CancelledTickets() {
			if !strings.Contains(status.Ticket, ticket) {
				t.Errorf("cancelled %q, want %q", ticket, status.Ticket)
			}
		}
		studio.Close()
		if err := g.Cancel(t.Context(), task, status.Ticket); err != nil {
			_ = failedJob(t, "cancel", err)
		}
	})
}

// ends tests that the end of the context ends every call.
func (p MediaProvider) ends(t *testing.T) {
	for cause, code := range map[error]fault.Code{context.DeadlineExceeded: fault.UpstreamTimeout, context.Canceled: fault.ClientClosed} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			p.each(t, func(t *testing.T, task jobcall.Task) {
				g, _ := p.openFor(t, Well)
				status := submit(t, g, task)
				over, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				_, err := jobcall.Submit(over, g, task)
				if f := failedJob(t, "submit", err); f.Code != code {
					t.Errorf("submit: %v", f)
				}
				if status.Ticket != "" {
					_, err = g.Poll(over, task, status.Ticket)
					if f := failedJob(t, "poll", err); f.Code != code || f.Next != upstream.NextPoll {
						t.Errorf("poll: %+v", f)
					}
				}
			})
		})
	}
	if p.SimulatorOptions != nil {
		return
	}
	p.each(t, func(t *testing.T, task jobcall.Task) { // while the caller waits for the response
		ctx, cancel := context.WithCancelCause(t.Context())
		base := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice the disconnect
			cancel(context.DeadlineExceeded)
			<-r.Context().Done()
		})
		_, err := jobcall.Submit(ctx, p.generator(t, base, nil), task)
		if f := failedJob(t, "submit", err); f.Code != fault.UpstreamTimeout || !f.Lost {
			t.Errorf("submit: %+v", f)
		}
	})
}

// params tests that no param replaces a field of the gateway, in any kind of task, and that allowed
// params reach the provider.
func (p MediaProvider) params(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		task.Count = 1
		g, studio := p.openFor(t, Well)
		refused := map[string]string{"a list": `[1]`, "null": `null`, "half": `{"seed":`}
		for _, name := range []string{"model", "prompt", "n", "size", "resolution", "duration", "ratio", "aspect_ratio", "stream",
			"image", "images", "reference_images", "references", "first_frame", "last_frame", "mask", "callback_url", "callBackUrl"} {
			refused[name] = `{"` + name + `":"x"}`
		}
		for name, params := range refused {
			with := task
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
		task.Params = json.RawMessage(p.Params)
		submit(t, g, task)
		if studio != nil && !bytes.Contains(studio.Submissions()[0].Body, []byte(cmp.Or(p.Marker, "41417"))) {
			t.Errorf("%s did not arrive: %s", p.Params, studio.Submissions()[0].Body)
		}
	})
}

// unsent tests that an impossible task is not sent and does not affect the line's health.
func (p MediaProvider) unsent(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		g, studio := p.openFor(t, Well)
		task.Kind = "sound"
		_, err := jobcall.Submit(t.Context(), g, task)
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
func (p MediaProvider) credential(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			checkSecret(t, "another host in "+name, values...)
		}
		checkSecret(t, "another host", r.URL.String())
		_, _ = io.WriteString(w, "file")
	})
	own := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusFound) })
	p.each(t, func(t *testing.T, task jobcall.Task) {
		g := p.generator(t, own, nil)
		for _, address := range []string{other + "/files/1", own + "/files/1"} {
			if data, _, err := fetch(t, g, task, jobcall.Result{Ref: address}); err != nil || string(data) != "file" {
				t.Errorf("%s: %q, %v", address, data, err)
			}
		}
	})
}

// tickets tests that a ticket not from the provider is not used in an address.
func (p MediaProvider) tickets(t *testing.T) {
	base := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request for %s %s", r.Method, r.URL) })
	p.polledTasks(t, func(t *testing.T, task jobcall.Task) {
		g := p.generator(t, base, nil)
		for _, ticket := range []string{"", ".", "..", "../models", "a/../b", "a?b", "a%2fb", "a b", "a\nb",
			"a/operations/", strings.Repeat("a", 5000)} {
			_, err := g.Poll(t.Context(), task, ticket)
			if f := failedJob(t, ticket, err); f.Next == upstream.NextPoll {
				t.Errorf("%.20q would be polled again", ticket)
			}
			if err := g.Cancel(t.Context(), task, ticket); err != nil {
				_ = failedJob(t, ticket, err)
			}
		}
	})
}

// malformed tests that every response leads to a failure or a valid status, without the credential.
// After a good response to a submission without a task ID the failure has Lost set, unless the
// response has an error.
func (p MediaProvider) malformed(t *testing.T) {
	for name, body := range malformed() {
		hasError := strings.Contains(body, "error") || strings.Contains(body, Secret)
		for _, code := range []int{200, 400, 401, 403, 404, 422, 429, 500, 503} {
			p.each(t, func(t *testing.T, task jobcall.Task) {
				g := p.generator(t, serve(t, document(code, body)), nil)
				if status, err := jobcall.Submit(t.Context(), g, task); err == nil {
					checkAccepted(t, g, task, status)
				} else if f := failedJob(t, name, err); code == 200 && !hasError && !g.Blocks(task) && !f.Lost {
					t.Errorf("%s: the task may have been accepted, but Lost is not set: %+v", name, f)
				} else if code != 200 && f.Lost {
					t.Errorf("%s with %d: the task was rejected, but Lost is set", name, code)
				}
				if g.Blocks(task) {
					return
				}
				if status, err := g.Poll(t.Context(), task, p.Ticket(task)); err != nil {
					_ = failedJob(t, name, err)
				} else {
					checkPolled(t, task, p.Ticket(task), status)
				}
				if err := g.Cancel(t.Context(), task, p.Ticket(task)); err != nil {
					_ = failedJob(t, name, err)
				}
			})
		}
	}
}

// endless tests that the adapter closes an endless response.
func (p MediaProvider) endless(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		disconnected := make(chan struct{}, 64)
		for _, status := range []int{200, 500} {
			g := p.generator(t, serve(t, endless(status, disconnected)), nil)
			task.Count = 1
			_, err := jobcall.Submit(t.Context(), g, task)
			_ = failedJob(t, "submit", err)
			await(t, disconnected)
			if g.Blocks(task) {
				continue
			}
			_, err = g.Poll(t.Context(), task, p.Ticket(task))
			if f := failedJob(t, "poll", err); f.Next != upstream.NextPoll {
				t.Errorf("poll: %+v", f)
			}
			await(t, disconnected)
		}
	})
}

// noListener tests that Lost is not set if nothing was sent.
func (p MediaProvider) noListener(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		studio := p.start(t)
		base := studio.URL()
		studio.Close()
		_, err := jobcall.Submit(t.Context(), p.generator(t, base, nil), task)
		if f := failedJob(t, "nobody", err); f.Lost || f.Next != upstream.NextLine || f.Health != upstream.HealthFail {
			t.Errorf("%+v", f)
		}
	})
}
