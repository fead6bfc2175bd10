package tree

import (
	"errors"
	"strings"
	"testing"
)

// TestTextsAreOneTree tests that equal YAML and JSON are the same tree, and a printed tree reads
// back.
func TestTextsAreOneTree(t *testing.T) {
	t.Parallel()
	yaml := "\ufeffmodels:\n  - &x {b: 1.50, c: \"no\"}\n  - {<<: *x, c: \"yes\", l: [true, null, \"text\"]}\nlines:\n  - {id: \"a\"}\n"
	json := `{"models":[{"b":1.50,"c":"no"},{"b":1.50,"c":"yes","l":[true,null,"text"]}],"lines":[{"id":"a"}]}`
	want := ""
	for _, text := range []string{yaml, json} {
		root, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, printed := range []string{string(JSON(root, "")), string(JSON(root, "  ")), string(YAML(root))} {
			again, err := Read([]byte(printed))
			if err != nil {
				t.Fatalf("%s: %v", printed, err)
			}
			if want == "" {
				want = Flow(again)
			}
			if got := Flow(again); got != want {
				t.Errorf("%s\nis %s, want %s", printed, got, want)
			}
		}
	}
}

func TestUnreadableTextsSayWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "document: is empty",
		"a: \xff":                        "line 1, column 4: is not valid UTF-8",
		"a: 1\nb: [1":                    "line 2, column ",
		"a: 1\n---\nb: 2":                "several separated by ---",
		"a: !!binary x":                  "line 1, column 4: tags and directives",
		"a: *gone":                       `the anchor "gone"`,
		"a: {<<: 1}":                     "<< takes a mapping",
		strings.Repeat("[", 100):         "nested deeper than 32",
		strings.Repeat(`{"a":`, 100):     "nested deeper than 32",
		strings.Repeat("- ", 1000) + "x": "nested deeper than 32",
	} {
		_, err := Read([]byte(text))
		var unreadable *SyntaxError
		if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// TestAliasesAreCountedInFull: a few lines do not stand for a billion values.
func TestAliasesAreCountedInFull(t *testing.T) {
	t.Parallel()
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		n, m := string(rune('0'+i+1)), string(rune('0'+i))
		text += "a" + n + ": &a" + n + " [" + strings.Repeat("*a"+m+", ", 9) + "*a" + m + "]\n"
	}
	if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), "more than 500000 values") {
		t.Errorf("%v", err)
	}
}
