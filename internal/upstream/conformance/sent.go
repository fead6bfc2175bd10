package conformance

import (
	"bytes"
	"encoding/json"
	"image/color"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream/jobcall"
)

// Submission is a task with its expected path and body at the provider. Without a body, the line
// must reject the task. Like all rows of tables here, Submission is an alias, because the linter
// allows literals without field names only for types of the same package.
type Submission = struct {
	Task       jobcall.Task
	Path, Body string
}

// CheckSubmissions submits each task through a line with options to a new fake, which must accept the
// task. A form is compared as JSON, in the format of Form.
func CheckSubmissions(t *testing.T, provider string, options map[string]any, cases map[string]Submission) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.ProviderOf(t, provider).Open(t)
			s := submitTask(t, name, Line(t, provider, studio.URL(), options), studio, tt.Task)
			switch {
			case s == nil && tt.Body != "":
				t.Errorf("the task was not sent, want %s\n%s", tt.Path, tt.Body)
			case s != nil && (tt.Body == "" || s.Path != tt.Path || bodyText(t, s) != tt.Body):
				t.Errorf("sent %s\n%s, want %s\n%s", s.Path, bodyText(t, s), tt.Path, tt.Body)
			}
		})
	}
}

// Body is a named task with its expected body at the provider, like Submission.
type Body = struct {
	Name string
	Task jobcall.Task
	JSON string
}

// CheckBodies is CheckSubmissions for a line without options. path returns the path for a task.
func CheckBodies(t *testing.T, provider string, path func(task jobcall.Task) string, cases []Body) {
	t.Helper()
	submissions := map[string]Submission{}
	for _, tt := range cases {
		if _, twice := submissions[tt.Name]; twice {
			t.Fatalf("two cases are called %q", tt.Name)
		}
		submissions[tt.Name] = Submission{tt.Task, path(tt.Task), tt.JSON}
	}
	CheckSubmissions(t, provider, nil, submissions)
}

// SubmitTask submits a task to a fake, which must accept the task, and returns the submission. The test
// fails if there is not exactly one submission with the line's credential in a header. SubmitTask
// returns nil if the task or a reference is unsuitable and nothing was sent.
func SubmitTask(t testing.TB, provider string, studio fakestudio.Fake, task jobcall.Task) *fakestudio.Submission {
	t.Helper()
	return submitTask(t, "the task", Line(t, provider, studio.URL(), nil), studio, task)
}

// submitTask is SubmitTask for an open line.
func submitTask(t testing.TB, what string, g jobcall.Generator, studio fakestudio.Fake, task jobcall.Task) *fakestudio.Submission {
	t.Helper()
	_, err := jobcall.Submit(t.Context(), g, task)
	submissions := studio.Submissions()
	if err != nil {
		known, v := OutcomesOf(task.Kind), OutcomeOf(t, err)
		if v != known.Refused && v != known.Material || len(submissions) > 0 {
			t.Errorf("%s: outcome %+v, %d submissions, want an unsuitable task (%v)", what, v, len(submissions), err)
		}
		return nil
	}
	if len(submissions) != 1 {
		t.Fatalf("%s: %d submissions, want 1", what, len(submissions))
	}
	if !hasCredential(submissions[0].Header) {
		t.Errorf("%s: no credential in %v", what, submissions[0].Header)
	}
	return &submissions[0]
}

// hasCredential reports whether a header contains the line's credential.
func hasCredential(header http.Header) bool {
	for _, values := range header {
		if slices.ContainsFunc(values, func(v string) bool { return strings.HasSuffix(v, Secret) }) {
			return true
		}
	}
	return false
}

// bodyText returns the body of a submission: its JSON, or its Form as JSON.
func bodyText(t testing.TB, s *fakestudio.Submission) string {
	t.Helper()
	if kind, _, _ := mime.ParseMediaType(s.Header.Get("Content-Type")); kind == "application/json" {
		return string(s.Body)
	}
	text, err := json.Marshal(Form(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Pixels returns the pixels of a mask as text: # for black, . for white. Any other colour fails the
// test.
func Pixels(t testing.TB, mask []byte) string {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(mask))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			switch img.At(x, y) {
			case color.Gray{Y: 0}:
				text += "#"
			case color.Gray{Y: 0xFF}:
				text += "."
			default:
				t.Errorf("pixel %d,%d has colour %v, want black or white", x, y, img.At(x, y))
			}
		}
	}
	return text
}

// Form returns the form fields of a submission. The value of a file is its bytes. The values of fields
// with the same name are joined.
func Form(t testing.TB, s *fakestudio.Submission) map[string]string {
	t.Helper()
	_, head, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form := map[string]string{}
	reader := multipart.NewReader(bytes.NewReader(s.Body), head["boundary"])
	for part, err := reader.NextPart(); err != io.EOF; part, err = reader.NextPart() {
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		form[part.FormName()] += string(data)
	}
	return form
}
