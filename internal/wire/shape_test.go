package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckShape(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	objects := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	for name, test := range map[string]struct {
		data string
		most int
		want error
	}{
		"short":                    {`{"a":[1,2]}`, 1, nil},
		"as deep as allowed":       {nested(maxNested), maxValues, nil},
		"deeper":                   {nested(maxNested + 1), maxValues, ErrShape},
		"objects":                  {objects(maxNested), maxValues, nil},
		"deeper objects":           {objects(maxNested + 1), maxValues, ErrShape},
		"cut":                      {strings.Repeat("[", 8<<20), maxValues, ErrShape},
		"brackets in a text":       {`{"a":"` + strings.Repeat("[", 5000) + `"}`, maxValues, nil},
		"a text with quotes":       {`{"a":"\"` + strings.Repeat("[{", 5000) + `\\"}`, maxValues, nil},
		"behind a text":            {`{"a":"\\",` + nested(maxNested), maxValues, ErrShape},
		"siblings":                 {`[` + strings.Repeat("[],", 3000) + `[]]`, maxValues, nil},
		"as many as allowed":       {`[` + strings.Repeat("0,", 1999) + `0]`, 2000, nil},
		"more":                     {`[` + strings.Repeat("0,", 2000) + `0]`, 2000, ErrShape},
		"empty ones":               {`[` + strings.Repeat("[],", 1500) + `0]`, 2000, ErrShape},
		"commas in a text":         {`["` + strings.Repeat(",", 3000) + `"]`, 2000, nil},
		"a text that does not end": {`["` + strings.Repeat("[", 3000), maxValues, nil},
		"after too many closings":  {strings.Repeat("]", 3000) + nested(10), maxValues, nil},
	} {
		if err := CheckValues([]byte(test.data), test.most); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// TestEventOfBrackets: an event that nests too deep never leaves the reader,
// also when its data came in lines.
func TestEventOfBrackets(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"one line": "data: " + strings.Repeat("[", 2000) + "\n\n",
		"lines":    strings.Repeat("data: "+strings.Repeat("[", 900)+"\n", 3) + "\n",
	} {
		r := NewEventReader(strings.NewReader("data: {}\n\n"+stream), 1<<20)
		if e, err := r.Next(); err != nil || string(e.Data) != "{}" {
			t.Fatal(string(e.Data), err)
		}
		if e, err := r.Next(); !errors.Is(err, ErrShape) || e.Data != nil {
			t.Errorf("%s: %d bytes, %v", name, len(e.Data), err)
		}
	}
}

// TestReaderAsksForRoom: buffers beyond those of ordinary events grow by leave
// alone.
func TestReaderAsksForRoom(t *testing.T) {
	t.Parallel()
	const event = 300 << 10
	stream := "data: {}\n\ndata: " + strings.Repeat("x", event) + "\ndata: y\n\n"
	var asked int64
	r := NewEventReader(strings.NewReader(stream), 1<<20)
	r.Reserve = func(n int64) bool { asked += n; return true }
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if asked < 2*event || asked > 5*event { // the buffer and the joined lines
		t.Errorf("asked for %d bytes", asked)
	}
	r = NewEventReader(strings.NewReader(stream), 1<<20)
	r.Reserve = func(int64) bool { return false }
	if _, err := r.Next(); err != nil {
		t.Error("an ordinary event:", err)
	}
	if _, err := r.Next(); !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
}
