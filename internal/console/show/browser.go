package show

import (
	"strings"
	"unicode/utf8"
)

// browserName is what a browser calls itself, in words: `Firefox on Windows`.
// Programs that are no browsers are called as they say, without the rest: `curl`.
func browserName(agent string) string {
	// Browsers name those that they want to be taken for, so the order counts.
	name := firstIn(agent, [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"HeadlessChrome/", "Chromium"},
		{"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"FxiOS/", "Firefox"}, {"Safari/", "Safari"}})
	system := firstIn(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}})
	if name == "" {
		name = programName(agent)
	}
	if system == "" {
		return name
	}
	return name + " on " + system
}

// longestName is how much of what a program calls itself is shown, in characters.
const longestName = 30

// programName is the first word that a program names itself with.
func programName(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	name, _, _ = strings.Cut(name, "(")
	name = strings.TrimSpace(name)
	switch {
	case agent == "":
		return "unnamed"
	case name == "" || name == "Mozilla": // which everybody says
		return "another program"
	case utf8.RuneCountInString(name) > longestName:
		return string([]rune(name)[:longestName-1]) + "…"
	}
	return name
}

// firstIn returns the word of the first sign that a text has; empty: it has none.
func firstIn(text string, signs [][2]string) string {
	for _, s := range signs {
		if strings.Contains(text, s[0]) {
			return s[1]
		}
	}
	return ""
}
