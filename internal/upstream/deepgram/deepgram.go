// Package deepgram owns calls to Deepgram for transcriptions: the file is the whole body, and all settings
// are parameters of the address.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
package deepgram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/transcript"
	"tollgate/internal/wire/rawjson"
)

// Provider is the adapter's name in the catalog.
const Provider = "deepgram"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.deepgram.com/v1"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds: []string{transcript.Kind}, DefaultBaseURL: defaultBaseURL, NeedsKey: true, CheckOptions: exchange.NoOptions(Provider),
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line   *exchange.Client
	header http.Header
}

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	line, err := exchange.Open(t, Info(), transport)
	if err != nil {
		return nil, err
	}
	return &Adapter{line, http.Header{"Authorization": {"Token " + t.Key}}}, nil
}

// settings are the parameters of a call. Without a language the vendor would take the sound for English.
type settings struct {
	Model    string `json:"model"`
	Smart    bool   `json:"smart_format"` // punctuation, and numbers as digits
	Language string `json:"language,omitempty"`
	Detect   bool   `json:"detect_language,omitempty"`
	Diarize  bool   `json:"diarize,omitempty"`
}

// Chat implements chatcall.Adapter for transcriptions.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if c.Form != transcript.Kind {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
	}
	r := transcript.Read(c)
	if err := r.Check(false); err != nil {
		return nil, err
	}
	body, _ := json.Marshal(settings{c.Model, true, r.Language, r.Language == "", r.Speakers}) // cannot fail
	c.Body = rawjson.Pieces{body}
	raw, _, err := a.line.SendWhole(ctx, exchange.Post{URL: a.line.URL("listen"), Header: a.header, Call: c, FileAlone: true})
	if err != nil {
		return nil, err
	}
	t, err := readTranscript(raw)
	if err != nil {
		return nil, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	return r.Answer(t), nil
}

// readTranscript reads the vendor's answer: the first alternative of the first channel.
func readTranscript(raw []byte) (t transcript.Transcript, err error) {
	var answer struct {
		Metadata struct {
			Seconds float64 `json:"duration"`
		} `json:"metadata"`
		Results struct {
			Channels []struct {
				Language     string `json:"detected_language"`
				Alternatives []struct {
					Text  string `json:"transcript"`
					Words []struct {
						Word       string  `json:"word"`
						Punctuated string  `json:"punctuated_word"`
						Start      float64 `json:"start"`
						End        float64 `json:"end"`
						Speaker    *int    `json:"speaker"`
					} `json:"words"`
				} `json:"alternatives"`
			} `json:"channels"`
		} `json:"results"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return t, err
	}
	if len(answer.Results.Channels) == 0 || len(answer.Results.Channels[0].Alternatives) == 0 {
		return t, errors.New("the answer has no transcript")
	}
	channel := answer.Results.Channels[0]
	best := channel.Alternatives[0]
	t = transcript.Transcript{Text: best.Text, Language: channel.Language, Seconds: answer.Metadata.Seconds}
	for _, w := range best.Words {
		word := transcript.Word{Text: " " + w.Word, Start: w.Start, End: w.End}
		if w.Punctuated != "" {
			word.Text = " " + w.Punctuated
		}
		if w.Speaker != nil {
			word.Speaker = strconv.Itoa(*w.Speaker)
		}
		t.Words = append(t.Words, word)
	}
	return t, nil
}
