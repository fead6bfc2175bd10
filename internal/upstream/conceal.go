package upstream

import (
	"cmp"
	"errors"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// A provider's message may repeat the prompt, but the log, the request log and the operators' pages
// must not. They omit a message that shares a run with a string value of the request. A run is
// three words, or 16 bytes of letters and digits: 16 Latin letters, 8 Cyrillic letters or 6 Chinese
// characters.
const (
	runWords = 3
	runBytes = 16
	// maxCompared is the maximum length of a compared request, in bytes. The message about a longer
	// request is omitted.
	maxCompared = 1 << 20
)

// concealedMessage replaces a message that may repeat the request.
const concealedMessage = "(the provider's message is left out, because it may repeat words of the request)"

// providerError is a cause reported by a provider. names holds the error's type and code.
type providerError struct{ names, message string }

// Error implements error.
func (e *providerError) Error() string {
	if e.names == "" || e.message == "" {
		return e.names + e.message
	}
	return e.names + ": " + e.message
}

// ProviderError returns the cause of a failure reported by a provider. Conceal may remove the
// message, but keeps the names. The cause is at most maxCause bytes long.
func ProviderError(names, message string) error {
	names = tidy(names, 2*maxName)
	return &providerError{names, tidy(message, maxCause-len(": ")-len(names))}
}

// Conceal removes the provider's message from the cause if the message may repeat words of
// the JSON request. Conceal also removes type and code if they are not identifiers and may
// repeat the request. The client still gets the message. A code that repeats the request
// becomes invalid_request, because the request log contains the code.
func (f *Failure) Conceal(request rawjson.Pieces) {
	if f.Cause == nil || f.Code == fault.ClientClosed || request.Len() == 0 {
		return
	}
	if code := string(f.Code); f.Rejection != nil && !identifiers(code) && repeats(code, request) {
		e := *f.Rejection
		f.Code, e.Code = fault.InvalidRequest, fault.InvalidRequest
		f.Rejection = &e
	}
	original := splitCause(f.Cause)
	names, message := original.names, original.message
	if !identifiers(names) && repeats(names, request) {
		names = ""
	}
	if repeats(message, request) {
		message = concealedMessage
	}
	if names != original.names || message != original.message {
		f.Cause = &providerError{names, cmp.Or(message, concealedMessage)}
	}
}

// identifiers reports whether names looks like the type and code of an error, such as
// `invalid_request_error: InvalidParameter.Image`.
func identifiers(names string) bool {
	for i, r := range names {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', strings.ContainsRune("_-./:", r):
		case r == ' ' && i > 0 && names[i-1] == ':':
		default:
			return false
		}
	}
	return true
}

// splitCause returns the names and the message of a cause. A cause other than a providerError has
// no names.
func splitCause(cause error) *providerError {
	var reported *providerError
	if errors.As(cause, &reported) && reported.Error() == cause.Error() { // a wrapped cause has a longer text
		return reported
	}
	return &providerError{message: cause.Error()}
}

// repeats reports whether message shares a run with a string value of the request. It returns true
// if the request cannot be compared.
func repeats(message string, request rawjson.Pieces) bool {
	runs := map[string]bool{}
	for _, text := range [...]string{message, unescape(message)} {
		anyRun(text, func(run []byte) bool { runs[string(run)] = true; return false })
	}
	if len(runs) == 0 {
		return false
	}
	if request.Len() > maxCompared {
		return true
	}
	body := request.Bytes()
	if rawjson.CheckShape(body) != nil || !gjson.ValidBytes(body) {
		return true
	}
	shared := func(run []byte) bool { return runs[string(run)] }
	return anyText(gjson.ParseBytes(body), true, func(text string) bool {
		return anyRun(text, shared) || strings.Contains(text, `\`) && anyRun(unescape(text), shared)
	})
}

// anyText reports whether found returns true for a string in v. If top is true, anyText skips the
// member `model`, because the gateway has set the member.
func anyText(v gjson.Result, top bool, found func(text string) bool) (hit bool) {
	if v.Type == gjson.String {
		return found(v.Str)
	}
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(key, member gjson.Result) bool {
			hit = !(top && key.Str == "model") && anyText(member, false, found)
			return !hit
		})
	}
	return hit
}

// anyRun reports whether found returns true for a run of text. A run is given as words in lower case
// separated by one space, or as letters and digits without spaces. Underscores and hyphens do not
// end a word, so that an identifier is one word.
func anyRun(text string, found func(run []byte) bool) bool {
	words, letters := make([]byte, 0, len(text)), make([]byte, 0, len(text))
	var starts [runWords]int // starts of the last words
	count, inside := 0, false
	for _, r := range text + " " {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			r = unicode.ToLower(r)
			if !inside {
				inside, count = true, count+1
				words = append(words, ' ')
				copy(starts[:], starts[1:])
				starts[runWords-1] = len(words)
			}
			words, letters = utf8.AppendRune(words, r), utf8.AppendRune(letters, r)
			if n := len(letters); n >= runBytes && found(letters[n-runBytes:]) {
				return true
			}
		case inside && r != '_' && r != '-':
			inside = false
			if count >= runWords && found(words[starts[0]:]) {
				return true
			}
		}
	}
	return false
}

// escape matches an escaped character of JSON, Python or a URL, or an HTML tag.
var escape = regexp.MustCompile(`\\+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[a-z])|%[0-9a-fA-F]{2}|</?[A-Za-z][^<>]*>`)

// unescape returns text with escapes decoded and tags replaced by spaces.
func unescape(text string) string {
	text = escape.ReplaceAllStringFunc(text, func(s string) string {
		s = strings.TrimLeft(s, `\`)
		switch code, err := strconv.ParseUint(s[1:], 16, 32); {
		case err != nil: // a line break, a tab or a tag
			return " "
		case s[0] == 'u':
			return string(rune(code))
		default:
			return string([]byte{byte(code)})
		}
	})
	return html.UnescapeString(text)
}
