package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/mail"
)

// Limits of typed texts.
const (
	maxName = 200  // characters of an account's or key's name
	maxNote = 4000 // characters of an operator's note about an account
)

// checkName is checkLabel for a required name.
func checkName(param, name, old string) (string, error) {
	name, err := checkLabel(param, name, old)
	if err == nil && name == "" {
		err = fault.At(fault.InvalidRequest, param, "{param} is required: give it a name that people recognise.")
	}
	return name, err
}

// checkLabel returns a name without surrounding blanks; the name may be empty. The stored name, old,
// may have invisible characters, because former versions accepted them.
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

// checkNote is checkLabel for a text of several lines.
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

// CheckVisible returns an error if a displayed text has an invisible character, because such a text
// can look like another text.
func CheckVisible(param, text string) error {
	previous := ' '
	for i, r := range text {
		if invisible(previous, text[i:]) {
			return fault.At(fault.InvalidRequest, param, "{param} has an invisible character (%U), which can make a text look like another "+
				"one. Delete it, or type the text by hand instead of pasting it.", r)
		}
		previous = r
	}
	return nil
}

// RemoveInvisible returns text without its invisible characters. Invalid UTF-8 becomes U+FFFD,
// because two invalid bytes could form a character after the bytes between them are removed.
func RemoveInvisible(text string) string {
	var visible strings.Builder
	previous := ' '
	for i, r := range text {
		if !invisible(previous, text[i:]) {
			visible.WriteRune(r)
			previous = r
		}
	}
	return visible.String()
}

// invisible reports whether the first character of text is invisible after the character previous,
// for example because it only changes the direction of other characters.
func invisible(previous rune, text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	if isShaping(r) {
		return !canBeShaped(previous, r) && !strings.HasPrefix(text[size:], keycap)
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

const nonJoiner, joiner = '\u200c', '\u200d'

// keycap, after a shaping character, turns the character before both into a keycap.
const keycap = "\u20e3"

// isShaping reports whether a character changes the look of the previous character, or joins or
// separates the next. Letters of some scripts and emoji need such characters.
func isShaping(r rune) bool {
	return r == nonJoiner || r == joiner || unicode.Is(unicode.Variation_Selector, r)
}

// canBeShaped reports whether a shaping character can change the look of the character previous.
// Latin, Greek and Cyrillic letters have only one look.
func canBeShaped(previous, shaper rune) bool {
	switch {
	case isShaping(previous):
		return unicode.Is(unicode.Variation_Selector, previous) && (shaper == nonJoiner || shaper == joiner)
	case previous <= unicode.MaxASCII, unicode.IsSpace(previous):
		return false
	}
	return !unicode.In(previous, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// ParseEmail returns the canonical form of an email address: a bare `local@domain`, in lower case.
// It does not check whether the address receives mail.
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
	email, err := mail.ParseAddress(strings.ToLower(strings.TrimSpace(text)))
	if err != nil {
		return "", fault.At(fault.InvalidRequest, "email", "email %s.", err)
	}
	return email, nil
}

// clip shortens a client's text for a message.
func clip(s string) string {
	const maxLength = 80
	if len(s) <= maxLength {
		return s
	}
	return strings.ToValidUTF8(s[:maxLength], "") + "…"
}
