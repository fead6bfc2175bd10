// Package transcript owns the translation of transcriptions for vendors with an API of their own: the client's
// request, and the transcript in each format of OpenAI.
//
// Invariant: a field without a counterpart at the vendor is refused before the call, or changes nothing in the
// text.
package transcript

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/rawjson"
)

// Kind is the kind of models.
const Kind = "transcription"

// Values of `response_format`.
const (
	formatJSON     = "json"
	formatText     = "text"
	formatSRT      = "srt"
	formatVTT      = "vtt"
	formatVerbose  = "verbose_json"
	formatDiarized = "diarized_json"
)

// TranscriptionRequest is a client's request for a transcription.
type TranscriptionRequest struct {
	Language string
	// Temperature is the JSON number of the client, or empty.
	Temperature string
	// Speakers is true if the answer names the speaker of each segment.
	Speakers bool

	format          string
	words, segments bool
	translates      bool
	fields          []byte
	fileSeconds     float64 // length of the file by its headers; 0 if unknown
}

// Read reads a call that has passed the checks of package wire/kind.
func Read(c chatcall.Call) TranscriptionRequest {
	body := c.Body.Bytes()
	text := func(name string) string { return rawjson.Unquote(rawjson.NonNull(rawjson.Field(body, name))) }
	r := TranscriptionRequest{
		Language: text("language"), Temperature: text("temperature"), format: cmp.Or(text("response_format"), formatJSON),
		translates: strings.HasSuffix(c.Path, "/translations"), fields: body, fileSeconds: c.File.Duration.Seconds(),
	}
	for _, name := range []string{"timestamp_granularities[]", "timestamp_granularities"} {
		for _, value := range listOf(rawjson.Field(body, name)) {
			r.words, r.segments = r.words || value == "word", r.segments || value == "segment"
		}
	}
	r.segments = r.segments || !r.words
	r.Speakers = r.format == formatDiarized
	return r
}

// listOf returns the texts in a field, a single text or a list.
func listOf(raw []byte) (texts []string) {
	if rawjson.IsText(raw) {
		return []string{rawjson.Unquote(raw)}
	}
	for _, element := range rawjson.Elements(raw) {
		texts = append(texts, rawjson.Unquote(element))
	}
	return texts
}

// Check returns a failure with the name of a field without a counterpart at the vendor, or nil. temperature
// reports whether the vendor accepts a temperature; if not, a request may only set 0.
func (r *TranscriptionRequest) Check(temperature bool) error {
	if r.translates {
		return upstream.Unsupported("model", "This model does not translate. Use /v1/audio/transcriptions, or another model.")
	}
	if t, err := strconv.ParseFloat(r.Temperature, 64); err == nil && t != 0 && !temperature {
		return upstream.Unsupported("temperature", "`{param}` must be 0 for this model.")
	}
	for _, name := range []string{"prompt", "include[]", "known_speaker_names[]", "known_speaker_references[]", "to_language"} {
		if raw := rawjson.NonNull(rawjson.Field(r.fields, name)); raw != nil && string(raw) != `""` {
			return upstream.Unsupported(name, "`{param}` is not offered with this model. Leave it out.")
		}
	}
	if raw := rawjson.NonNull(rawjson.Field(r.fields, "chunking_strategy")); raw != nil && rawjson.Unquote(raw) != "auto" {
		return upstream.Unsupported("chunking_strategy", "`{param}` must be auto for this model.")
	}
	for i, value := range listOf(rawjson.Field(r.fields, "timestamp_granularities[]")) {
		if !slices.Contains([]string{"word", "segment"}, value) {
			return upstream.Unsupported("timestamp_granularities["+strconv.Itoa(i)+"]", "`{param}` must be word or segment.")
		}
	}
	return nil
}

// Transcript is a vendor's answer.
type Transcript struct {
	Text, Language string
	// Seconds is the length of the sound by the vendor's count, or 0.
	Seconds float64
	// Words are in the order of the sound.
	Words []Word
}

// Word is a word of a transcript. Start and End are seconds.
type Word struct {
	// Text begins with the space before the word, if there is one.
	Text       string
	Start, End float64
	Speaker    string
}

// segment is a run of words for a subtitle.
type segment struct {
	text       string
	start, end float64
	speaker    string
}

// Bounds of a segment.
const (
	maxSegmentSeconds = 7
	maxSegmentBytes   = 84
	pauseSeconds      = 1
)

// segmentsOf splits the words into segments. A segment ends at the end of a sentence, at a pause, at a
// change of the speaker, or before it gets too long.
func (t *Transcript) segmentsOf() (segments []segment) {
	var s *segment
	for _, w := range t.Words {
		if w.Text == "" {
			continue
		}
		if s == nil || strings.ContainsAny(s.text[len(s.text)-1:], ".?!") || endsWide(s.text) || w.Start-s.end > pauseSeconds ||
			w.Speaker != s.speaker || w.End-s.start > maxSegmentSeconds || len(s.text)+len(w.Text) > maxSegmentBytes {
			segments = append(segments, segment{start: w.Start, speaker: w.Speaker})
			s = &segments[len(segments)-1]
		}
		s.text += w.Text
		s.end = max(s.end, w.End)
	}
	return segments
}

// endsWide reports whether a text ends with the Chinese or Japanese mark of the end of a sentence.
func endsWide(text string) bool {
	for _, mark := range []string{"。", "？", "！"} {
		if strings.HasSuffix(text, mark) {
			return true
		}
	}
	return false
}
