package consoletest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Browser is a test client with cookies and the headers of a real browser.
type Browser struct {
	// Handler is the visited console. The default is the scene's console.
	Handler http.Handler
	// Cookies are the browser's cookies, by name.
	Cookies map[string]*http.Cookie
	// Headers replace or extend the usual headers of a browser.
	Headers map[string]string
}

// Browser returns a browser without a session.
func (s *Scene) Browser() *Browser {
	return &Browser{Handler: s.handler, Cookies: map[string]*http.Cookie{}, Headers: map[string]string{}}
}

// Answer is the response to a browser's request.
type Answer struct {
	*httptest.ResponseRecorder
	request string // method and path
}

// Get opens a page.
func (b *Browser) Get(path string) Answer { return b.Do(http.MethodGet, path, "") }

// Post sends a form with alternating field names and values.
func (b *Browser) Post(path string, fields ...string) Answer {
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	return b.Do(http.MethodPost, path, values.Encode())
}

// SignIn sends the form of the users' sign-in.
func (b *Browser) SignIn(email, password string) Answer {
	return b.Post("/console/sign-in", "email", email, "password", password)
}

// Do sends a request like a browser on a page of the console.
func (b *Browser) Do(method, path, body string) Answer {
	r := httptest.NewRequest(method, PublicURL+path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header.Set("User-Agent", "Test browser")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", PublicURL)
	}
	for _, c := range b.Cookies {
		r.AddCookie(c)
	}
	for name, value := range b.Headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	b.Handler.ServeHTTP(w, r)
	response := w.Result()
	defer func() { _, _ = io.Copy(io.Discard, response.Body) }()
	for _, c := range response.Cookies() {
		if c.MaxAge < 0 {
			delete(b.Cookies, c.Name)
			continue
		}
		b.Cookies[c.Name] = c
	}
	return Answer{w, method + " " + path}
}

// Want checks the status of an answer, and that its body or location contains each of parts.
func (a Answer) Want(t *testing.T, status int, parts ...string) {
	t.Helper()
	if a.Code != status {
		t.Errorf("%s: status %d, want %d: %s", a.request, a.Code, status, a.Body)
		return
	}
	for _, part := range parts {
		if !strings.Contains(a.Body.String()+a.Header().Get("Location"), part) {
			t.Errorf("%s: no %q in the location %q or the body %s", a.request, part, a.Header().Get("Location"), a.Body)
		}
	}
}

// Without checks that the body of an answer contains none of parts.
func (a Answer) Without(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(a.Body.String(), part) {
			t.Errorf("%s: the body has %q, want none: %s", a.request, part, a.Body)
		}
	}
}

// Once returns the once-value of a page's form.
func (a Answer) Once(t *testing.T) string {
	t.Helper()
	match := regexp.MustCompile(`name="once" value="([^"]+)"`).FindStringSubmatch(a.Body.String())
	if match == nil {
		t.Fatalf("%s: the page has no once-value: %s", a.request, a.Body)
	}
	return match[1]
}

// Secrets returns the secret keys on a page.
func (a Answer) Secrets() []string {
	return regexp.MustCompile(`sk-[0-9A-Za-z]{43}`).FindAllString(a.Body.String(), -1)
}
