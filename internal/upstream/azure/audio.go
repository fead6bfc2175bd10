package azure

import (
	"context"
	"net/http"
	"net/url"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/cloud"
	"tollgate/internal/upstream/exchange"
)

// Kinds of models with requests in OpenAI's shape.
const (
	kindEmbedding     = "embedding"
	kindSpeech        = "speech"
	kindTranscription = "transcription"
)

// defaultVersion is the version of the API for sound: only the preview of the v1 API documents sound.
const defaultVersion = "preview"

// audio makes the calls for speech and transcriptions. Their addresses have a version.
type audio struct {
	line    *exchange.Client
	header  http.Header // the key; nil if the transport adds the credential
	version string
}

// openAudio returns the audio of a line. It returns the errors of exchange.Open.
func openAudio(t upstream.Target, o cloud.Options, transport http.RoundTripper) (audio, error) {
	t.BaseURL = exchange.AddPath(t.BaseURL, cloud.OpenAIPath)
	line, err := exchange.Open(t, o.Info, transport)
	return audio{line, o.OpenAIKey, exchange.TextOption(t.Options, "api_version", defaultVersion)}, err
}

// address returns the address of a call: at the v1 API, or at the model's deployment if the version is a
// date.
func (a *audio) address(c chatcall.Call) *url.URL {
	u := a.line.URL(c.Path)
	if a.version[0] >= '0' && a.version[0] <= '9' {
		u = a.line.URL("..", "deployments", url.PathEscape(c.Model), c.Path)
	}
	u.RawQuery = url.Values{"api-version": {a.version}}.Encode()
	return u
}

// Chat implements chatcall.Adapter for the forms of package cloud and the kinds of Info.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if c.Form != kindSpeech && c.Form != kindTranscription {
		return a.Adapter.Chat(ctx, c)
	}
	answer, err := a.audio.line.Send(ctx, exchange.Post{URL: a.audio.address(c), Header: a.audio.header, Call: c})
	return answer, a.Source.Hide(err)
}
