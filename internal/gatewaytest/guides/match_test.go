package guides

import (
	"regexp"
	"strings"
)

// anyText stands for any text in a line, and alone for any lines.
const anyText = "…"

// escapes are what a terminal does not show.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\r")

// shown is what one sees of an output, in lines without white space at their ends.
func shown(output string) []string {
	text := strings.TrimRight(escapes.ReplaceAllString(output, ""), " \t\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return lines
}

// match tells whether lines are as wanted, and, where they are not, the first wanted
// line up to which nothing fits. Where more may follow, lines behind are let be.
func match(want, got []string, more bool) (ok bool, missing int) {
	want = shown(strings.Join(want, "\n"))
	fits := map[int]bool{0: true} // how many lines of got the wanted ones so far may take
	for i, pattern := range want {
		next := map[int]bool{}
		for taken := range fits {
			if pattern == anyText {
				for n := taken; n <= len(got); n++ {
					next[n] = true
				}
			} else if taken < len(got) && matchLine(pattern, got[taken]) {
				next[taken+1] = true
			}
		}
		if len(next) == 0 {
			return false, i
		}
		fits = next
	}
	return more || fits[len(got)], len(want)
}

// matchLine tells whether a text is as wanted.
func matchLine(pattern, text string) bool {
	parts := strings.Split(strings.TrimRight(pattern, " \t"), anyText)
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, behind, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = behind
	}
	return strings.HasSuffix(rest, parts[last])
}

// matchJSON tells whether an output is the JSON that is wanted, in whatever layout.
func matchJSON(want, got string) bool { return matchLine(compact(want), compact(got)) }

// compact takes the white space out of JSON that is not inside its strings.
func compact(text string) string {
	var b strings.Builder
	inside, escaped := false, false
	for _, r := range text {
		switch {
		case inside:
			inside = r != '"' || escaped
			escaped = r == '\\' && !escaped
		case r == '"':
			inside = true
		case strings.ContainsRune(" \t\r\n", r):
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
