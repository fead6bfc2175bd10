package recraft

import (
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// Recraft has codes for few of its errors, so these words in the message distinguish the errors.
var (
	moderationWords = regexp.MustCompile(`(?i)moderat|nsfw|inappropriate|content polic|prohibited|unsafe`)
	creditWords     = regexp.MustCompile(`(?i)(not enough|insufficient|no more|out of)\W+(\w+\W+)?(credit|unit|balance|fund)`)
	materialWords   = regexp.MustCompile(`(?i)(decode|download|read|load|invalid|unsupported|too large)[^.]{0,40}\bimage|` +
		`image[^.]{0,40}(decoded|downloaded|too large|format)`)
)

// submitFailure returns the failure for an unsuccessful response.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	doc := gjson.ParseBytes(reply.Body)
	message := doc.Get("message")
	clientError := reply.Status >= 400 && reply.Status < 500 && reply.Status != http.StatusTooManyRequests
	if !gjson.ValidBytes(reply.Body) || message.Type != gjson.String || !clientError {
		return reply.SubmitFailure(kind)
	}
	code := doc.Get("code").String()
	switch {
	case creditWords.MatchString(message.Str):
		f := reply.SubmitFailureAs(kind, "insufficient_quota", message.Str)
		f.Unproven = true // the message may quote these words from a prompt
		return f
	case moderationWords.MatchString(message.Str):
		code = "moderation_blocked"
	case materialWords.MatchString(message.Str):
		code = "invalid_image"
	}
	return reply.SubmitFailureAs(kind, code, message.Str)
}
