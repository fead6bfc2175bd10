package fault

import "strings"

// maxShown bounds what a message or a log row repeats of a client's text, bytes.
const maxShown = 200

// Shown cuts a client's text to what may be repeated, as valid UTF-8.
func Shown(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
