package page

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// languageCookie has the language chosen in the browser.
const languageCookie = "tollgate-language"

// languageNames are the names of languages, each in its own language.
var languageNames = map[mail.Locale]string{mail.English: "English", mail.Chinese: "简体中文"}

// LanguageName returns the name of a language in the language itself.
func LanguageName(locale mail.Locale) ui.Words { return ui.Data(languageNames[locale]) }

// Locale returns the language of the visitor: the user's choice, or else the browser's.
func (v *Visit) Locale() mail.Locale { return cmp.Or(v.Session.Locale, localeOf(v.Request)) }

// localeOf returns the language chosen in the browser, or else the best match for Accept-Language.
func localeOf(r *http.Request) mail.Locale {
	if choice, err := r.Cookie(languageCookie); err == nil && slices.Contains(mail.Locales(), mail.Locale(choice.Value)) {
		return mail.Locale(choice.Value)
	}
	return mail.LocaleOf(r.Header.Get("Accept-Language"))
}

// Languages returns all languages to choose from. chosen is the current language.
func Languages(chosen mail.Locale) (all []ui.Language) {
	for _, locale := range mail.Locales() {
		all = append(all, ui.Language{Locale: locale, Name: languageNames[locale], Current: locale == chosen})
	}
	return all
}

// setLanguage sets the headers of a page in a language.
func setLanguage(h http.Header, locale mail.Locale) {
	h.Set("Content-Language", string(locale))
	h.Add("Vary", "Accept-Language, Cookie")
}

// chooseLanguage saves the visitor's language in a cookie, and for the users signed in with this browser.
func (srv *server) chooseLanguage(v *Visit) (Responder, error) {
	field := ui.FormField{Name: "language", Label: "Language"}
	var values []string
	for _, locale := range mail.Locales() {
		values = append(values, string(locale))
	}
	out, err := srv.setChoice(v, languageCookie, &field, values...)
	locale := mail.Locale(field.Value)
	if err != nil || !slices.Contains(values, field.Value) {
		return out, err
	}
	for _, kind := range []account.SessionKind{account.UserSession, account.OperatorSession} {
		v.Session = account.ConsoleSession{}
		if err := v.loadSession(kind); err != nil {
			return nil, err
		}
		if user := v.Session.User.ID; user != "" {
			if err := v.Update(func(tx *store.Tx) error { return account.SetLocaleTx(tx, user, locale) }); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// faultValue matches a placeholder in the format of a fault's message.
var faultValue = regexp.MustCompile(`%%|%[+#]?[a-zA-Z]|\{param\}`)

// faultWords returns the message of a fault for translation. The key of its translation is the fault's format,
// with `%s` for each value.
func faultWords(f *fault.Error) ui.Words {
	if f.Format == "" || f.Rejection != nil {
		return ui.Data(f.Message())
	}
	if strings.Contains(f.Format, "%[") {
		return ui.Sayf(ui.Words(f.Format), f.Values...)
	}
	var values []any
	next := 0
	format := faultValue.ReplaceAllStringFunc(f.Format, func(verb string) string {
		switch {
		case verb == "%%":
			return verb
		case verb == "{param}":
			values = append(values, f.Param)
		default:
			values = append(values, fmt.Sprintf(verb, f.Values[next]))
			next++
		}
		return "%s"
	})
	return ui.Sayf(ui.Words(format), values...)
}
