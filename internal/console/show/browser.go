package show

import "strings"

// browserName is what a browser calls itself, in words: `Firefox on Windows`. What
// is not known is shown as it says.
func browserName(agent string) string {
	// Browsers name those that they want to be taken for, so the order counts.
	name := firstIn(agent, [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"HeadlessChrome/", "Chromium"},
		{"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"FxiOS/", "Firefox"}, {"Safari/", "Safari"}})
	system := firstIn(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}})
	switch {
	case agent == "":
		return "unnamed"
	case name == "" || system == "":
		return agent
	}
	return name + " on " + system
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
