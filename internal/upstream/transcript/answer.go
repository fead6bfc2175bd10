package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tollgate/internal/upstream/chatcall"
)

// usage is the member `usage` of an answer.
type usage struct {
	Type    string `json:"type"`
	Seconds int64  `json:"seconds"`
}

// answer is an answer in one of the JSON formats. Members that the format lacks are omitted.
type answer struct {
	Task     string    `json:"task,omitempty"`
	Language string    `json:"language,omitempty"`
	Duration *float64  `json:"duration,omitempty"`
	Text     string    `json:"text"`
	Words    []wordOut `json:"words,omitempty"`
	Segments []any     `json:"segments,omitempty"`
	Usage    *usage    `json:"usage,omitempty"`
}

// wordOut is a word of verbose_json.
type wordOut struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// segmentOut is a segment of verbose_json. Clients require the members about Whisper's decoding. No other vendor
// has them, so they are 0.
type segmentOut struct {
	ID               int     `json:"id"`
	Seek             int     `json:"seek"`
	Start            float64 `json:"start"`
	End              float64 `json:"end"`
	Text             string  `json:"text"`
	Tokens           []int   `json:"tokens"`
	Temperature      float64 `json:"temperature"`
	AvgLogprob       float64 `json:"avg_logprob"`
	CompressionRatio float64 `json:"compression_ratio"`
	NoSpeechProb     float64 `json:"no_speech_prob"`
}

// speakerSegment is a segment of diarized_json.
type speakerSegment struct {
	Type    string  `json:"type"`
	ID      string  `json:"id"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker string  `json:"speaker"`
}

// Answer returns a transcript in the client's format.
func (r *TranscriptionRequest) Answer(t Transcript) *chatcall.Response {
	contentType, out := "text/plain; charset=utf-8", []byte(nil)
	switch r.format {
	case formatText:
		out = []byte(t.Text + "\n")
	case formatSRT, formatVTT:
		out = subtitles(&t, r.format)
	default:
		contentType = "application/json"
		out, _ = json.Marshal(r.answerOf(&t)) // cannot fail
	}
	return &chatcall.Response{Body: io.NopCloser(bytes.NewReader(out)), ContentType: contentType, Length: int64(len(out))}
}

// answerOf returns the answer in a format of JSON.
func (r *TranscriptionRequest) answerOf(t *Transcript) answer {
	a := answer{Text: t.Text}
	if t.Seconds > 0 {
		a.Usage = &usage{"duration", int64(math.Ceil(min(t.Seconds, math.MaxInt32)))}
	}
	if r.format == formatJSON {
		return a
	}
	a.Task, a.Duration = "transcribe", new(r.length(t))
	segments := t.segmentsOf()
	if r.format == formatDiarized {
		for i, s := range segments {
			a.Segments = append(a.Segments, speakerSegment{"transcript.text.segment", fmt.Sprintf("seg_%d", i), s.start, s.end, s.text, s.speaker})
		}
		return a
	}
	a.Language = cmp.Or(t.Language, r.Language)
	for i, s := range segments {
		if r.segments {
			a.Segments = append(a.Segments, segmentOut{ID: i, Start: s.start, End: s.end, Text: s.text, Tokens: []int{}})
		}
	}
	for _, w := range t.Words {
		if r.words {
			a.Words = append(a.Words, wordOut{strings.TrimSpace(w.Text), w.Start, w.End})
		}
	}
	return a
}

// length returns the length of the sound in seconds: the vendor's count, else the length in the file's
// headers, else the end of the last word.
func (r *TranscriptionRequest) length(t *Transcript) float64 {
	switch {
	case t.Seconds > 0:
		return t.Seconds
	case r.fileSeconds > 0:
		return r.fileSeconds
	case len(t.Words) > 0:
		return slices.MaxFunc(t.Words, func(a, b Word) int { return cmp.Compare(a.End, b.End) }).End
	}
	return 0
}

// subtitles returns the segments as SRT or WebVTT.
func subtitles(t *Transcript, format string) []byte {
	var out bytes.Buffer
	point := ","
	if format == formatVTT {
		out.WriteString("WEBVTT\n\n")
		point = "."
	}
	for i, s := range t.segmentsOf() {
		if format == formatSRT {
			fmt.Fprintf(&out, "%d\n", i+1)
		}
		fmt.Fprintf(&out, "%s --> %s\n%s\n\n", clock(s.start, point), clock(s.end, point), strings.TrimSpace(s.text))
	}
	return out.Bytes()
}

// maxClock is the latest time of a subtitle in seconds, 99 hours.
const maxClock = 99 * 3600

// clock returns a time as hours, minutes, seconds and milliseconds.
func clock(seconds float64, point string) string {
	ms := int64(math.Round(min(max(seconds, 0), maxClock) * 1000))
	return fmt.Sprintf("%02d:%02d:%02d%s%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, point, ms%1000)
}
