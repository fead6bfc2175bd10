package rawjson

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckShape(t *testing.T) {
	t.Parallel()
	objects := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	for name, test := range map[string]struct {
		data string
		most int
		want error
	}{
		"short":                    {`{"a":[1,2]}`, 1, nil},
		"as deep as allowed":       {nested(maxDepth), maxValues, nil},
		"deeper":                   {nested(maxDepth + 1), maxValues, ErrShape},
		"objects":                  {objects(maxDepth), maxValues, nil},
		"deeper objects":           {objects(maxDepth + 1), maxValues, ErrShape},
		"cut":                      {strings.Repeat("[", 8<<20), maxValues, ErrShape},
		"brackets in a text":       {`{"a":"` + strings.Repeat("[", 5000) + `"}`, maxValues, nil},
		"a text with quotes":       {`{"a":"\"` + strings.Repeat("[{", 5000) + `\\"}`, maxValues, nil},
		"behind a text":            {`{"a":"\\",` + nested(maxDepth), maxValues, ErrShape},
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

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
