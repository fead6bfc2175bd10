package fault

import "strings"

// maxExcerpt bounds a client's text in a message or a log row, in bytes.
const maxExcerpt = 200

// Excerpt cuts a client's text to maxExcerpt bytes of valid UTF-8.
func Excerpt(text string) string {
	if len(text) > maxExcerpt {
		text = text[:maxExcerpt] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
