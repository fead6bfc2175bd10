package guides

import (
	"regexp"
	"strings"
)

// escapes matches the escape sequences and carriage returns in a terminal's output.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\r")

// visible returns an output without escapes, and without white space at the end of lines.
func visible(output string) string {
	lines := strings.Split(escapes.ReplaceAllString(output, ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

const (
	anyText = "…" // any text in a line; as a line, any lines

	id   = `\b[a-z]+_[0-9a-z]{26}\b`
	hint = `\bsk-\w{4}\.\.\.\w{4}\b`
	key  = `\bsk-[A-Za-z0-9]{20,}`
)

var (
	// varying matches the texts of a sample output whose values change with each run. A duration
	// includes the surrounding spaces, because a longer duration shifts the column.
	varying = regexp.MustCompile(anyText + `|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?|^\d{4}-\d\d-\d\d|` +
		` *\b(?:\d+ms|0s)\b *|` + id + `|` + hint)

	// placeholder matches the texts in a command or file that fill replaces.
	placeholder = regexp.MustCompile(`\b(?:sk-|[a-z]+_)` + anyText + `|` + id + `|` + hint)

	printed = regexp.MustCompile(id + `|` + key)
	spaces  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\s+`)
)

// texts has the real values of a run by placeholder. The value of sk-… is the last printed key. The
// value of acct_01m84x8k5ye9nm422fe2y6fm98 is the id in the place of this sample in an output.
type texts map[string]string

// fill replaces placeholders in a command or a file.
func (t texts) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(sample string) string {
		if value, ok := t[sample]; ok {
			return value
		}
		if value, ok := t[kind(sample)]; ok {
			return value
		}
		return sample
	})
}

// kind returns the placeholder of any id of the same kind: acct_… or sk-….
func kind(id string) string { return id[:strings.IndexAny(id, "_-")+1] + anyText }

// learn records the ids and keys in an output.
func (t texts) learn(output string) {
	for _, value := range printed.FindAllString(output, -1) {
		t[kind(value)] = value
	}
}

// pattern returns a regular expression for lines of output, and the sample of each of its groups.
func (t texts) pattern(want []string) (pattern string, samples []string) {
	for _, line := range want {
		if line == anyText {
			pattern += `(?:.*\n)*?`
			continue
		}
		end := 0
		for _, at := range varying.FindAllStringIndex(line, -1) {
			pattern += regexp.QuoteMeta(line[end:at[0]])
			end = at[1]
			switch sample := line[at[0]:at[1]]; {
			case sample == anyText:
				pattern += `.*?`
			case t[sample] != "":
				pattern += regexp.QuoteMeta(t[sample])
			case strings.Contains(sample, "_"):
				pattern += `(` + sample[:strings.Index(sample, "_")] + `_[0-9a-z]{26})`
				samples = append(samples, sample)
			case strings.HasPrefix(sample, "sk-"):
				pattern += `(` + hint + `)`
				samples = append(samples, sample)
			case strings.Contains(sample, ":"):
				pattern += `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?`
			case strings.Contains(sample, "-"):
				pattern += `\d{4}-\d\d-\d\d`
			default:
				pattern += ` *[\d.]+m?s *`
			}
		}
		pattern += regexp.QuoteMeta(line[end:]) + `\n`
	}
	return pattern, samples
}

// match compares an output with the wanted lines and returns a description of the difference, or the
// empty string. If more is true, further lines may follow.
func (t texts) match(want []string, output string, more bool) (difference string) {
	want = strings.Split(visible(strings.Join(want, "\n")), "\n")
	if want[0] == "" {
		want = nil
	}
	if output += "\n"; output == "\n" {
		output = ""
	}
	pattern, samples := t.pattern(want)
	if !more {
		pattern += `\z`
	}
	if groups := regexp.MustCompile(`\A` + pattern).FindStringSubmatch(output); groups != nil {
		for i, sample := range samples {
			t[sample] = groups[i+1]
		}
		return ""
	}
	for n := range want {
		if pattern, _ := t.pattern(want[:n+1]); !regexp.MustCompile(`\A` + pattern).MatchString(output) {
			return "missing: " + want[n]
		}
	}
	return "the output has more lines"
}

// matchJSON reports whether an output is the wanted JSON, regardless of white space.
func (t texts) matchJSON(want, output string) bool {
	return t.match([]string{compact(want)}, compact(output), false) == ""
}

// compact removes white space outside of strings.
func compact(json string) string {
	return spaces.ReplaceAllStringFunc(json, func(match string) string {
		if match[0] == '"' {
			return match
		}
		return ""
	})
}
