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

// checkName returns a required name without surrounding blanks. was: as checkLabel.
func checkName(param, name, was string) (string, error) {
	name, err := checkLabel(param, name, was)
	if err == nil && name == "" {
		err = fault.At(fault.InvalidRequest, param, "{param} is required: give it a name that people recognise.")
	}
	return name, err
}

// checkLabel returns a name without surrounding blanks; the name may be empty. The stored name
// (was) may have invisible characters, accepted by former versions.
func checkLabel(param, name, was string) (string, error) {
	name = strings.TrimSpace(name)
	if utf8.RuneCountInString(name) > maxName {
		return "", fault.At(fault.InvalidRequest, param, "{param} must have at most %d characters.", maxName)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fault.At(fault.InvalidRequest, param, "{param} must be one line of text without control characters.")
	}
	if name == was {
		return name, nil
	}
	return name, CheckSeen(param, name)
}

// checkNote returns a text of several lines without surrounding blanks; the text may be empty. was
// is as for checkLabel.
func checkNote(note, was string) (string, error) {
	note = strings.TrimSpace(strings.ReplaceAll(note, "\r\n", "\n"))
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if utf8.RuneCountInString(note) > maxNote || !utf8.ValidString(note) || strings.ContainsFunc(note, control) {
		return "", fault.At(fault.InvalidRequest, "note", "note must have at most %d characters, without control characters.", maxNote)
	}
	if note == was {
		return note, nil
	}
	return note, CheckSeen("note", note)
}

// CheckSeen returns an error if a displayed text has an invisible character, with which it can look
// like another text.
func CheckSeen(param, text string) error {
	before := ' '
	for at, r := range text {
		if unseen(before, text[at:]) {
			return fault.At(fault.InvalidRequest, param, "{param} has a character that nobody sees (%U), with which a text can look like another "+
				"one. Delete it, or type the text by hand: pasting may bring it along.", r)
		}
		before = r
	}
	return nil
}

// Seen returns text without its invisible characters. Invalid UTF-8 becomes U+FFFD: two invalid
// bytes could form a character once the bytes between them are removed.
func Seen(text string) string {
	var seen strings.Builder
	before := ' '
	for at, r := range text {
		if !unseen(before, text[at:]) {
			seen.WriteRune(r)
			before = r
		}
	}
	return seen.String()
}

// unseen reports whether a text begins with a character that, after before, is invisible and
// changes how other characters are read: it turns their direction, ends their line or hides between
// them.
func unseen(before rune, text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	if shapes(r) {
		return !shaped(before, r) && !strings.HasPrefix(text[size:], keycap)
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

const parts, joins = '\u200c', '\u200d'

// keycap turns the character before it into a keycap, with a shaping character between them.
const keycap = "\u20e3"

// shapes reports whether a character changes the look of the previous character, or joins the next:
// letters of some scripts and emoji need such characters.
func shapes(r rune) bool {
	return r == parts || r == joins || unicode.Is(unicode.Variation_Selector, r)
}

// shaped reports whether the character before a shaping character can look different because of it.
// Characters of the scripts of addresses and programs cannot.
func shaped(before, by rune) bool {
	switch {
	case shapes(before):
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
		err = CheckSeen("email", email)
	}
	if err != nil {
		return "", err
	}
	return email, nil
}

// readEmail is ParseEmail for comparison with stored addresses: former versions accepted invisible
// characters.
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
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
