package upstream

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/wire/rawjson"

	"github.com/tidwall/gjson"
)

// Longest texts that are kept of what a provider says, in bytes.
const (
	maxMessage = 2000 // a passed-on message
	maxName    = 120  // a passed-on code, type or param
	maxCause   = 300  // a cause in the request log
	maxDetails = 16   // entries of a list of faults, in number
	maxNotice  = 1 << 20
)

// notice is what an error body says, whatever shape its vendor gave it.
type notice struct {
	message string
	code    string // as a string, also when it came as a number
	kind    string // error.type
	param   string
	signals []string      // every name in the body that may tell the reason, in lower case
	wait    time.Duration // how long it asks to wait; 0: it does not say
}

// readNotice finds the error in a JSON body. ok is false when there is none:
// the body is no JSON object, one that holds an ordinary answer, or longer or
// deeper than an error can be.
//
// Shapes met in the wild: {error:{…}} (most), {error:"text",code} (xAI),
// {object:"error",message,…} (Mistral, vLLM), {detail:…} (FastAPI),
// {code,message} and {code,msg} (DashScope, relays), {base_resp:{…}} (MiniMax),
// {x_groq:{error}} (Groq, inside a chunk), [{error:{…}}] and
// {promptFeedback:{blockReason}} (Gemini).
func readNotice(body []byte) (n notice, ok bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || len(body) > maxNotice || (body[0] != '{' && body[0] != '[') || rawjson.CheckShape(body) != nil ||
		!gjson.ValidBytes(body) {
		return notice{}, false
	}
	root := gjson.ParseBytes(body)
	if root.IsArray() {
		root = root.Get("0")
	}
	if !root.IsObject() {
		return notice{}, false
	}
	if e := root.Get("error"); e.IsObject() {
		return objectNotice(root, e), true
	} else if e.Type == gjson.String && e.Str != "" {
		n := objectNotice(root, root)
		n.message = tidy(e.Str, maxMessage)
		return n, true
	}
	if e := root.Get("x_groq.error"); e.Type == gjson.String && e.Str != "" {
		return notice{message: tidy(e.Str, maxMessage)}, true
	}
	if s := root.Get("base_resp.status_code"); s.Exists() && s.Int() != 0 {
		n := notice{code: name(s), message: tidy(root.Get("base_resp.status_msg").String(), maxMessage)}
		n.signals = []string{baseResp + n.code}
		return n, true
	}
	if r := root.Get("promptFeedback.blockReason"); r.Type == gjson.String && r.Str != "" {
		n := notice{code: name(r), message: tidy(root.Get("promptFeedback.blockReasonMessage").String(), maxMessage)}
		n.signals = []string{blocked + n.code}
		return n, true
	}
	if answered(root) {
		return notice{}, false
	}
	return bareNotice(root)
}

// answered reports whether root holds the body of an answer in one of the
// chat forms, so that a stray `message` or `code` beside it is no error.
func answered(root gjson.Result) bool {
	for _, member := range []string{"choices", "output", "content", "candidates"} {
		if r := root.Get(member); r.IsArray() {
			return true
		}
	}
	return false
}

// bareNotice reads the shapes without an `error` member.
func bareNotice(root gjson.Result) (notice, bool) {
	if d := root.Get("detail"); d.Exists() && d.Type != gjson.Null {
		n := notice{message: tidy(d.String(), maxMessage)}
		if first := d.Get("0"); first.IsObject() {
			n.message = tidy(first.Get("msg").String(), maxMessage)
			var path []string
			for _, step := range first.Get("loc").Array() {
				path = append(path, step.String())
			}
			n.param = tidy(strings.TrimPrefix(strings.Join(path, "."), "body."), maxName)
		}
		for i, kind := range append(d.Get("#.type").Array(), root.Get("error_type")) { // fal
			if s := text(kind); s != "" && i < maxDetails {
				n.signals = append(n.signals, strings.ToLower(tidy(s, maxName)))
			}
		}
		return n, true
	}
	n := objectNotice(root, root)
	if n.message == "" {
		n.message = tidy(root.Get("msg").String(), maxMessage)
	}
	return n, n.message != "" && (n.code != "" || root.Get("object").Str == "error" || !root.Get("id").Exists())
}

// objectNotice reads the error object e of a body.
func objectNotice(root, e gjson.Result) notice {
	n := notice{
		message: tidy(text(e.Get("message")), maxMessage),
		code:    name(e.Get("code")),
		kind:    tidy(text(e.Get("type")), maxName),
		param:   tidy(text(e.Get("param")), maxName),
	}
	for _, s := range []string{
		n.code, n.kind,
		text(e.Get("status")),                 // Gemini
		text(e.Get("innererror.code")),        // Azure
		text(e.Get("metadata.error_type")),    // OpenRouter
		text(e.Get("metadata.provider_code")), // OpenRouter
		text(e.Get("details.#.reason|0")),     // Gemini
		text(e.Get("details.error_code")),     // Anthropic
	} {
		if s != "" {
			n.signals = append(n.signals, strings.ToLower(tidy(s, maxName)))
		}
	}
	if flagged := e.Get("metadata.flagged_input"); flagged.Exists() && flagged.Type != gjson.Null {
		n.signals = append(n.signals, "flagged_input")
	}
	if wait, err := time.ParseDuration(text(e.Get("details.#.retryDelay|0"))); err == nil { // Gemini
		n.wait = bounded(float64(wait))
	}
	return n
}

// text returns a JSON string's value; anything else is empty.
func text(r gjson.Result) string {
	if r.Type == gjson.String {
		return r.Str
	}
	return ""
}

// name returns a JSON string or number as a string; anything else is empty.
func name(r gjson.Result) string {
	switch r.Type {
	case gjson.String:
		return tidy(r.Str, maxName)
	case gjson.Number:
		return tidy(r.Raw, maxName)
	default:
		return ""
	}
}

// tidy makes a stranger's text fit for a log line and a JSON answer: valid
// UTF-8, no control characters, no longer than limit bytes. A message keeps its
// line breaks, since people read it as it was written; all else is one line.
func tidy(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
		for len(s) > 0 { // do not leave half a character at the end
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && limit == maxMessage:
			return r
		case r == '\n', r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s))
	if cut {
		s += "…"
	}
	return s
}
