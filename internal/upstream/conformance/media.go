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

// MediaProvider describes a provider of images and video for the suite.
type MediaProvider struct {
	// Provider is the provider's name in the catalog.
	Provider string
	// Start starts a fake for Tasks. If nil, the provider's fake in fakestudio is used.
	Start func(t testing.TB) fakestudio.Fake
	// Tasks holds named tasks: at least one for each kind of the provider, and several if the
	// adapter makes different calls for a kind.
	Tasks map[string]jobcall.Task
	// Ticket returns a valid ticket not issued by the provider.
	Ticket func(task jobcall.Task) string
	// Params are allowed params with Marker in a value.
	Params string
	// Marker is the part of Params expected at the provider. If empty, it is 41417.
	Marker string
	// SimulatorOptions holds the options to simulate each behaviour, for a provider without HTTP.
	// If nil, the fake simulates the behaviours.
	SimulatorOptions map[Behaviour]map[string]any
}

// Media runs the cases of images and video for each task.
func Media(t *testing.T, p MediaProvider) {
	for _, kind := range providerInfo(t, p.Provider).Kinds {
		has := func(task jobcall.Task) bool { return task.Kind == kind }
		isJob := kind == upstream.KindImage || kind == upstream.KindVideo
		if isJob && !slices.ContainsFunc(slices.Collect(maps.Values(p.Tasks)), has) {
			t.Errorf("%s makes %ss, but Tasks has no task of that kind", p.Provider, kind)
		}
	}
	t.Run("a successful task", p.successfulTask)
	t.Run("failed submissions", p.failedSubmissions)
	t.Run("failed polls", p.failedPolls)
	t.Run("failed downloads", p.failedDownloads)
	t.Run("cancellation", p.cancellation)
	t.Run("a deadline and a cancelled context", p.contextEnds)
	t.Run("params", p.params)
	t.Run("an unknown kind", p.unknownKind)
	t.Run("the vocabulary", p.vocabulary)
	if p.SimulatorOptions == nil {
		t.Run("no credential for other hosts", p.credential)
		t.Run("invalid tickets", p.invalidTickets)
		t.Run("polls without a status", p.unusablePolls)
		t.Run("a response without an ID", p.missingID)
		t.Run("malformed answers", p.malformed)
		t.Run("endless answers", p.endless)
		t.Run("a port without a listener", p.noListener)
	}
}

// each runs a case for each task.
func (p MediaProvider) each(t *testing.T, run func(t *testing.T, job jobcall.Task)) {
	for name, job := range p.Tasks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if job.AcquireRead == nil {
				job.AcquireRead = task.UnlimitedReads
			}
			job.Key = "sub_1"
			run(t, job)
		})
	}
}

// openFor opens a line to a provider with a behaviour at the next task. The returned fake is nil if
// the provider does not use HTTP.
func (p MediaProvider) openFor(t *testing.T, behaviour Behaviour) (jobcall.Generator, fakestudio.Fake) {
	t.Helper()
	if p.SimulatorOptions != nil {
		options, ok := p.SimulatorOptions[behaviour]
		if !ok && behaviour != Succeeds {
			t.Fatalf("%s does not simulate behaviour %d", p.Provider, behaviour)
		}
		return p.generator(t, "", options), nil
	}
	studio := p.start(t)
	studio.Expect(studioBehaviour(behaviour))
	return p.generator(t, studio.URL(), nil), studio
}

// start starts the provider's fake.
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
		t.Fatalf("the adapter of %s is not a jobcall.Generator", p.Provider)
	}
	return g
}

// studioBehaviour returns the fake's behaviour for a behaviour of the suite.
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

// asJobFailure returns a generator's error as a failure. The test fails if the error is not a valid
// failure.
func asJobFailure(t testing.TB, what string, err error) *upstream.JobFailure {
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
		t.Errorf("%s: code %q, want one of a failed job", what, f.Job)
	}
	if f.Next < upstream.NextPoll || f.Next > upstream.NextNone || f.Cause == nil || len(f.Error()) > maxFailureText {
		t.Errorf("%s: failure %+v, want a valid next step, a cause and at most %d bytes of text", what, f, maxFailureText)
	}
	return f
}

// submit submits a task, which the provider must accept.
func submit(t testing.TB, g jobcall.Generator, task jobcall.Task) *jobcall.TaskStatus {
	t.Helper()
	status, err := jobcall.Submit(t.Context(), g, task)
	if err != nil {
		t.Fatal(err)
	}
	checkAccepted(t, g, task, status)
	return status
}

// checkAccepted fails the test if the status of a submission is inconsistent.
func checkAccepted(t testing.TB, g jobcall.Generator, task jobcall.Task, status *jobcall.TaskStatus) {
	t.Helper()
	if blocks := g.Blocks(task); status.Done != blocks || blocks == (status.Ticket != "") || status.Done != (len(status.Results) > 0) ||
		len(status.Results) > task.Count || status.Wait < 0 {
		t.Errorf("Blocks = %t, but Submit returned %+v", blocks, status)
	}
}

// successfulTask tests that another process can continue a task with only the ticket, the task has
// the requested number of results, and each result can be downloaded.
func (p MediaProvider) successfulTask(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		g, studio := p.openFor(t, Succeeds)
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
				t.Errorf("downloaded %d bytes of type %q, error %v; want a whole %s", len(data), kind, err, task.Kind)
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
		t.Fatalf("Poll(%q) returned an inconsistent status %+v", ticket, status)
	}
}

// fetch reads a whole result.
func fetch(t testing.TB, g jobcall.Generator, task jobcall.Task, r jobcall.Result) (data []byte, kind string, err error) {
	t.Helper()
	file, err := g.Fetch(t.Context(), task, r)
	if err != nil {
		if f := asJobFailure(t, "fetch", err); f.Next != upstream.NextPoll {
			t.Errorf("failed download: %+v, want NextPoll", f)
		}
		return nil, "", err
	}
	defer file.Body.Close()
	data, err = io.ReadAll(file.Body)
	if err == nil && file.Size >= 0 && file.Size != int64(len(data)) {
		t.Errorf("downloaded %d bytes, want Size %d", len(data), file.Size)
	}
	return data, file.Type, err
}

// failedSubmissions tests that an error status of a submission has the same meaning for all providers,
// a lost response sets Lost, and nothing is submitted twice.
func (p MediaProvider) failedSubmissions(t *testing.T) {
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
				f := asJobFailure(t, name, err)
				if f.Job != fault.UpstreamError || f.Health != tt.health || f.Next != tt.next || f.Lost != tt.lost {
					t.Errorf("failure %+v, want health %s, next %d, lost %t (%v)", f, tt.health, tt.next, tt.lost, f)
				}
				if studio != nil && len(studio.Submissions()) != 1 {
					t.Errorf("%d submissions, want 1", len(studio.Submissions()))
				}
			})
		})
	}
}

// failedDownloads tests that a failed download returns an error, and the same link works at the next
// download.
func (p MediaProvider) failedDownloads(t *testing.T) {
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
					t.Errorf("first download returned %d bytes, want an error", len(data))
				}
				if studio != nil {
					if data, _, err := fetch(t, g, task, status.Results[0]); err != nil || len(data) == 0 {
						t.Errorf("second download returned %d bytes, error %v; want a result", len(data), err)
					}
				}
			})
		})
	}
}

// cancellation tests that an error of Cancel is a valid failure, and cancelling twice, or with
// unknown tickets, cancels no other task.
func (p MediaProvider) cancellation(t *testing.T) {
	p.polledTasks(t, func(t *testing.T, task jobcall.Task) {
		g, studio := p.openFor(t, Succeeds)
		status := submit(t, g, task)
		for _, ticket := range []string{status.Ticket, status.Ticket, p.Ticket(task), "", ".."} {
			if err := g.Cancel(t.Context(), task, ticket); err != nil {
				_ = asJobFailure(t, "cancel", err)
			}
		}
		if studio == nil {
			return
		}
		for _, ticket := range studio.CancelledTickets() {
			if !strings.Contains(status.Ticket, ticket) {
				t.Errorf("cancelled task %q, want only %q", ticket, status.Ticket)
			}
		}
		studio.Close()
		if err := g.Cancel(t.Context(), task, status.Ticket); err != nil {
			_ = asJobFailure(t, "cancel", err)
		}
	})
}

// contextEnds tests that the end of the context ends every call.
func (p MediaProvider) contextEnds(t *testing.T) {
	for cause, code := range map[error]fault.Code{context.DeadlineExceeded: fault.UpstreamTimeout, context.Canceled: fault.ClientClosed} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			p.each(t, func(t *testing.T, task jobcall.Task) {
				g, _ := p.openFor(t, Succeeds)
				status := submit(t, g, task)
				endedCtx, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				_, err := jobcall.Submit(endedCtx, g, task)
				if f := asJobFailure(t, "submit", err); f.Code != code {
					t.Errorf("submit: failure %v, want %s", f, code)
				}
				if status.Ticket != "" {
					_, err = g.Poll(endedCtx, task, status.Ticket)
					if f := asJobFailure(t, "poll", err); f.Code != code || f.Next != upstream.NextPoll {
						t.Errorf("poll: failure %+v, want %s and NextPoll", f, code)
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
		if f := asJobFailure(t, "submit", err); f.Code != fault.UpstreamTimeout || !f.Lost {
			t.Errorf("submit: failure %+v, want a timeout with Lost", f)
		}
	})
}

// params tests that a param named like a field of the gateway makes a task unsuitable, and allowed
// params reach the provider.
func (p MediaProvider) params(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		task.Count = 1
		g, studio := p.openFor(t, Succeeds)
		rejected := map[string]string{"a list": `[1]`, "null": `null`, "half": `{"seed":`}
		for _, name := range []string{"model", "prompt", "n", "size", "resolution", "duration", "ratio", "aspect_ratio", "stream",
			"image", "images", "reference_images", "references", "first_frame", "last_frame", "mask", "callback_url", "callBackUrl"} {
			rejected[name] = `{"` + name + `":"x"}`
		}
		for name, params := range rejected {
			variant := task
			variant.Params = json.RawMessage(params)
			_, err := jobcall.Submit(t.Context(), g, variant)
			f := asJobFailure(t, name, err)
			if f.Health != upstream.HealthNone || f.Next != upstream.NextLine || f.Lost || f.Code != fault.UpstreamUnavailable {
				t.Errorf("%s: failure %+v, want an unsuitable task", name, f)
			}
		}
		if studio != nil && len(studio.Submissions()) != 0 {
			t.Fatalf("%d submissions with disallowed params, want 0", len(studio.Submissions()))
		}
		task.Params = json.RawMessage(p.Params)
		submit(t, g, task)
		if studio != nil && !bytes.Contains(studio.Submissions()[0].Body, []byte(cmp.Or(p.Marker, "41417"))) {
			t.Errorf("params %s are not in the submission %s", p.Params, studio.Submissions()[0].Body)
		}
	})
}

// unknownKind tests that a task of an unknown kind is not sent and does not affect the line's health.
func (p MediaProvider) unknownKind(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		g, studio := p.openFor(t, Succeeds)
		task.Kind = "sound"
		_, err := jobcall.Submit(t.Context(), g, task)
		if f := asJobFailure(t, "unknown kind", err); f.Health != upstream.HealthNone || f.Next != upstream.NextLine || f.Lost {
			t.Errorf("unknown kind: failure %+v, want an unsuitable task", f)
		}
		if studio != nil && len(studio.Submissions()) != 0 {
			t.Errorf("%d submissions, want 0", len(studio.Submissions()))
		}
	})
}

// credential tests that another host does not get the credential, neither at a result's address nor
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
				t.Errorf("Fetch(%s) = %q, %v, want %q", address, data, err, "file")
			}
		}
	})
}

// invalidTickets tests that no call is made for an invalid ticket.
func (p MediaProvider) invalidTickets(t *testing.T) {
	base := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("request %s %s was sent", r.Method, r.URL) })
	p.polledTasks(t, func(t *testing.T, task jobcall.Task) {
		g := p.generator(t, base, nil)
		for _, ticket := range []string{"", ".", "..", "../models", "a/../b", "a?b", "a%2fb", "a b", "a\nb",
			"a/operations/", strings.Repeat("a", 5000)} {
			_, err := g.Poll(t.Context(), task, ticket)
			if f := asJobFailure(t, ticket, err); f.Next == upstream.NextPoll {
				t.Errorf("Poll(%.20q) failed with NextPoll, want a failed task", ticket)
			}
			if err := g.Cancel(t.Context(), task, ticket); err != nil {
				_ = asJobFailure(t, ticket, err)
			}
		}
	})
}

// malformed tests that every response leads to a valid status or to a failure without the credential.
// If a submission gets status 200 without a task ID and without an error, the failure must have Lost
// set.
func (p MediaProvider) malformed(t *testing.T) {
	for name, body := range malformed() {
		hasError := strings.Contains(body, "error") || strings.Contains(body, Secret)
		for _, code := range []int{200, 400, 401, 403, 404, 422, 429, 500, 503} {
			p.each(t, func(t *testing.T, task jobcall.Task) {
				g := p.generator(t, serve(t, document(code, body)), nil)
				if status, err := jobcall.Submit(t.Context(), g, task); err == nil {
					checkAccepted(t, g, task, status)
				} else if f := asJobFailure(t, name, err); code == 200 && !hasError && !g.Blocks(task) && !f.Lost {
					t.Errorf("%s: failure %+v, want Lost, because the task may have been accepted", name, f)
				} else if code != 200 && f.Lost {
					t.Errorf("%s with status %d: Lost is set, want unset after a rejection", name, code)
				}
				if g.Blocks(task) {
					return
				}
				if status, err := g.Poll(t.Context(), task, p.Ticket(task)); err != nil {
					_ = asJobFailure(t, name, err)
				} else {
					checkPolled(t, task, p.Ticket(task), status)
				}
				if err := g.Cancel(t.Context(), task, p.Ticket(task)); err != nil {
					_ = asJobFailure(t, name, err)
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
			_ = asJobFailure(t, "submit", err)
			waitDisconnected(t, disconnected)
			if g.Blocks(task) {
				continue
			}
			_, err = g.Poll(t.Context(), task, p.Ticket(task))
			if f := asJobFailure(t, "poll", err); f.Next != upstream.NextPoll {
				t.Errorf("poll: failure %+v, want NextPoll", f)
			}
			waitDisconnected(t, disconnected)
		}
	})
}

// noListener tests that a submission to a port without a listener fails without Lost.
func (p MediaProvider) noListener(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		studio := p.start(t)
		base := studio.URL()
		studio.Close()
		_, err := jobcall.Submit(t.Context(), p.generator(t, base, nil), task)
		if f := asJobFailure(t, "no listener", err); f.Lost || f.Next != upstream.NextLine || f.Health != upstream.HealthFail {
			t.Errorf("failure %+v, want HealthFail and NextLine without Lost", f)
		}
	})
}
