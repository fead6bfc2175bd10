package show

import (
	"strings"
	"unicode/utf8"

	"tollgate/internal/console/ui"
)

// browserName returns the name of a browser and its system, such as `Firefox on Windows`. For other
// programs it returns the first word of the user agent, such as `curl`.
func browserName(agent string) ui.Words {
	// A user agent also names the browsers it imitates, so the order of the pairs matters.
	name := ui.Data(firstMatch(agent, [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"HeadlessChrome/", "Chromium"},
		{"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"FxiOS/", "Firefox"}, {"Safari/", "Safari"}}))
	system := firstMatch(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}})
	if name == "" {
		name = programName(agent)
	}
	if system == "" {
		return name
	}
	return ui.Sayf("%s on %s", name, system)
}

// maxProgramName is the maximum length of a program's name, in characters.
const maxProgramName = 30

// programName returns the first word of a program's user agent.
func programName(agent string) ui.Words {
	name, _, _ := strings.Cut(agent, "/")
	name, _, _ = strings.Cut(name, "(")
	name = strings.TrimSpace(name)
	switch {
	case agent == "":
		return "unnamed"
	case name == "" || name == "Mozilla": // most user agents start with Mozilla
		return "another program"
	case utf8.RuneCountInString(name) > maxProgramName:
		name = string([]rune(name)[:maxProgramName-1]) + "…"
	}
	return ui.Data(name)
}

// firstMatch returns the second string of the first pair whose first string is in text. It returns
// an empty string if there is no such pair.
func firstMatch(text string, pairs [][2]string) string {
	for _, pair := range pairs {
		if strings.Contains(text, pair[0]) {
			return pair[1]
		}
	}
	return ""
}
