package fault

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"
)

var update = flag.Bool("update", false, "rewrite docs/error-reference.md")

// reference is the document generated from the tables.
const reference = "../../docs/error-reference.md"

// shownCode and shownJob hold the cells of a row in the document.
type shownCode struct{ Code, Lead, Answer, Do, Retry, Charged string }

type shownJob struct{ Code, Heading, Anchor, Kind, Lead, Answer, Told, Retry string }

// shownStatus is a status with links to its codes.
type shownStatus struct {
	Status int
	Links  string
}

// shownPlace is a scope with its endpoints.
type shownPlace struct {
	Scope     Scope
	Endpoints string
}

// TestErrorReference checks that the error reference equals the text generated from the tables. The flag
// -update writes the document.
func TestErrorReference(t *testing.T) {
	t.Parallel()
	sample := At(InvalidRole, "messages[2].role", "…")
	page, err := template.ParseFiles("testdata/error-reference.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := page.Execute(&want, map[string]any{
		"Body": string(sample.Body()), "NativeBody": string(sample.NativeBody()),
		"Statuses": shownStatuses(), "Codes": shownCodes(), "Jobs": shownJobs(), "Places": shownPlaces(),
	}); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(reference, want.Bytes(), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the tables; run go test ./internal/fault -run TestErrorReference -update", reference)
	}
}

// TestEveryCodeHasAdvice checks that each row has advice, and that the advice about retries fits the
// status.
func TestEveryCodeHasAdvice(t *testing.T) {
	t.Parallel()
	for _, row := range Table() {
		if row.When == "" || !strings.HasSuffix(row.Do, ".") {
			t.Errorf("%s: incomplete row: when %q, do %q", row.Code, row.When, row.Do)
		}
		if row.Status == 503 && row.Retry != RetryLater && row.Retry != RetryOpen || row.Status == 429 && row.Retry != RetryRoom ||
			row.Status < 429 && row.Retry != RetryNever || (row.Retry == RetryOpen) != (row.Code == ModelMaintenance) {
			t.Errorf("%s: status %d does not fit the retry advice %q", row.Code, row.Status, row.Retry)
		}
	}
	for _, row := range JobTable() {
		if row.When == "" || !strings.HasSuffix(row.Message, ".") {
			t.Errorf("failed jobs, %s: when %q, message %q", row.Code, row.When, row.Message)
		}
		if again := strings.Contains(strings.ToLower(row.Message), "submit"); again != (row.Retry == RetryLater) {
			t.Errorf("failed jobs, %s: retry %q, but the message is %q", row.Code, row.Retry, row.Message)
		}
	}
}

func shownCodes() (all []shownCode) {
	for _, row := range Table() {
		answer := fmt.Sprintf("%d, `%s`; %s", row.Status, row.Type, row.Scope)
		if row.Scope.Native() {
			answer += fmt.Sprintf(". Below `/native` %d, `%s`", row.NativeStatus(), row.Native)
		}
		if row.Code == RateLimitExceeded {
			busy := New(RateLimitExceeded, "")
			busy.Fields = map[string]any{"attempts": nil}
			answer += fmt.Sprintf(", or `%s` when every line is busy", busy.NativeType())
		}
		charged := "nothing."
		if row.endsStreams() {
			charged = "nothing; of a stream that had begun, what came until then."
		}
		all = append(all, shownCode{string(row.Code), sentence(row.When), answer + ".", row.Do, row.Retry.String(), charged})
	}
	return all
}

// endsStreams reports whether the code can end a stream after its first byte: a failure during the
// response, or a filter that withholds the rest.
func (r TableRow) endsStreams() bool {
	switch r.Code {
	case ContentFilter:
		return true
	case ModelMaintenance, EmptyCompletion: // returned before the first byte
		return false
	}
	return r.Status >= 502
}

func shownJobs() (all []shownJob) {
	for _, row := range JobTable() {
		heading, retry := string(row.Code), "Not unchanged: it would most likely fail again."
		if _, also := Lookup(row.Code); also {
			heading += " of a job"
		}
		if row.Retry == RetryLater {
			retry = "Yes, as a new job."
		}
		all = append(all, shownJob{string(row.Code), heading, strings.ReplaceAll(heading, " ", "-"), row.Kind, sentence(row.When),
			"200; `error.type` is `" + row.Type + "`.", row.Message + " You were not charged.", retry})
	}
	return all
}

func shownPlaces() (all []shownPlace) {
	for _, p := range Scopes() {
		endpoints := "wherever it can happen, in the operator API too"
		if operations := p.Operations(); len(operations) > 0 {
			endpoints = "`" + strings.Join(operations, "`, `") + "`"
		} else if p == ClientAPI {
			endpoints = "all below `/v1` and `/native`"
		}
		all = append(all, shownPlace{p, endpoints})
	}
	return all
}

func shownStatuses() (all []shownStatus) {
	for _, row := range Table() {
		at := slices.IndexFunc(all, func(s shownStatus) bool { return s.Status == row.Status })
		if at < 0 {
			at, all = len(all), append(all, shownStatus{Status: row.Status})
		} else {
			all[at].Links += ", "
		}
		all[at].Links += fmt.Sprintf("[%s](#%s)", row.Code, row.Code)
	}
	slices.SortFunc(all, func(a, b shownStatus) int { return a.Status - b.Status })
	return all
}

// sentence capitalizes part and adds a full stop.
func sentence(part string) string {
	if strings.HasPrefix(part, "`") {
		return part + "."
	}
	return capital(part) + "."
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
