package account

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// Limits of typed texts.
const (
	maxName  = 200  // characters of an account's or key's name
	maxNote  = 4000 // characters of an operator's note about an account
	maxEmail = 254  // bytes of an address (RFC 5321, path length)
)

// checkName is checkLabel for a required name.
func checkName(param, name, old string) (string, error) {
	name, err := checkLabel(param, name, old)
	if err == nil && name == "" {
		err = fault.At(fault.InvalidRequest, param, "{param} is required: give it a name that people recognise.")
	}
	return name, err
}

// checkLabel returns a name without surrounding blanks; the name may be empty. old is the stored
// name, which may have invisible characters if a former version accepted them.
func checkLabel(param, name, old string) (string, error) {
	name = strings.TrimSpace(name)
	if utf8.RuneCountInString(name) > maxName {
		return "", fault.At(fault.InvalidRequest, param, "{param} must have at most %d characters.", maxName)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fault.At(fault.InvalidRequest, param, "{param} must be one line of text without control characters.")
	}
	if name == old {
		return name, nil
	}
	return name, CheckVisible(param, name)
}

// checkNote returns a text of several lines without surrounding blanks; the text may be empty. old
// is as for checkLabel.
func checkNote(note, old string) (string, error) {
	note = strings.TrimSpace(strings.ReplaceAll(note, "\r\n", "\n"))
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if utf8.RuneCountInString(note) > maxNote || !utf8.ValidString(note) || strings.ContainsFunc(note, control) {
		return "", fault.At(fault.InvalidRequest, "note", "note must have at most %d characters, without control characters.", maxNote)
	}
	if note == old {
		return note, nil
	}
	return note, CheckVisible("note", note)
}

// CheckVisible returns an error if a displayed text has an invisible character, with which it can
// look like another text.
func CheckVisible(param, text string) error {
	before := ' '
	for at, r := range text {
		if invisible(before, text[at:]) {
			return fault.At(fault.InvalidRequest, param, "{param} has an invisible character (%U), which can make a text look like another "+
				"one. Delete it, or type the text by hand instead of pasting it.", r)
		}
		before = r
	}
	return nil
}

// RemoveInvisible returns text without its invisible characters. Invalid UTF-8 becomes U+FFFD: two
// invalid bytes could form a character once the bytes between them are removed.
func RemoveInvisible(text string) string {
	var visible strings.Builder
	before := ' '
	for at, r := range text {
		if !invisible(before, text[at:]) {
			visible.WriteRune(r)
			before = r
		}
	}
	return visible.String()
}

// invisible reports whether text begins with a character that, after before, is invisible and
// changes how other characters are read: it changes their direction, ends their line or is hidden
// between them.
func invisible(before rune, text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	if isShaping(r) {
		return !canBeShaped(before, r) && !strings.HasPrefix(text[size:], keycap)
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

const parts, joins = '\u200c', '\u200d'

// keycap, after a shaping character, turns the character before it into a keycap.
const keycap = "\u20e3"

// isShaping reports whether a character changes the look of the previous character, or joins the
// next. Letters of some scripts and emoji need such characters.
func isShaping(r rune) bool {
	return r == parts || r == joins || unicode.Is(unicode.Variation_Selector, r)
}

// canBeShaped reports whether the character before a shaping character can look different because
// of it. Latin, Greek and Cyrillic letters cannot.
func canBeShaped(before, by rune) bool {
	switch {
	case isShaping(before):
		return unicode.Is(unicode.Variation_Selector, before) && (by == parts || by == joins)
	case before <= unicode.MaxASCII, unicode.IsSpace(before):
		return false
	}
	return !unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// ParseEmail returns the canonical form of an email address: a bare
// `local@domain`, in lower case. It does not ask whether mail arrives there.
func ParseEmail(text string) (string, error) {
	email, err := readEmail(text)
	if err == nil {
		err = CheckVisible("email", email)
	}
	if err != nil {
		return "", err
	}
	return email, nil
}

// readEmail is ParseEmail for comparison with stored addresses, which may have invisible characters
// from former versions.
func readEmail(text string) (string, error) {
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

// clip shortens a client's text for a message.
func clip(s string) string {
	const maxLength = 80
	if len(s) <= maxLength {
		return s
	}
	return strings.ToValidUTF8(s[:maxLength], "") + "…"
}
