package mail

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/goccy/go-yaml"
	"golang.org/x/text/language"
)

// Locale is a language of texts, as in the attribute lang of HTML.
type Locale string

// The languages. Each one has a file in the folder texts.
const (
	English Locale = "en"
	Chinese Locale = "zh-CN"
)

// Locales returns all languages.
func Locales() []Locale { return []Locale{English, Chinese} }

// matcher finds the best of Locales.
var matcher = language.NewMatcher([]language.Tag{language.English, language.SimplifiedChinese})

// LocaleOf returns the language that fits a browser's header Accept-Language best.
func LocaleOf(acceptLanguage string) Locale {
	_, best := language.MatchStrings(matcher, acceptLanguage)
	return Locales()[best]
}

//go:embed texts
var embedded embed.FS

// texts are the texts of all mails, and the templates of their two forms.
type texts struct {
	byLocale map[Locale]map[string]string
	text     *template.Template
	html     *htmltemplate.Template
}

// readTexts reads the embedded files.
func readTexts() (t texts, err error) {
	t.byLocale = map[Locale]map[string]string{}
	for _, locale := range Locales() {
		raw, err := embedded.ReadFile("texts/" + string(locale) + ".yaml")
		if err != nil {
			return t, fmt.Errorf("read the texts of mails: %w", err)
		}
		var catalog map[string]string
		if err := yaml.UnmarshalWithOptions(raw, &catalog, yaml.Strict()); err != nil {
			return t, fmt.Errorf("read the texts of mails in %s: %w", locale, err)
		}
		t.byLocale[locale] = catalog
	}
	if t.text, err = template.ParseFS(embedded, "texts/letter.txt"); err == nil {
		t.html, err = htmltemplate.ParseFS(embedded, "texts/letter.html")
	}
	if err != nil {
		return t, fmt.Errorf("read the templates of mails: %w", err)
	}
	return t, nil
}

// content is a mail with its final texts.
type content struct{ subject, text, html string }

// letterData is the input of both templates.
type letterData struct {
	Locale     Locale
	Service    string
	Subject    string
	Paragraphs []string
	Link       string
	Action     string // the label of the link
	Footer     string // who sent the mail, why, and where to get help
	Color      string // of the button
	// Preferences is the address of the page on which the reader chooses the mails, and Choose its label.
	// Both are empty if there is no choice.
	Preferences, Choose string
}

// buttonColor is the color of buttons without a setting.
const buttonColor = "#1f5fd6"

// render fills in the texts of a letter. A missing text is an error.
func (t texts) render(o Options, preferences string, l Letter) (c content, err error) {
	catalog, ok := t.byLocale[l.Locale]
	if !ok {
		l.Locale, catalog = English, t.byLocale[English]
	}
	replaced := []string{"{service}", oneLine(o.Service), "{contact}", oneLine(o.Contact),
		"{to}", oneLine(l.To), "{account}", oneLine(l.AccountName)}
	for name, value := range l.Values {
		replaced = append(replaced, "{"+name+"}", oneLine(value))
	}
	replacer := strings.NewReplacer(replaced...)
	fill := func(key string) string {
		text, ok := catalog[key]
		if !ok && err == nil {
			err = fmt.Errorf("there is no text %s in %s", key, l.Locale)
		}
		return strings.TrimSpace(replacer.Replace(text))
	}
	kind := string(l.Kind)
	data := letterData{Locale: l.Locale, Service: o.Service, Color: cmp.Or(o.Color, buttonColor),
		Subject: fill(kind + ".subject"), Link: l.Link,
		Footer:     fill("footer") + " " + fill("reason."+l.Kind.Topic().reason()),
		Paragraphs: strings.Split(fill(kind+".text"), "\n\n")}
	if i := slices.Index(data.Paragraphs, "{prices}"); i >= 0 {
		data.Paragraphs = slices.Replace(data.Paragraphs, i, i+1, priceParagraphs(l.Prices, fill)...)
	}
	if o.Contact != "" {
		data.Footer += " " + fill("contact")
	}
	if l.Kind.Topic().choosable() {
		data.Preferences, data.Choose = preferences, fill("choose")
	}
	if l.Link != "" {
		data.Action = fill(kind + ".action")
	}
	if err != nil {
		return c, err
	}
	var text, html bytes.Buffer
	if err := t.text.Execute(&text, data); err != nil {
		return c, fmt.Errorf("fill in the text: %w", err)
	}
	if err := t.html.Execute(&html, data); err != nil {
		return c, fmt.Errorf("fill in the HTML: %w", err)
	}
	return content{data.Subject, text.String(), html.String()}, nil
}

// PriceUnits returns the units of prices that have a text.
func PriceUnits() []string {
	return []string{"million_tokens", "million_characters", "minute", "thousand_searches", "thousand_requests", "image", "second", "clip"}
}

// priceParagraphs returns a paragraph for each model, with a line for each price. fill returns
// the text of a key.
func priceParagraphs(models []ModelPrices, fill func(key string) string) (paragraphs []string) {
	for _, m := range models {
		unit := oneLine(m.Unit)
		if slices.Contains(PriceUnits(), unit) {
			unit = fill("price_unit." + unit)
		}
		lines := []string{strings.NewReplacer("{model}", oneLine(m.Model), "{unit}", unit).Replace(fill("price_model"))}
		for _, p := range m.Changes {
			item := strings.ReplaceAll(fill("price."+p.Item), "{name}", oneLine(p.Name))
			if p.Tokens != "" {
				item = strings.NewReplacer("{item}", item, "{tokens}", p.Tokens).Replace(fill("price_above"))
			}
			lines = append(lines, item+": "+cmp.Or(p.Before, "–")+" → "+cmp.Or(p.After, "–"))
		}
		paragraphs = append(paragraphs, strings.Join(lines, "\n"))
	}
	return paragraphs
}

func (t Topic) choosable() bool { return slices.Contains(ChoosableTopics(), t) }

// reason returns REASON of the text reason.REASON. The text says why the reader gets the mail.
func (t Topic) reason() string {
	if t.choosable() {
		return "account"
	}
	return string(t)
}

// oneLine replaces control characters by spaces, so that a value begins no line and no header.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
