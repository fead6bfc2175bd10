package conversation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// cutText returns the text before the first stop sequence, and the sequence. It is the definition: the
// sequence that ends first, and of those the longest.
func cutText(text string, stops []string) (before, stop string) {
	for end := range len(text) + 1 {
		for _, s := range stops {
			if len(s) > len(stop) && strings.HasSuffix(text[:end], s) {
				before, stop = text[:end-len(s)], s
			}
		}
		if stop != "" {
			return before, stop
		}
	}
	return text, ""
}

// heldText returns the longest end of a text that may begin a stop sequence.
func heldText(text string, stops []string) string {
	for from := range len(text) {
		if slices.ContainsFunc(stops, func(s string) bool { return strings.HasPrefix(s, text[from:]) }) {
			return text[from:]
		}
	}
	return ""
}

// escaped returns a text as contents of JSON strings, in pieces. Some characters are escaped at random, and
// some pairs of surrogates are in two pieces.
func escaped(r *rand.Rand, text string) (pieces []string) {
	var piece strings.Builder
	for _, c := range text {
		high, low := utf16.EncodeRune(c)
		switch {
		case r.IntN(3) > 0:
			piece.Write(rawjson.Contents(rawjson.Quote(string(c))))
		case high == utf16High:
			fmt.Fprintf(&piece, `\u%04x`, c)
		default:
			fmt.Fprintf(&piece, `\u%04X`, high)
			if r.IntN(2) == 0 {
				pieces = append(pieces, piece.String())
				piece.Reset()
			}
			fmt.Fprintf(&piece, `\u%04x`, low)
		}
		if r.IntN(3) == 0 {
			pieces = append(pieces, piece.String())
			piece.Reset()
		}
	}
	return append(pieces, piece.String())
}

// utf16High is the high half of a character that has no surrogates.
const utf16High = '\uFFFD'

// answerSink records an answer.
type answerSink struct {
	*Answer
	idles int
}

// Write implements sink.
func (s *answerSink) Write(dst []byte, e Event) []byte {
	if e.Kind == Idle {
		s.idles++
	}
	return s.Answer.Write(dst, e)
}

// stopsOf returns a request with local stop sequences.
func stopsOf(t testing.TB, stops ...string) *Request {
	t.Helper()
	r := &Request{}
	for _, s := range stops {
		r.Stops = append(r.Stops, rawjson.Quote(s))
	}
	if taken, err := r.TakeStops(0, nil); taken != nil || err != nil {
		t.Fatalf("got %s, %v, want no sequence for the line", taken, err)
	}
	return r
}

// checkCut plays a text in pieces and compares the client's text with the cut of the whole.
func checkCut(t *testing.T, pieces, stops []string) {
	t.Helper()
	to := &answerSink{Answer: &Answer{}}
	sink := stopsOf(t, stops...).withLocalStops(to)
	o := &Output{Kind: Text}
	sink.Write(nil, Event{Kind: Start, Output: o})
	for i, piece := range pieces {
		sink.Write(nil, Event{Kind: Delta, Output: o, Text: []byte(piece)})
		so := strings.Join(pieces[:i+1], "")
		want, stop := cutText(rawjson.Unquote([]byte(`"`+so+`"`)), stops)
		if stop == "" {
			want = strings.TrimSuffix(want, heldText(want, stops))
		}
		half := strings.HasSuffix(want, "\uFFFD") && stop == ""
		if got := string(unescaped(o.Text)); got != want && !half {
			t.Fatalf("after %q with %q: got %q, want %q", pieces[:i+1], stops, got, want)
		}
	}
	sink.Write(nil, Event{Kind: End, Output: o})
	sink.Write(nil, Event{Kind: Finish, Finish: form.FinishLimit})
	want, stop := cutText(rawjson.Unquote([]byte(`"`+strings.Join(pieces, "")+`"`)), stops)
	c := to.Choices[0]
	if got := string(unescaped(o.Text)); got != want || rawjson.Unquote(c.Stop) != stop || (c.Finish == form.FinishStop) != (stop != "") {
		t.Errorf("%q with %q: got %q, stopped at %q (%v), want %q, %q", pieces, stops, got, c.Stop, c.Finish, want, stop)
	}
}

// TestStopsInPieces checks that a text in any pieces is cut like the whole text, and that no more of it is
// held than may begin a sequence.
func TestStopsInPieces(t *testing.T) {
	t.Parallel()
	letters := []string{"a", "b", "é", "\n", "\"", "\\", "😀", "😁", "\u2028", "/"}
	word := func(r *rand.Rand, longest, letterCount int) (s string) {
		for range 1 + r.IntN(longest) {
			s += letters[r.IntN(letterCount)]
		}
		return s
	}
	for seed := range uint64(5_000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		letterCount := 2 + r.IntN(len(letters)-1)
		var stops []string
		for range 1 + r.IntN(4) {
			stops = append(stops, word(r, 5, letterCount))
		}
		if checkCut(t, escaped(r, word(r, 20, letterCount)), stops); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzStops(f *testing.F) {
	f.Add("one END two", "END", "E", uint64(1))
	f.Add("aabaabaaab", "aabaaab", "baaab", uint64(2))
	f.Add("😀😁\ud7ff", "😁", "\x00", uint64(3))
	f.Fuzz(func(t *testing.T, text, first, second string, seed uint64) {
		text, first, second = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(first, "?"), strings.ToValidUTF8(second, "?")
		var stops []string
		for _, s := range []string{first, second} {
			if s != "" && len(s) < 1000 {
				stops = append(stops, s)
			}
		}
		if len(text) < 2000 && len(stops) > 0 {
			checkCut(t, escaped(rand.New(rand.NewPCG(seed, 1)), text), stops) //nolint:gosec // a test
		}
	})
}

// play writes an answer of several parts through the sink of stop sequences.
func play(t *testing.T, stops []string, events ...Event) *answerSink {
	t.Helper()
	to := &answerSink{Answer: &Answer{}}
	sink := stopsOf(t, stops...).withLocalStops(to)
	for _, e := range events {
		sink.Write(nil, e)
	}
	return to
}

// TestStopsAndOtherParts checks what happens to the parts of an answer beside a text that is cut.
func TestStopsAndOtherParts(t *testing.T) {
	t.Parallel()
	thought, text, call, late := &Output{Kind: Thinking}, &Output{Kind: Text}, &Output{Kind: ToolCall}, &Output{Kind: ToolCall}
	open, other := &Output{Kind: Text}, &Output{Kind: Text, Choice: 1}
	to := play(t, []string{"END"},
		Event{Kind: Start, Output: thought, Text: []byte("END?")}, Event{Kind: End, Output: thought},
		Event{Kind: Start, Output: call, Text: []byte("{")}, Event{Kind: Start, Output: open, Text: []byte("E")},
		Event{Kind: Start, Choice: 1, Output: other, Text: []byte("no EN")},
		Event{Kind: Start, Output: text, Text: []byte("yes END no")}, Event{Kind: Delta, Output: text, Text: []byte("more")},
		Event{Kind: Delta, Output: open, Text: []byte("x")}, Event{Kind: Delta, Output: call, Text: []byte("}")},
		Event{Kind: Start, Output: late, Text: []byte("{}")}, Event{Kind: End, Output: late},
		Event{Kind: Delta, Choice: 1, Output: other, Text: []byte("d")},
		Event{Kind: End, Output: text}, Event{Kind: End, Output: call}, Event{Kind: End, Output: open},
		Event{Kind: End, Choice: 1, Output: other},
		Event{Kind: Finish, Finish: form.FinishFiltered}, Event{Kind: Finish, Choice: 1, Finish: form.FinishLimit})
	var got []string
	for _, c := range to.Choices {
		for _, o := range c.Outputs {
			got = append(got, string(o.Text))
		}
		got = append(got, fmt.Sprintf("%d %s", c.Finish, c.Stop))
	}
	want := []string{"END?", "{}", "", "yes ", fmt.Sprintf(`%d "END"`, form.FinishStop), "no ENd", fmt.Sprintf("%d ", form.FinishLimit)}
	if !slices.Equal(got, want) || to.idles != 4 {
		t.Errorf("got %q and %d signs of life, want %q and 4", got, to.idles, want)
	}
	if c := play(t, []string{"END"}, Event{Kind: Start, Output: &Output{Kind: Text}, Text: []byte("END")},
		Event{Kind: Finish, Finish: form.FinishFailed}).Choices[0]; c.Finish != form.FinishFailed {
		t.Errorf("a failed end after a stop sequence is %v", c.Finish)
	}
}

// TestStopsAndLogprobs checks that the client gets the logprobs of the tokens that begin in its text.
func TestStopsAndLogprobs(t *testing.T) {
	t.Parallel()
	token := func(texts ...string) (list []byte) {
		for _, text := range texts {
			list = append(append(list, `,{"token":`...), append(rawjson.Quote(text), '}')...)
		}
		return List(list)
	}
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"with their texts": {[]Event{{Text: []byte("one E"), Logprobs: token("one", " E")},
			{Text: []byte("ND two"), Logprobs: token("ND", " two")}}, []string{"one", " E"}},
		"after their texts": {[]Event{{Text: []byte("one EN")}, {Logprobs: token("one", " EN")},
			{Text: []byte("D two")}, {Logprobs: token("D", " two")}}, []string{"one", " EN"}},
		"without a stop sequence": {[]Event{{Text: []byte("one E"), Logprobs: token("one", " E")}, {Logprobs: token("")}},
			[]string{"one", " E", ""}},
		"in one piece": {[]Event{{Text: []byte("oneEND"), Logprobs: token("one", "END")}}, []string{"one"}},
	} {
		o := &Output{Kind: Text}
		events := []Event{{Kind: Start, Output: o}}
		for _, e := range c.events {
			e.Kind, e.Output = Delta, o
			events = append(events, e)
		}
		play(t, []string{"END"}, append(events, Event{Kind: End, Output: o})...)
		if got, want := fmt.Sprintf("[%s]", o.Logprobs), string(token(c.want...)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestTakeStops checks which sequences go to the line.
func TestTakeStops(t *testing.T) {
	t.Parallel()
	r := &Request{Stops: [][]byte{[]byte(`"a"`), []byte(`""`), []byte(`" "`), []byte(`"b"`), []byte(`"c"`)}}
	taken, err := r.TakeStops(2, func(stop []byte) bool { return !IsBlank(rawjson.Contents(stop)) })
	if got := fmt.Sprintf("%s %s", taken, r.LocalStops); got != `["a","b"] [" " "c"]` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if taken, err = r.TakeStops(5, nil); string(taken) != `["a"," ","b","c"]` || r.LocalStops != nil || err != nil {
		t.Errorf("got %s, %s, %v", taken, r.LocalStops, err)
	}
	to := &answerSink{Answer: &Answer{}}
	if got := r.withLocalStops(to); got != sink(to) {
		t.Errorf("a request without local sequences has the sink %T", got)
	}
	long := &Request{Stops: [][]byte{rawjson.Quote(strings.Repeat("x", maxStopText))}}
	if _, err = long.TakeStops(0, nil); err == nil {
		t.Error("a very long sequence is accepted")
	}
}
