package page_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// TestLanguageCookie checks that odd values of the cookie and of the form choose no language and add no header,
// and that no cache mixes the languages of a page.
func TestLanguageCookie(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		for _, path := range []string{"/console/sign-in", "/console/prices", "/console/status", "/console/none"} {
			for value, want := range map[string]string{"": "en", "zh-CN": "zh-CN", "zh-cn": "en", "../zh-CN": "en", "<b>": "en",
				"zh-CN%0d%0aX-Evil: 1": "en", strings.Repeat("zh-CN", 1000): "en"} {
				b.Cookies["tollgate-language"] = &http.Cookie{Name: "tollgate-language", Value: value}
				got := b.Get(path)
				h := got.Header()
				if h.Get("Content-Language") != want || h.Get("Cache-Control") != "no-store" || h.Get("Vary") != "Accept-Language, Cookie" ||
					!strings.Contains(got.Body.String(), `<html lang="`+want+`"`) {
					t.Errorf("%s with the cookie %.40q: got the headers %v, want %s and no-store", path, value, h, want)
				}
			}
		}
		b.Cookies = map[string]*http.Cookie{}
		for _, value := range []string{"tlh", "zh-CN; Path=/", "zh-CN\r\nSet-Cookie: tollgate=evil", "__Host-tollgate"} {
			got := b.Post("/console/language", "language", value)
			got.Want(t, http.StatusSeeOther)
			if cookies := got.Result().Cookies(); len(cookies) != 1 || cookies[0].Value != "" || len(b.Cookies) != 0 {
				t.Errorf("the form with %q: got the cookies %v, want none", value, cookies)
			}
		}
		b.Headers["Referer"] = "https://evil.example/console/../../x"
		b.Post("/console/language", "language", "zh-CN").Want(t, http.StatusSeeOther, "/console")
		b.Get("/console/sign-in").Want(t, http.StatusOK, `<html lang="zh-CN"`)
	})
}

// TestLanguageOfMails checks that mails are in the language of the browser of the last sign-in, until the user chooses
// one.
func TestLanguageOfMails(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		wantMail := func(when string, locale mail.Locale, words string) {
			t.Helper()
			id, text := s.WroteMail(), ""
			s.Update(func(tx *store.Tx) error {
				return tx.QueryRow(`SELECT body_text FROM mail_outbox WHERE id = $1`, id).Scan(&text)
			})
			if !strings.Contains(text, words) {
				t.Errorf("%s: the mail is not in %s:\n%s", when, locale, text)
			}
		}
		signIn := func(language string) *consoletest.Browser {
			b := s.Browser()
			b.Headers["Accept-Language"] = language
			b.SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
			return b
		}
		const english, chinese = "Mail works", "邮件功能正常"
		wantMail("before the first sign-in", mail.English, english)
		signIn("zh-CN,zh;q=0.9")
		wantMail("after a sign-in with a Chinese browser", mail.Chinese, chinese)
		b := signIn("en")
		wantMail("after a sign-in with an English browser", mail.English, english)
		b.Post("/console/language", "language", string(mail.Chinese)).Want(t, http.StatusSeeOther)
		signIn("en")
		wantMail("after a choice", mail.Chinese, chinese)
	})
}
