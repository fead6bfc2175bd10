package row

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzText checks that any text is stored as valid JSON and loses only NUL characters.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "a\x00b", `\u0000`, `\\u0000`, "\\\x00", `"\u0000"`, "\x00\x00", `ends in \`, "\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stored := Text(Trace{Attempts: []TracedAttempt{{Line: "a", Message: text, Cause: text}}})
		if strings.ContainsRune(stored, 0) {
			t.Fatalf("Text(%q) = %q, want no NUL", text, stored)
		}
		var decoded Trace
		if err := Decode(stored, &decoded); err != nil {
			t.Fatalf("Decode(%s): %v", stored, err)
		}
		raw, err := json.Marshal(text) // the same without NUL; invalid UTF-8 is replaced
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if want = strings.ReplaceAll(want, "\x00", ""); decoded.Attempts[0].Message != want {
			t.Errorf("Decode returned %q, want %q", decoded.Attempts[0].Message, want)
		}
		if strings.Contains(stored, `\u0000`) && !strings.Contains(stored, `\\u0000`) { // PostgreSQL rejects \u0000 in JSON
			t.Errorf("Text(%q) = %s, want no escaped NUL", text, stored)
		}
	})
}

// TestTraceBounds checks that a long trace keeps its beginning and its end.
func TestTraceBounds(t *testing.T) {
	t.Parallel()
	var tr Trace
	for i := range 3 * maxSteps {
		tr.Step(StepTakenOver, int64(i), "")
	}
	tr.Step(stepSucceeded, 7, "")
	if len(tr.Steps) != maxSteps || tr.Steps[0].At != 0 || tr.Steps[len(tr.Steps)-1].Name != stepSucceeded {
		t.Errorf("%d steps from %+v to %+v, want %d with the first and the last", len(tr.Steps), tr.Steps[0], tr.Steps[len(tr.Steps)-1], maxSteps)
	}
	c := tr.Clone()
	c.Steps[0].At, c.Attempts = 99, append(c.Attempts, TracedAttempt{})
	if tr.Steps[0].At == 99 || len(tr.Attempts) > 0 {
		t.Error("a change of the clone changed the original")
	}
}

// textRow is a row of RecordColumns with the same JSON in all its JSON columns.
type textRow string

// Scan implements store.Row. The JSON columns are the 9th, 12th and 19th.
func (r textRow) Scan(dest ...any) error {
	for _, i := range []int{8, 11, 18} {
		*dest[i].(*string) = string(r)
	}
	return nil
}

// TestScanRecord checks that all JSON columns are decoded, and that invalid JSON is an error.
func TestScanRecord(t *testing.T) {
	t.Parallel()
	r, err := ScanRecord(textRow(`{"tier":"1K","references":[{}],"steps":[{"name":"queued"}]}`))
	if err != nil || r.Plan.Tier != "1K" || len(r.Materials.References) != 1 || len(r.Trace.Steps) != 1 {
		t.Errorf("got plan %+v, materials %+v, trace %+v and error %v", r.Plan, r.Materials, r.Trace, err)
	}
	if _, err := ScanRecord(textRow(`{`)); err == nil {
		t.Error("ScanRecord accepted invalid JSON")
	}
}
