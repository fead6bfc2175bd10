package azure_test

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/azure"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// openAudio opens a line at an address below a fake provider with one reply.
func openAudio(t *testing.T, path, version string, reply fakeprovider.Reply) (*azure.Adapter, *fakeprovider.Server) {
	t.Helper()
	p := fakeprovider.New(t, reply)
	var options map[string]any
	if version != "" {
		options = map[string]any{"api_version": version}
	}
	a, err := azure.New(upstream.Target{Line: "main", Provider: azure.Provider, BaseURL: strings.TrimSuffix(p.URL(), "/v1") + path,
		Key: key, Options: options}, conformance.Transport(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, p
}

// speech is a call of a deployment.
func speech() chatcall.Call {
	return chatcall.Call{Form: "speech", Path: "/audio/speech", Model: "my tts", AnyType: true,
		Body: rawjson.Pieces{[]byte(`{"model":"my tts","input":"hello","voice":"alloy"}`)}}
}

// translation is a call with a file.
func translation() chatcall.Call {
	return chatcall.Call{Form: "transcription", Path: "/audio/translations", Model: "whisper", AnyType: true,
		Body: rawjson.Pieces{[]byte(`{"model":"whisper"}`)},
		File: &kind.Upload{Name: "a.wav", ContentType: "audio/wav", Bytes: strings.NewReader("RIFF"), Size: 4}}
}

// TestAudio tests the addresses of speech and translations, with each sort of version and base address.
func TestAudio(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, version, want string
		call                chatcall.Call
	}{
		"v1":              {"", "", "/openai/v1/audio/speech?api-version=preview", speech()},
		"a version":       {"/openai/v1", "v1", "/openai/v1/audio/speech?api-version=v1", speech()},
		"a dated version": {"", "2025-03-01-preview", "/openai/deployments/my%20tts/audio/speech?api-version=2025-03-01-preview", speech()},
		"a date at a path": {"/gate/openai/v1", "2024-10-21",
			"/gate/openai/deployments/whisper/audio/translations?api-version=2024-10-21", translation()},
	} {
		a, p := openAudio(t, c.path, c.version, fakeprovider.Reply{ContentType: "audio/mpeg", Body: "sound"})
		if err := conformance.Ask(t, a, c.call); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := p.Requests()[0]
		if r.URI != c.want || r.Header.Get("Api-Key") != key {
			t.Errorf("%s: got %s with the header %v, want %s with the key", name, r.URI, r.Header, c.want)
		}
		if want := string(speech().Body.Bytes()); c.call.File == nil && string(r.Body) != want {
			t.Errorf("%s: got the body %s, want %s", name, r.Body, want)
		}
		if c.call.File != nil && !strings.Contains(string(r.Body), "RIFF") {
			t.Errorf("%s: got the body %s, want the file in it", name, r.Body)
		}
	}
}

// TestAudioErrors tests the errors of Azure for sound.
func TestAudioErrors(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]struct {
		status int
		name   string
		code   fault.Code
		health upstream.Health
	}{
		"Access denied due to invalid subscription key.":           {401, "401", fault.UpstreamUnavailable, upstream.HealthCredential},
		"Requests have exceeded call rate limit. Retry after 9 s.": {429, "429", fault.UpstreamBusy, upstream.HealthCool},
		"The API deployment for this resource is missing.": {404, "DeploymentNotFound", fault.UpstreamUnavailable,
			upstream.HealthModel},
		"Maximum content size limit (26214400) exceeded": {413, "413", "413", upstream.HealthNone},
	} {
		body := `{"error":{"code":"` + want.name + `","message":"` + message + `"}}`
		a, _ := openAudio(t, "", "", fakeprovider.Reply{Status: want.status, Body: body})
		_, err := a.Chat(t.Context(), translation())
		if f := conformance.ChatFailure(t, err); f.Code != want.code || f.Health != want.health {
			t.Errorf("%s: got %v with %s, want %s with %s", body, f, f.Health, want.code, want.health)
		}
	}
}
