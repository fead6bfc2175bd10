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

// ChangeFailed is the state of a scheduled change of the catalog that was not applied.
const ChangeFailed = "change_failed"

// maxText is the maximum length of the text in characters. Even if each character is escaped,
// the text fits into Discord's limit of 2,000.
const maxText = 900

// newMessage adds a text to an alert.
func newMessage(a Alert) message {
	text := a.text()
	return message{Alert: a, Text: slackEscapes.Replace(text), Content: discordEscapes.Replace(text),
		AllowedMentions: mentions{Parse: []string{}}}
}

// text returns a line of text about the alert.
func (a Alert) text() string {
	text := "tollgate: " + a.summary()
	if a.Cause != "" {
		text += ": " + a.Cause
	}
	return oneLine(text)
}

// summary describes the change without the cause.
func (a Alert) summary() string {
	if a.Change != "" {
		return "the scheduled change " + a.Change + " of the catalog was not applied"
	}
	var b strings.Builder
	b.WriteString("line " + a.Line)
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
	return oneLine(b.String())
}

// oneLine replaces control characters by spaces and shortens the text to maxText.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText-1]) + "…"
	}
	return text
}

// Escapes of the characters with a meaning in messages: three in Slack, and Markdown in
// Discord.
var (
	slackEscapes   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	discordEscapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`, ">", `\>`,
		"[", `\[`, "]", `\]`, "#", `\#`)
)
