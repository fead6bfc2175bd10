package account

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// Limits of what people may enter.
const (
	maxName  = 200  // characters of an account's or key's name
	maxNote  = 4000 // characters of what operators note about an account
	maxEmail = 254  // bytes of an address (RFC 5321, path length)
)

// checkName returns a required name without surrounding blanks.
func checkName(param, name string) (string, error) {
	name, err := checkLabel(param, name)
	if err == nil && name == "" {
		err = fault.At(fault.InvalidRequest, param, "%s is required: give it a name that people recognise.", param)
	}
	return name, err
}

// checkLabel returns a name that may be empty, without surrounding blanks.
func checkLabel(param, name string) (string, error) {
	name = strings.TrimSpace(name)
	if utf8.RuneCountInString(name) > maxName {
		return "", fault.At(fault.InvalidRequest, param, "%s must have at most %d characters.", param, maxName)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fault.At(fault.InvalidRequest, param, "%s must be one line of text without control characters.", param)
	}
	return name, nil
}

// checkNote returns a text of several lines, which may be empty, without
// surrounding blanks.
func checkNote(note string) (string, error) {
	note = strings.TrimSpace(strings.ReplaceAll(note, "\r\n", "\n"))
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if utf8.RuneCountInString(note) > maxNote || !utf8.ValidString(note) || strings.ContainsFunc(note, control) {
		return "", fault.At(fault.InvalidRequest, "note", "note must have at most %d characters, without control characters.", maxNote)
	}
	return note, nil
}

// ParseEmail returns the canonical form of an email address: a bare
// `local@domain`, in lower case. It does not ask whether mail arrives there.
func ParseEmail(text string) (string, error) {
	bad := fault.At(fault.InvalidRequest, "email", "email must be a plain address like name@example.com, at most %d bytes.", maxEmail)
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > maxEmail || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}) {
		return "", bad
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return "", bad
	}
	local, domain, _ := strings.Cut(text, "@")
	if local == "" || len(local) > 64 || domain == "" || strings.ContainsAny(domain, "@[]") ||
		strings.HasPrefix(domain, ".") || strings.HasSuffix(domain, ".") {
		return "", bad
	}
	return text, nil
}

// clip shortens what a stranger sent to what fits in a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
