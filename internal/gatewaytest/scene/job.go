package scene

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Job is the body of a job.
type Job struct {
	ID, Object, Status, Model string
	Created                   int64
	Position                  *int64 `json:"queue_position"`
	ETA                       *int64 `json:"eta_seconds"`
	Data                      []struct{ URL string }
	Usage                     json.RawMessage
	Error                     *Error

	Raw     string   `json:"-"`
	Members []string `json:"-"` // names, in order
}

// Final reports whether the job has ended.
func (j Job) Final() bool { return j.Status == "succeeded" || j.Status == "failed" }

// ReadJob reads the body of a job.
func ReadJob(t testing.TB, r Reply) Job {
	t.Helper()
	var j Job
	if err := json.Unmarshal(r.Raw, &j); err != nil {
		t.Fatalf("%v in %s", err, r)
	}
	j.Raw = string(r.Raw)
	dec := json.NewDecoder(bytes.NewReader(r.Raw))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err == nil {
			j.Members = append(j.Members, fmt.Sprint(name))
			var value json.RawMessage
			err = dec.Decode(&value)
		}
	}
	if err != nil {
		t.Fatalf("%v in %s", err, r)
	}
	return j
}

// Poll reads a job and checks its members for its state (interface.md, States and transitions).
func (c *Customer) Poll(t testing.TB, kind, id string) Job {
	t.Helper()
	r := c.Call(t, "GET", "/v1/"+kind+"s/jobs/"+id, nil)
	if r.Status != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("poll of %s: %s", id, r)
	}
	j := ReadJob(t, r)
	checkJob(t, kind, id, j)
	return j
}

func checkJob(t testing.TB, kind, id string, j Job) {
	t.Helper()
	members := []string{"id", "object", "status", "created", "model"}
	switch j.Status {
	case "queued":
		members = append(members, "queue_position", "eta_seconds")
		if j.Position == nil || *j.Position < 0 || j.ETA == nil || *j.ETA < 1 {
			t.Errorf("queued job %s", j.Raw)
		}
	case "processing":
	case "succeeded":
		members = append(members, "data", "usage")
		for _, d := range j.Data {
			if !strings.HasPrefix(d.URL, "http://") || len(d.URL) == 0 {
				t.Errorf("link %q", d.URL)
			}
		}
		if len(j.Data) == 0 {
			t.Errorf("succeeded job %s", j.Raw)
		}
	case "failed":
		members = append(members, "error")
		if j.Error == nil || j.Error.Message == "" || j.Error.Code == "" || j.Error.Type == "" || j.Error.Param() == "absent" {
			t.Errorf("failed job %s", j.Raw)
		}
	default:
		t.Errorf("status %q in %s", j.Status, j.Raw)
	}
	if !slices.Equal(j.Members, members) {
		t.Errorf("members %v, want %v in %s", j.Members, members, j.Raw)
	}
	if age := time.Since(time.Unix(j.Created, 0)); j.ID != id || j.Object != kind+".generation.job" || age < -time.Minute ||
		age > 10*time.Minute {
		t.Errorf("job %s of kind %s is shown as %s", id, kind, j.Raw)
	}
}

// Becomes polls a job until it is in a state. It fails the test if the job ends in another state or
// returns from processing to queued.
func (c *Customer) Becomes(t testing.TB, kind, id, state string) Job {
	t.Helper()
	var j Job
	started := false
	Eventually(t, "job "+id+" is "+state, func() bool {
		j = c.Poll(t, kind, id)
		if started && j.Status == "queued" {
			t.Errorf("job %s was processing and is queued again", id)
		}
		started = started || j.Status == "processing"
		if j.Final() && j.Status != state {
			t.Fatalf("job %s should be %s; it is %s\nsteps: %s", id, state, j.Raw, c.OperatorJob(t, id))
		}
		return j.Status == state
	})
	return j
}
