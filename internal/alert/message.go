package alert

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// message is the posted JSON: the alert, and a text for incoming webhooks of Slack (text)
// and Discord (content). Both ignore unknown members, so one body serves all receivers.
type message struct {
	Alert
	Text    string `json:"text"`
	Content string `json:"content"`
	// AllowedMentions keeps Discord from notifying people named in a provider's message.
	AllowedMentions mentions `json:"allowed_mentions"`
}

type mentions struct {
	Parse []string `json:"parse"` // empty instead of null, to allow none
}

// States of a line or model back in service, and of an accepted key.
const (
	inService   = "in_service"
	keyAccepted = "key_accepted"
)

// maxWords limits the text in characters. If each one is escaped, it still fits into the
// 2,000 of Discord.
const maxWords = 900

// newMessage adds a text to an alert.
func newMessage(a Alert) message {
	words := a.words()
	return message{Alert: a, Text: slackEscapes.Replace(words), Content: discordEscapes.Replace(words),
		AllowedMentions: mentions{Parse: []string{}}}
}

// words returns a line of text about the alert.
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
		b.WriteString(" continues without a refused key (" + a.Key + ")")
	default:
		b.WriteString(" is out of service (" + a.State + ")")
	}
	if a.Cause != "" {
		b.WriteString(": " + a.Cause)
	}
	return oneLine(b.String())
}

// oneLine removes control characters from a text and shortens it.
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

// Characters with a meaning in messages: Slack has these three, also in mentions, and
// Discord has Markdown.
var (
	slackEscapes   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	discordEscapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`, ">", `\>`,
		"[", `\[`, "]", `\]`, "#", `\#`)
)
