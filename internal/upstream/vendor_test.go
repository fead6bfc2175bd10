package upstream

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tollgate/internal/fault"
)

// verdictOf returns the name of a failure's verdict in testdata/vendors.txtar.
func verdictOf(f *Failure) string {
	name := map[fault.Code]string{fault.UpstreamBusy: "busy", fault.UpstreamPromptFilter: "filter", fault.ContentFilter: "output",
		fault.UpstreamTimeout: "slow"}[f.Code]
	switch {
	case f.Rejection != nil && f.LineSpecific:
		return "elsewhere"
	case f.Rejection != nil:
		return "request"
	case name != "":
		return name
	}
	name = f.Health.String()
	if f.Unproven {
		name += "?"
	}
	return name
}

// clientError is the error sent to the client if the gateway passes on a provider's error.
type clientError struct {
	status          int
	code, message   string
	param, typeName string
}

// vendorError is a section of testdata/vendors.txtar: an error response and its expected verdict.
type vendorError struct {
	from    Source
	status  int
	header  http.Header
	body    string
	verdict string
	client  clientError
}

// readVendorError parses a section of testdata/vendors.txtar.
func readVendorError(t *testing.T, section string) vendorError {
	t.Helper()
	e := vendorError{from: Source{Provider: "openai", Model: "our-model"}, header: http.Header{}}
	rest := strings.TrimSpace(section)
	for rest[0] != '{' && rest[0] != '[' {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		name, value, _ := strings.Cut(line, ": ")
		var err error
		switch name {
		case "from":
			e.from.BaseURL = value
		case "status":
			e.status, err = strconv.Atoi(value)
		case "type":
			e.header.Set("X-Amzn-Errortype", value)
		case "ends":
			e.verdict = value
		case "client":
			words := strings.SplitN(value, " ", 3)
			e.client.status, err = strconv.Atoi(words[0])
			e.client.typeName, e.client.code = words[1], words[2]
		case "param":
			e.client.param = value
		case "message":
			e.client.message = value
		default:
			t.Fatalf("unknown name: %q", line)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	e.body = rest
	return e
}

func TestVendorErrors(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/vendors.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range archive.Files {
		t.Run(section.Name, func(t *testing.T) {
			t.Parallel()
			e := readVendorError(t, string(section.Data))
			checkVerdict(t, e.from.Classify(e.status, "application/json", []byte(e.body), e.header), e.verdict, e.client)
		})
	}
}

// checkVerdict checks the verdict of a failure and the error sent to the client.
func checkVerdict(t *testing.T, f *Failure, verdict string, want clientError) {
	t.Helper()
	if f == nil {
		t.Fatal("Classify returned no failure")
	}
	if got := verdictOf(f); got != verdict {
		t.Fatalf("verdict %s (%v, health %s), want %s", got, f, f.Health, verdict)
	}
	e := f.Fault()
	if f.Rejection == nil {
		if e.Status() != 502 && e.Code != fault.ContentFilter {
			t.Errorf("the client gets status %d, want 502", e.Status())
		}
		return
	}
	if got := (clientError{e.Status(), string(e.Code), e.Message(), e.Param, e.Type()}); got != want {
		t.Errorf("the client gets %+v\nwant %+v", got, want)
	}
}

// TestWordingsOfVendors checks that a vendor's wording decides the verdict only in an error of that
// vendor or of a relay. The wording must not decide if a client's text may precede it, or if the
// error names a field.
func TestWordingsOfVendors(t *testing.T) {
	t.Parallel()
	const (
		xai     = "https://api.x.ai/v1"
		relay   = "http://127.0.0.1:9000/v1"
		refused = "Incorrect API key provided: xa***yz. You can obtain an API key from https://console.x.ai."
	)
	for _, tt := range []struct {
		provider, host, message, param, verdict string
	}{
		{"openai", xai, refused, "", "credential?"},
		{"openai", relay, refused, "", "credential?"},
		{"openai", "", refused, "", "request"}, // OpenAI itself
		{"openai", "https://api.mistral.ai/v1", refused, "", "request"},
		{"gemini", relay, refused, "", "request"},
		{"fal", relay, refused, "", "request"},
		{"openai", xai, refused, "messages", "request"},
		{"openai", xai, "Unknown field: " + refused, "", "request"},
		{"openai", xai, "Incorrect API key provided: Extra inputs are not permitted", "", "request"},
		{"openai", xai, "Incorrect API key provided: xa***yz: Extra inputs are not permitted", "", "request"},
		{"openai", "https://api.fireworks.ai/v1", "Account x is suspended: Extra inputs are not permitted", "", "request"},
		{"openai", "https://api.fireworks.ai/v1", "Account of the client in the prompt is suspended", "", "request"},
		{"openai", "https://notfireworks.ai/v1", "Account x is suspended.", "", "credential?"}, // a relay's host
		{"openai", "https://api.groq.com/openai/v1", "Account x is suspended.", "", "request"},
		{"openai", "https://openrouter.ai/api/v1", "my tool is not a valid model ID", "", "request"},
		{"openai", "https://api.deepseek.com", "Model Not Exist: Extra inputs are not permitted", "", "request"},
	} {
		body := openAI("invalid_request_error", "", tt.message)
		if tt.param != "" {
			body = `{"error":{"message":"` + tt.message + `","param":"` + tt.param + `"}}`
		}
		f := Source{Provider: tt.provider, BaseURL: tt.host}.Classify(400, "application/json", []byte(body), nil)
		if got := verdictOf(f); got != tt.verdict {
			t.Errorf("%s at %q: verdict of %q is %s, want %s", tt.provider, tt.host, tt.message, got, tt.verdict)
		}
	}
}

// TestStatusName checks that the client also gets the name of a numeric error code.
func TestStatusName(t *testing.T) {
	t.Parallel()
	f := Classify(400, "", []byte(`{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}`), nil)
	want := `{"error":{"message":"Bad","type":"invalid_request_error","code":"400","param":null,"status":"INVALID_ARGUMENT"}}`
	if got := string(f.Fault().Body()); got != want {
		t.Errorf("body %s\nwant %s", got, want)
	}
}
