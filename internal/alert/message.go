package alert

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// message is what is posted: the alert, and beside it the same in words where the
// incoming webhooks of Slack (text) and of Discord (content) look for them. Both take
// what they do not know for nothing, so one body does for all receivers.
type message struct {
	Alert
	Text    string `json:"text"`
	Content string `json:"content"`
	// AllowedMentions keeps Discord from calling anybody whom a provider's words name.
	AllowedMentions mentions `json:"allowed_mentions"`
}

type mentions struct {
	Parse []string `json:"parse"` // empty, and not null: none
}

// The states of a return, of a line or a part of it and of a key.
const (
	inService   = "in_service"
	keyAccepted = "key_accepted"
)

// maxWords is the longest that words are, in characters: twice as many, as when each
// is escaped, are still below Discord's 2,000.
const maxWords = 900

// newMessage puts an alert into words.
func newMessage(a Alert) message {
	words := a.words()
	return message{Alert: a, Text: slackEscapes.Replace(words), Content: discordEscapes.Replace(words),
		AllowedMentions: mentions{Parse: []string{}}}
}

// words say what has happened, in one line.
func (a Alert) words() string {
	var b strings.Builder
	b.WriteString("tollgate: line " + a.Line)
	if a.Model != "" {
		b.WriteString(", model " + a.Model)
	}
	if a.Form != "" {
		b.WriteString(" in the form " + a.Form)
	}
	if a.Tools {
		b.WriteString(" with tools")
	}
	switch {
	case a.State == inService:
		b.WriteString(" is back in service")
	case a.Key != "" && a.State == keyAccepted:
		b.WriteString(" has a key that is accepted again (" + a.Key + ")")
	case a.Key != "":
		b.WriteString(" goes on without a key that is refused (" + a.Key + ")")
	default:
		b.WriteString(" is out of service (" + a.State + ")")
	}
	if a.Cause != "" {
		b.WriteString(": " + a.Cause)
	}
	return oneLine(b.String())
}

// oneLine takes control characters out of a text and bounds it.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxWords {
		text = string([]rune(text)[:maxWords-1]) + "…"
	}
	return text
}

// What has a meaning of its own in the receivers' messages: in Slack's these three
// alone, which also begin what calls people; in Discord's, Markdown.
var (
	slackEscapes   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	discordEscapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`, ">", `\>`,
		"[", `\[`, "]", `\]`, "#", `\#`)
)
