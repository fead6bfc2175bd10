package ui

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"tollgate/internal/mail"
)

// Words is a text of the console, shown in the visitor's language. A constant is the English text, which is
// also the key of the translations. Sayf makes Words with values, and Data makes Words without a translation.
type Words string

// The first byte of Words that are not a constant.
const (
	dataMark   = '\x01' // a text without translation follows
	phraseMark = '\x02' // a JSON array follows: the format and the values, all of them Words
	fieldMark  = '\x03' // a JSON array follows: a message, the name of a field in the message, and the label of the field
)

// Data returns a text without translation, such as a name or an identifier.
func Data(text string) Words {
	if text == "" {
		return ""
	}
	return Words(string(rune(dataMark))) + Words(text)
}

// Sayf returns a format with values in place of its verbs: `%s` or, to change the order, `%[2]s`. Values of the
// type Words are translated too.
func Sayf(format Words, values ...any) Words {
	parts := []Words{format}
	for _, value := range values {
		parts = append(parts, asWords(value))
	}
	return join(phraseMark, parts...)
}

// messageOf returns message with label in place of the name of a field.
func messageOf(message Words, name string, label Words) Words {
	return join(fieldMark, message, Data(name), label)
}

// join returns parts as a JSON array behind a mark.
func join(mark byte, parts ...Words) Words {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = string(part)
	}
	raw, _ := json.Marshal(texts) // cannot fail
	return Words(string(rune(mark))) + Words(raw)
}

// String returns the text in English.
func (w Words) String() string { return Texts(nil).Say(w) }

// MarshalText returns the text in English.
func (w Words) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Texts are the translations of Words into one language. The nil Texts are English.
type Texts map[Words]string

// Say returns the text of w, in English if there is no translation.
func (t Texts) Say(w Words) string {
	if w == "" {
		return ""
	}
	switch w[0] {
	case dataMark:
		return string(w[1:])
	case phraseMark:
		format, values := t.split(w)
		return fmt.Sprintf(format, values...)
	case fieldMark:
		message, names := t.split(w)
		name, label := fmt.Sprint(names[0]), fmt.Sprint(names[1])
		return replaceName(message, name, label)
	}
	if text, ok := t[w]; ok {
		return text
	}
	return string(w)
}

// split returns the texts of joined Words: the first part, and the other parts.
func (t Texts) split(w Words) (first string, others []any) {
	var parts []Words
	_ = json.Unmarshal([]byte(w[1:]), &parts) // join made the array
	for _, part := range parts[1:] {
		others = append(others, t.Say(part))
	}
	return t.Say(parts[0]), others
}

// replaceName replaces the name of a field by its label, because messages of the API have the name. A name
// without an underscore is replaced only at the beginning, because it may be a common word.
func replaceName(message, name, label string) string {
	if strings.Contains(name, "_") {
		return strings.ReplaceAll(message, name, label)
	}
	if rest, ok := strings.CutPrefix(message, name+" "); ok {
		return label + " " + rest
	}
	return message
}

//go:embed texts/*.yaml
var textFiles embed.FS

// ReadTexts returns the translations into a language.
func ReadTexts(locale mail.Locale) (t Texts, err error) {
	if locale == mail.English {
		return nil, nil
	}
	raw, err := textFiles.ReadFile("texts/" + string(locale) + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read the texts of the console: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(raw, &t, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read the texts of the console in %s: %w", locale, err)
	}
	return t, nil
}
