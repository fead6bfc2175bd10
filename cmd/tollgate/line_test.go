package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestModelStates checks that a list of lines shows each model that is out of service on a
// line or in a form, with cause and times.
func TestModelStates(t *testing.T) {
	t.Parallel()
	listLines := func(states, state string) string {
		t.Helper()
		answer, err := parseJSON([]byte(`{"object":"list","data":[{"id":"main","provider":"p","state":"` + state + `","in_flight":0,` +
			`"model_states":` + states + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		writeList(&out, answer.(object), linesView(), 200)
		return out.String()
	}
	got := listLines(`[{"model":"deep","state":"model_out","cause":"404: no such model","since":1800000000,"until":1800000300},`+
		`{"model":"swift","state":"in_service"},{"model":"swift","form":"responses","state":"form_out","cause":"no such form",`+
		`"since":1800000000,"until":1800000300},`+
		`{"model":"vast","state":"cooling","cause":"429: slow down","since":1800000000,"until":1800000007}]`, "in_service")
	for _, want := range []string{"deep", "model_out", "404: no such model", "responses", "form_out", "vast", "cooling", "429: slow down",
		"SINCE (", "UNTIL (", "2027-01-15"} {
		if !strings.Contains(got, want) {
			t.Errorf("the list lacks %q:\n%s", want, got)
		}
	}
	if got := listLines(`[{"model":"swift","state":"in_service"}]`, "credentials_out"); strings.Contains(got, "Every model is in service") {
		t.Errorf("a line out of service is reported as in service: %s", got)
	}
	if got := listLines(`[{"model":"swift","state":"in_service"}]`, "in_service"); !strings.Contains(got, "Every model is in service") {
		t.Errorf("the list does not say that every model is in service: %s", got)
	}
}

// TestSandboxRequestsAreShown checks that a usage report shows the number of requests to the
// sandbox, unless it is zero.
func TestSandboxRequestsAreShown(t *testing.T) {
	t.Parallel()
	for requests, want := range map[string]bool{"0": false, "2": true} {
		answer, err := parseJSON([]byte(`{"object":"usage.report","group_by":[],"total":{},"sandbox":{"requests":` + requests + `},"data":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		writeList(&out, answer.(object), view{}, 200)
		if got := strings.Contains(out.String(), "Not counted: requests to the sandbox (2)"); got != want {
			t.Errorf("the report of %s sandbox requests shows their number: %v, want %v: %s", requests, got, want, out.String())
		}
	}
}
