package conformance

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/jobcall"
)

// Unsent is a task to be rejected by the adapter before a call, with the expected outcome and a
// part of the message.
type Unsent struct {
	Task    jobcall.Task
	Want    Outcome
	Message string
}

// CheckUnsent fails the test if one of the tasks is not refused, or is sent.
func CheckUnsent(t *testing.T, provider string, studio fakestudio.Fake, tasks map[string]Unsent) {
	t.Helper()
	g := Line(t, provider, studio.URL(), nil)
	for name, tt := range tasks {
		_, err := jobcall.Submit(t.Context(), g, tt.Task)
		CheckOutcome(t, name, err, tt.Want)
		if f := JobFailure(t, err); f.Lost || !strings.Contains(f.Message, tt.Message) {
			t.Errorf("%s: %+v: %v", name, f, f)
		}
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d tasks were sent", n)
	}
}

// CheckUnsuitable is CheckUnsent for tasks that the line cannot express.
func CheckUnsuitable(t *testing.T, provider string, tasks map[string]jobcall.Task) {
	t.Helper()
	unsent := map[string]Unsent{}
	for name, task := range tasks {
		unsent[name] = Unsent{Task: task, Want: OutcomesOf(task.Kind).Refused}
	}
	CheckUnsent(t, provider, fakestudio.ProviderOf(t, provider).Open(t), unsent)
}

// CheckCancel tests a provider unable to cancel running tasks: a waiting task is cancelled,
// cancelling a running task returns an error, and cancelling an unknown ticket returns nil.
func CheckCancel(t *testing.T, provider string, studio fakestudio.Fake, task jobcall.Task, unknown ...string) {
	t.Helper()
	g := Line(t, provider, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{}, fakestudio.Behaviour{Polls: 9})
	waiting, running := submit(t, g, task), submit(t, g, task)
	for range 3 {
		if _, err := g.Poll(t.Context(), task, running.Ticket); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Cancel(t.Context(), task, waiting.Ticket); err != nil {
		t.Error(err)
	}
	if err := g.Cancel(t.Context(), task, running.Ticket); err == nil {
		t.Error("a running task was cancelled")
	}
	for _, ticket := range append(unknown, "", "..") {
		if err := g.Cancel(t.Context(), task, ticket); err != nil {
			t.Errorf("%q: %v", ticket, err)
		}
	}
	if got := studio.CancelledTickets(); len(got) != 1 || got[0] != waiting.Ticket {
		t.Errorf("cancelled %v", got)
	}
}

// CheckInvalidOptions fails the test if CheckOptions accepts invalid options. The keys of cases are
// prefixes of the expected errors.
func CheckInvalidOptions(t *testing.T, info upstream.Info, cases map[string]map[string]any) {
	t.Helper()
	for want, options := range cases {
		if err := info.CheckOptions(options); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %s", options, err, want)
		}
	}
}

// OptionsCase is a line's options and a part of the expected error, empty if the options are valid.
type OptionsCase struct {
	Options map[string]any
	Message string
}

// CheckOptions opens lines of a provider with options, and a line with an invalid address.
func CheckOptions(t *testing.T, provider string, lines map[string]OptionsCase) {
	t.Helper()
	set := adapters.New(adapters.Options{Transport: http.DefaultTransport, Strangers: http.DefaultTransport})
	t.Cleanup(set.Close)
	line := upstream.Target{Line: "main", Provider: provider, BaseURL: "http://host", Key: Secret}
	for name, tt := range lines {
		line.Options = tt.Options
		_, err := set.Open(line)
		if (err != nil) != (tt.Message != "") || err != nil && (!strings.Contains(err.Error(), tt.Message) || !strings.Contains(err.Error(),
			"main")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	line.Options, line.BaseURL = nil, "ftp://host"
	if _, err := set.Open(line); err == nil {
		t.Errorf("a line with the base URL %s was opened", line.BaseURL)
	}
}
