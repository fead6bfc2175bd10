// Package fakecollector owns a fake collector of traces: a receiver of OTLP over HTTP, as strict as
// the protocol.
//
// Invariants: a request without valid OTLP fails the test; spans are stored unchanged.
package fakecollector

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Name, Kind        string
	Trace, ID, Parent string // in hex; Parent is empty for the root of a trace
	Begin, End        time.Time
	Failed            bool
	Attributes        map[string]any // values are string, int64, float64, bool or []string
}

// Collector receives spans.
type Collector struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	spans    []Span
	resource map[string]any
	header   http.Header // of the last request
}

// New starts a collector until the end of the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{t: t}
	c.server = httptest.NewServer(http.HandlerFunc(c.handle))
	t.Cleanup(c.server.Close)
	return c
}

// URL is the collector's base address.
func (c *Collector) URL() string { return c.server.URL }

// Header returns the header of the last request.
func (c *Collector) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header.Clone()
}

// Resource returns the resource attributes of the spans.
func (c *Collector) Resource() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Spans returns the accepted spans by start time.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	return all
}

// handle handles one request.
func (c *Collector) handle(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("the collector got %s %s with content type %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	request, err := read(r)
	if err != nil {
		c.t.Errorf("the collector got invalid OTLP: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = r.Header.Clone()
	for _, from := range request.GetResourceSpans() {
		c.resource = attributes(from.GetResource().GetAttributes())
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, span(s))
			}
		}
	}
	answer, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{})
	if err != nil {
		c.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer) // the sender may be gone
}

func read(r *http.Request) (*collectorpb.ExportTraceServiceRequest, error) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = plain
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var request collectorpb.ExportTraceServiceRequest
	return &request, proto.Unmarshal(raw, &request)
}

func span(s *tracepb.Span) Span {
	kinds := map[tracepb.Span_SpanKind]string{
		tracepb.Span_SPAN_KIND_SERVER: "server", tracepb.Span_SPAN_KIND_CLIENT: "client", tracepb.Span_SPAN_KIND_INTERNAL: "internal",
	}
	return Span{
		Name: s.GetName(), Kind: kinds[s.GetKind()], Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Begin: time.Unix(0, int64(s.GetStartTimeUnixNano())),
		End: time.Unix(0, int64(s.GetEndTimeUnixNano())), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		Attributes: attributes(s.GetAttributes()),
	}
}

func attributes(list []*commonpb.KeyValue) map[string]any {
	all := make(map[string]any, len(list))
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			all[a.GetKey()] = v.DoubleValue
		case *commonpb.AnyValue_BoolValue:
			all[a.GetKey()] = v.BoolValue
		case *commonpb.AnyValue_ArrayValue: // the conventions only have lists of strings
			texts := []string{}
			for _, value := range v.ArrayValue.GetValues() {
				texts = append(texts, value.GetStringValue())
			}
			all[a.GetKey()] = texts
		}
	}
	return all
}
