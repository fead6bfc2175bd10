package conformance

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/registry"
	"tollgate/internal/wire/rawjson"
)

// KindsProvider describes a provider of kinds of package wire/kind for the suite.
type KindsProvider struct {
	// Provider is the provider's name in the catalog.
	Provider string
	// Models are the provider's model ids by kind, if the adapter does not accept every id.
	Models map[string]string
	// Fields are further fields of the requests by kind, as JSON with a comma before each. They replace
	// defaults of the probe that the vendor cannot express.
	Fields map[string]string
	// Paths are the ends of the provider's paths by kind, if they differ from the kind's path.
	Paths map[string]string
	// Bodies are the bodies expected at the provider by kind, if they differ from the probe's body.
	Bodies map[string]string
	// Answers are the provider's good answers by kind, if they differ from the sandbox's answer. An answer
	// with `data:` at its beginning is an event stream.
	Answers map[string]string
	// SimulatorOptions holds the options to simulate each behaviour, for a provider without HTTP.
	// If nil, a fake provider simulates the behaviours.
	SimulatorOptions map[Behaviour]map[string]any
}

// Kinds runs the cases of whole answers for each of the provider's kinds of package wire/kind. The
// request is the kind's probe, and the fake's good answer comes from the kind's sandbox.
func Kinds(t *testing.T, p KindsProvider) {
	calls := map[string]chatcall.Call{}
	var forms []wire.Form
	for _, name := range providerInfo(t, p.Provider).Kinds {
		if d := registry.Find(name); d != nil {
			calls[name] = p.call(d)
			forms = append(forms, d.Form())
			t.Run("a good answer of "+name, func(t *testing.T) { p.goodAnswer(t, d) })
		}
	}
	if len(calls) == 0 {
		t.Fatalf("%s has no kinds of package wire/kind", p.Provider)
	}
	whole := ChatProvider{Provider: p.Provider, WithoutTokenCount: forms, SimulatorOptions: p.SimulatorOptions, calls: calls}
	t.Run("failures before an answer", whole.failures)
	t.Run("a deadline and a cancelled context", whole.contextEnds)
	if p.SimulatorOptions == nil {
		t.Run("another content type", p.ofJSON(whole).otherTypes)
		t.Run("malformed answers", whole.malformed)
		t.Run("endless answers", whole.endless)
		t.Run("a port without a listener", whole.noListener)
	}
}

// ofJSON returns the suite without the kinds with answers of any type.
func (p KindsProvider) ofJSON(whole ChatProvider) ChatProvider {
	calls := map[string]chatcall.Call{}
	for name, c := range whole.calls {
		if !c.AnyType {
			calls[name] = c
		}
	}
	whole.calls = calls
	return whole
}

// read passes a good answer to part and returns part's error.
func read(part kind.Part, raw []byte, contentType string) error {
	streamed, ok := part.(kind.StreamedPart)
	if !ok || !streamed.AsksStream() {
		_, err := part.Read(raw)
		return err
	}
	s := streamed.Stream(bytes.NewReader(raw), contentType, func(int64) bool { return true })
	for {
		if _, err := s.Next(nil); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// call returns the call of a kind's probe.
func (p KindsProvider) call(d *kind.Definition) chatcall.Call {
	body, file := d.Probe("m", kind.DefaultLimits{Kind: d})
	body = append(bytes.TrimSuffix(body, []byte("}")), p.Fields[d.Name]+"}"...)
	return chatcall.Call{
		Form: d.Form(), Path: d.Endpoints[0].LinePath, Model: cmp.Or(p.Models[d.Name], "m"), Body: rawjson.Pieces{body}, File: file,
		AnyType: d.AnyType, IdempotencyKey: "att_1",
	}
}

// goodAnswer tests that the provider gets the body at the kind's path with the credential, and that the
// kind can read the answer.
func (p KindsProvider) goodAnswer(t *testing.T, d *kind.Definition) {
	t.Parallel()
	c := p.call(d)
	base, sent := "", make(chan *http.Request, 1)
	if p.SimulatorOptions == nil {
		base = serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			want := cmp.Or(p.Bodies[d.Name], string(c.Body.Bytes()))
			asForm := d.Multipart && p.Bodies[d.Name] == ""
			if isForm := strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data"); err != nil || isForm != asForm ||
				!isForm && string(body) != want || isForm && !strings.Contains(string(body), "RIFF") {
				t.Errorf("the provider got %q, error %v; want %s", body, err, want)
			}
			sent <- r
			sandboxAnswer, err := d.Sandbox(c.Body.Bytes(), c.File)
			if err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(p.Answers[d.Name], "data:") {
				sandboxAnswer.ContentType = "text/event-stream"
			}
			w.Header().Set("Content-Type", sandboxAnswer.ContentType)
			_, _ = io.WriteString(w, cmp.Or(p.Answers[d.Name], string(sandboxAnswer.Body))) // a failed write shows in the answer
		})
	}
	answer, err := open(t, p.Provider, base, nil).Chat(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if p.SimulatorOptions == nil {
		want := cmp.Or(p.Paths[d.Name], c.Path)
		if r := <-sent; !strings.HasSuffix(r.URL.Path, want) || !hasCredential(r.Header) {
			t.Errorf("the provider got %s with the header %v, want the path %s and the credential", r.URL.Path, r.Header, want)
		}
	}
	request, err := d.Open(c.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if file, ok := request.(kind.FileRequest); ok {
		file.SetFile(c.File)
	}
	if err := request.Check(kind.DefaultLimits{Kind: d}); err != nil {
		t.Fatal(err)
	}
	if err := read(request.Parts(0)[0], raw, answer.ContentType); err != nil {
		t.Errorf("reading the answer %.300q returned %v, want no error", raw, err)
	}
}
