package transcript_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/transcript"
)

// answer returns the answer with a transcript to a request with fields, for a file of 9 seconds.
func answer(t *testing.T, fields string, words ...transcript.Word) string {
	t.Helper()
	c := conformance.Transcription(fields, "")
	c.File.Duration = 9 * time.Second
	r := transcript.Read(c)
	if err := r.Check(false); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r.Answer(transcript.Transcript{Text: "text", Words: words}).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSegments tests where subtitles begin.
func TestSegments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words []transcript.Word
		want  string // texts of the segments
	}{
		"none": {nil, ""},
		"sentences": {[]transcript.Word{{Text: "One."}, {Text: " Two"}, {Text: " three?"}, {Text: " 四。"}, {Text: "五"}},
			"One.|Two three?|四。|五"},
		"a pause":  {[]transcript.Word{{Text: "a", End: 1}, {Text: " b", Start: 1.9, End: 2}, {Text: " c", Start: 3.1, End: 4}}, "a b|c"},
		"speakers": {[]transcript.Word{{Text: "a", Speaker: "0"}, {Text: " b", Speaker: "1"}, {Text: " c", Speaker: "1"}}, "a|b c"},
		"long":     {[]transcript.Word{{Text: strings.Repeat("x", 80)}, {Text: " 1234"}, {Text: " 5"}}, strings.Repeat("x", 80) + "|1234 5"},
		"slow":     {[]transcript.Word{{Text: "a", End: 6}, {Text: " b", Start: 6, End: 7}, {Text: " c", Start: 7, End: 7.5}}, "a b|c"},
		"empty":    {[]transcript.Word{{Text: ""}, {Text: "a"}, {Text: ""}}, "a"},
	} {
		var texts []string
		for line := range strings.SplitSeq(answer(t, `"response_format":"vtt"`, c.words...), "\n") {
			if line != "" && line != "WEBVTT" && !strings.Contains(line, "-->") {
				texts = append(texts, line)
			}
		}
		if got := strings.Join(texts, "|"); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestVerbose tests that the words and segments are those that the client asked for, and that the duration is
// the file's if the vendor reports none.
func TestVerbose(t *testing.T) {
	t.Parallel()
	for granularities, want := range map[string][2]bool{ // words, segments
		"": {false, true},
		`,"timestamp_granularities[]":["segment"]`:        {false, true},
		`,"timestamp_granularities[]":["word"]`:           {true, false},
		`,"timestamp_granularities[]":"word"`:             {true, false},
		`,"timestamp_granularities[]":["segment","word"]`: {true, true},
	} {
		var got struct {
			Duration        float64
			Words, Segments []any
		}
		raw := answer(t, `"response_format":"verbose_json"`+granularities, transcript.Word{Text: "a", End: 1})
		err := json.Unmarshal([]byte(raw), &got)
		if err != nil || got.Duration != 9 || len(got.Words) == 1 != want[0] || len(got.Segments) == 1 != want[1] {
			t.Errorf("%s: got %s, want words and segments: %v", granularities, raw, want)
		}
	}
}
