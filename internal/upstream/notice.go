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

// Limits for texts of a provider, in bytes unless a line says otherwise.
const (
	maxMessage = 2000 // a passed-on message
	maxName    = 120  // a passed-on code, type or param
	maxCause   = 300  // a cause in the request log
	maxDetails = 16   // entries of a list of faults, in number
	maxDepth   = 4    // levels of a nested message
	maxNotice  = 1 << 20
)

// notice is the content of an error body in any format.
type notice struct {
	message    string
	code       string // as a string, even if the body has a number
	errorType  string // error.type
	param      string
	statusName string        // the name of an error with a numeric code (Gemini)
	signals    []string      // all error names in the body, in lower case
	wait       time.Duration // the wait requested by the provider, or 0
}

// readNotice finds the error in a JSON body. ok is false if the body is not a JSON object,
// holds an ordinary answer, or is too long or too deep for an error. failed is true if the
// response has an error status.
//
// Known formats: {error:{…}} (most), {error:"text",code} (xAI), {object:"error",message,…}
// (Mistral, vLLM), {message,type,param,code} (Cerebras), {detail:…} (FastAPI, ElevenLabs),
// {status,title,detail} (NVIDIA), {id,message} (Cohere), {Message} (Amazon), {code,message} and
// {code,msg} (DashScope, relays), {err_code,err_msg} (Deepgram), {base_resp:{…}} (MiniMax), {x_groq:{error}} (Groq, inside a
// chunk), [{error:{…}}] and {promptFeedback:{blockReason}} (Gemini).
func readNotice(body []byte, failed bool) (n notice, ok bool) {
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
		return objectNotice(e), true
	} else if e.Type == gjson.String && e.Str != "" {
		n := objectNotice(root)
		n.message, n.param = readMessage(e)
		return n, true
	}
	if e := root.Get("x_groq.error"); e.Type == gjson.String && e.Str != "" {
		return notice{message: tidy(e.Str, maxMessage)}, true
	}
	if s := root.Get("base_resp.status_code"); s.Exists() && s.Int() != 0 {
		n := notice{code: stringOrNumber(s), message: tidy(root.Get("base_resp.status_msg").String(), maxMessage)}
		n.signals = []string{baseRespMark + n.code}
		return n, true
	}
	if r := root.Get("promptFeedback.blockReason"); r.Type == gjson.String && r.Str != "" {
		n := notice{code: stringOrNumber(r), message: tidy(root.Get("promptFeedback.blockReasonMessage").String(), maxMessage)}
		n.signals = []string{blockReasonMark + n.code}
		return n, true
	}
	if isAnswer(root) {
		return notice{}, false
	}
	return bareNotice(root, failed)
}

// isAnswer reports whether root is an answer in one of the chat forms. A `message` or
// `code` in an answer is not an error.
func isAnswer(root gjson.Result) bool {
	for _, member := range []string{"choices", "output", "content", "candidates"} {
		if r := root.Get(member); r.IsArray() {
			return true
		}
	}
	return false
}

// bareNotice reads the formats without an `error` member.
func bareNotice(root gjson.Result, failed bool) (notice, bool) {
	if d := root.Get("detail"); d.Exists() && d.Type != gjson.Null {
		n := notice{message: tidy(d.String(), maxMessage)}
		if message, _ := readMessage(d); d.IsObject() && message != "" {
			n.message = message
			n.signals = objectNotice(d).signals // ElevenLabs
		}
		if first := d.Get("0"); first.IsObject() {
			n.message = tidy(first.Get("msg").String(), maxMessage)
			n.param = tidy(fieldPath(first.Get("loc")), maxName)
		}
		for i, kind := range append(d.Get("#.type").Array(), root.Get("error_type")) { // fal
			if s := stringValue(kind); s != "" && i < maxDetails {
				n.signals = append(n.signals, strings.ToLower(tidy(s, maxName)))
			}
		}
		return n, true
	}
	n := objectNotice(root)
	for _, member := range [...]string{"err_code", "category"} { // Deepgram
		if name := stringValue(root.Get(member)); name != "" {
			n.signals = append(n.signals, strings.ToLower(tidy(name, maxName)))
		}
	}
	for _, member := range [...]string{"msg", "Message", "err_msg", "errors.0.message", "errors.0"} {
		if n.message == "" {
			n.message = tidy(stringValue(root.Get(member)), maxMessage)
		}
	}
	return n, n.message != "" && (failed || n.code != "" || root.Get("object").Str == "error" || !root.Get("id").Exists())
}

// objectNotice reads the error object e of a body.
func objectNotice(e gjson.Result) notice {
	n := notice{
		code:      stringOrNumber(e.Get("code")),
		errorType: tidy(stringValue(e.Get("type")), maxName),
	}
	n.message, n.param = readMessage(e.Get("message"))
	if param := stringValue(e.Get("param")); param != "" {
		n.param = tidy(param, maxName)
	}
	if raw := e.Get("metadata.raw"); n.message == "Provider returned error" && raw.Exists() { // OpenRouter
		if message, param := readMessage(raw); message != "" {
			n.message, n.param = message, param
		}
	}
	if e.Get("code").Type == gjson.Number {
		n.statusName = tidy(stringValue(e.Get("status")), maxName)
	}
	if number := trailingNumber(n.message); number != "" && e.Get("http_code").Exists() { // MiniMax
		n.code = number
		n.signals = append(n.signals, baseRespMark+number)
	}
	_, amazon, _ := strings.Cut(stringValue(e.Get("__type")), "#")
	for _, s := range []string{
		n.code, n.errorType, amazon,
		stringValue(e.Get("status")),                 // Gemini
		stringValue(e.Get("innererror.code")),        // Azure
		stringValue(e.Get("inner_error.code")),       // Azure
		stringValue(e.Get("metadata.error_type")),    // OpenRouter
		stringValue(e.Get("metadata.provider_code")), // OpenRouter
		stringValue(e.Get("metadata.limit_source")),  // OpenRouter
		stringValue(e.Get("details.#.reason|0")),     // Gemini
		stringValue(e.Get("details.error_code")),     // Anthropic
	} {
		if s != "" {
			n.signals = append(n.signals, strings.ToLower(tidy(s, maxName)))
		}
	}
	if flagged := e.Get("metadata.flagged_input"); flagged.Exists() && flagged.Type != gjson.Null {
		n.signals = append(n.signals, "flagged_input")
	}
	if wait, err := time.ParseDuration(stringValue(e.Get("details.#.retryDelay|0"))); err == nil { // Gemini
		n.wait = boundWait(float64(wait))
	}
	return n
}

// readMessage returns the readable message in r: a string, an object with a string, a list of faults
// (Mistral), or any of these encoded as JSON in a string. param is the path of the list's first fault.
func readMessage(r gjson.Result) (message, param string) { return readMessageAt(r, 0) }

// readMessageAt is readMessage for a value nested depth levels deep. Deeper values than maxDepth are
// ignored.
func readMessageAt(r gjson.Result, depth int) (message, param string) {
	if depth > maxDepth {
		return "", ""
	}
	if r.Type == gjson.String && strings.ContainsAny(r.Str[:min(1, len(r.Str))], "{[") && gjson.Valid(r.Str) &&
		rawjson.CheckShape([]byte(r.Str)) == nil {
		if message, param = readMessageAt(gjson.Parse(r.Str), depth+1); message != "" {
			return message, param
		}
	}
	if !r.IsObject() && !r.IsArray() {
		return tidy(stringValue(r), maxMessage), ""
	}
	for _, member := range [...]string{"error", "detail", "message", "msg"} {
		if message, param = readMessageAt(r.Get(member), depth+1); r.IsObject() && message != "" {
			return message, param
		}
	}
	var faults []string
	for i, item := range r.Array() {
		msg, path := stringValue(item.Get("msg")), fieldPath(item.Get("loc"))
		if msg == "" || i == maxDetails {
			break
		}
		if path != "" {
			msg += " (" + path + ")"
		}
		if i == 0 {
			param = tidy(path, maxName)
		}
		faults = append(faults, msg)
	}
	return tidy(strings.Join(faults, "; "), maxMessage), param
}

// fieldPath returns the path in a FastAPI location, without the leading "body".
func fieldPath(loc gjson.Result) string {
	var path []string
	for _, step := range loc.Array() {
		path = append(path, step.String())
	}
	return strings.TrimPrefix(strings.Join(path, "."), "body.")
}

// trailingNumber returns the number in brackets at the end of a message (MiniMax), or "".
func trailingNumber(message string) string {
	number, found := strings.CutSuffix(message, ")")
	number = number[strings.LastIndexByte(number, '(')+1:]
	if !found || len(number) != 4 || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return number
}

// stringValue returns the value of a JSON string, or "" for any other value.
func stringValue(r gjson.Result) string {
	if r.Type == gjson.String {
		return r.Str
	}
	return ""
}

// stringOrNumber returns a JSON string or number as a string, or "" for any other value.
func stringOrNumber(r gjson.Result) string {
	switch r.Type {
	case gjson.String:
		return tidy(r.Str, maxName)
	case gjson.Number:
		return tidy(r.Raw, maxName)
	default:
		return ""
	}
}

// tidy makes a text safe for a log line and a JSON answer: valid UTF-8, no control
// characters, at most limit bytes. Messages keep their line breaks; other texts become
// one line.
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
