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

// UnsentTask is a task that the adapter must reject before a call, with the expected outcome and a part
// of the message.
type UnsentTask struct {
	Task    jobcall.Task
	Want    Outcome
	Message string
}

// CheckUnsent fails the test if one of the tasks is accepted or sent.
func CheckUnsent(t *testing.T, provider string, studio fakestudio.Fake, tasks map[string]UnsentTask) {
	t.Helper()
	g := Line(t, provider, studio.URL(), nil)
	for name, tt := range tasks {
		_, err := jobcall.Submit(t.Context(), g, tt.Task)
		CheckOutcome(t, name, err, tt.Want)
		if f := JobFailure(t, err); f.Lost || !strings.Contains(f.Message, tt.Message) {
			t.Errorf("%s: failure %+v, message %q; want %q without Lost", name, f, f.Message, tt.Message)
		}
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d tasks were sent, want 0", n)
	}
}

// CheckUnsuitable is CheckUnsent for tasks that the line cannot express.
func CheckUnsuitable(t *testing.T, provider string, tasks map[string]jobcall.Task) {
	t.Helper()
	unsent := map[string]UnsentTask{}
	for name, task := range tasks {
		unsent[name] = UnsentTask{Task: task, Want: OutcomesOf(task.Kind).Refused}
	}
	CheckUnsent(t, provider, fakestudio.ProviderOf(t, provider).Open(t), unsent)
}

// CheckCancel tests the cancellation of tasks at a provider that cannot cancel running tasks. Cancel
// must cancel a waiting task, return an error for a running task, and return nil for an unknown ticket.
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
		t.Error("cancelling a running task returned no error")
	}
	for _, ticket := range append(unknown, "", "..") {
		if err := g.Cancel(t.Context(), task, ticket); err != nil {
			t.Errorf("Cancel(%q) = %v, want nil", ticket, err)
		}
	}
	if got := studio.CancelledTickets(); len(got) != 1 || got[0] != waiting.Ticket {
		t.Errorf("cancelled tickets %v, want [%s]", got, waiting.Ticket)
	}
}

// CheckInvalidOptions fails the test if CheckOptions accepts invalid options. The keys of cases are
// prefixes of the expected errors.
func CheckInvalidOptions(t *testing.T, info upstream.Info, cases map[string]map[string]any) {
	t.Helper()
	for want, options := range cases {
		if err := info.CheckOptions(options); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CheckOptions(%v) = %v, want an error that begins with %q", options, err, want)
		}
	}
}

// OptionsCase is a line's options and a part of the expected error, empty if the options are valid.
type OptionsCase struct {
	Options map[string]any
	Message string
}

// CheckOptions tests that lines of a provider open if their options are valid, and a line with an
// invalid address does not open.
func CheckOptions(t *testing.T, provider string, lines map[string]OptionsCase) {
	t.Helper()
	set := adapters.New(adapters.Options{Transport: http.DefaultTransport, PublicTransport: http.DefaultTransport})
	t.Cleanup(set.Close)
	line := upstream.Target{Line: "main", Provider: provider, BaseURL: "http://host", Key: Secret}
	for name, tt := range lines {
		line.Options = tt.Options
		_, err := set.Open(line)
		if (err != nil) != (tt.Message != "") || err != nil && (!strings.Contains(err.Error(), tt.Message) || !strings.Contains(err.Error(),
			"main")) {
			t.Errorf("%s: Open returned %v, want an error with %q (empty: none) and the line's name", name, err, tt.Message)
		}
	}
	line.Options, line.BaseURL = nil, "ftp://host"
	if _, err := set.Open(line); err == nil {
		t.Errorf("Open accepted the base URL %s, want an error", line.BaseURL)
	}
}
