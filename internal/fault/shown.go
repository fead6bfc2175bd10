package fault

import "strings"

// maxShown bounds a client's text in a message or a log row, in bytes.
const maxShown = 200

// Shown cuts a client's text to maxShown bytes of valid UTF-8.
func Shown(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
