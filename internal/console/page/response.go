package page

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// Responder is the response to a visit: FullPage, Fragment, Redirect, CSV, Attachment or NoResponse.
type Responder interface {
	// send writes the response. If send returns an error, it has written nothing.
	send(v *Visit) error
}

// FullPage is a whole page.
type FullPage struct {
	Name    string // name of the template
	Title   ui.Words
	Main    any // data of the template
	Status  int // zero means 200
	Notices []ui.Notice
	Wide    bool // visitors without a session see the page in the width of a table
}

// WithNotice adds a notice about the action before this page. The parameter done of the page's address selects
// one of texts, as in `?done=saved`. An unknown value adds no notice.
func (p FullPage) WithNotice(v *Visit, texts map[string]ui.Words) FullPage {
	if text, ok := texts[v.Query("done")]; ok {
		p.Notices = append(p.Notices, ui.Notice{Tone: ui.OK, Text: text, Focus: true})
	}
	return p
}

func (p FullPage) send(v *Visit) error {
	layout := v.layout(p)
	layout.Announcements = v.announcements()
	body, err := v.section.pages[v.Session.Role()].Render(p.Name, layout)
	if err != nil {
		return err
	}
	setLanguage(v.Header(), v.Locale())
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Status != 0 {
		v.WriteHeader(p.Status)
	}
	_, _ = v.Write(body) // the client may have disconnected
	return nil
}

// Fragment is an element that console.js fetches to update an open page. The response is a 304 if the element
// has not changed.
type Fragment struct {
	Name string // name of the template
	Main any    // data of the template
}

func (f Fragment) send(v *Visit) error {
	body, err := v.section.pages[v.Session.Role()].RenderFragment(v.Locale(), f.Name, f.Main)
	if err != nil {
		return err
	}
	tag := entityTag(body)
	v.Header().Set("ETag", tag)
	if v.Request.Header.Get("If-None-Match") == tag {
		v.WriteHeader(http.StatusNotModified)
		return nil
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = v.Write(body)
	return nil
}

// Redirect redirects to an address by GET (303).
type Redirect string

// To redirects to a page below Base. done names the notice of the page; see FullPage.WithNotice.
func To(path, done string) Redirect {
	address := Base + path
	if done != "" {
		address += "?done=" + url.QueryEscape(done)
	}
	return Redirect(address)
}

// ToAddress redirects to the path of an address from a form, without the query. An address outside the console
// becomes the first page. done is as for To.
func ToAddress(address, done string) Redirect {
	path, _, _ := strings.Cut(consoleAddress(address), "?")
	return To(strings.TrimPrefix(path, Base), done)
}

func (r Redirect) send(v *Visit) error {
	v.Header().Set("Location", string(r))
	v.WriteHeader(http.StatusSeeOther)
	return nil
}

// CSV is a table as a CSV file. The rows are read and sent in batches, so a long table needs little memory.
type CSV struct {
	Name string // name of the file without .csv
	// Next returns the next batch of rows, and true if more batches follow.
	Next func() (ui.DataTable, bool, error)
}

// Bounds of a list's file, in rows.
const (
	batchRows   = 500
	maxFileRows = 200_000
)

// ListFile returns a list as a CSV file. read returns at most limit rows after the id after. next is the id to
// continue with, or an empty string after the last row.
func (v *Visit) ListFile(name string, read func(tx *store.Tx, after string, limit int) (t ui.DataTable, next string, err error)) CSV {
	after, rows := v.Query("after"), 0
	return CSV{Name: name, Next: func() (t ui.DataTable, more bool, err error) {
		next := ""
		err = v.View(func(tx *store.Tx) (err error) {
			t, next, err = read(tx, after, batchRows)
			return err
		})
		after, rows = next, rows+len(t.Rows)
		return t, after != "" && rows < maxFileRows, err
	}}
}

// CSVFile returns a short table as a CSV file.
func CSVFile(name string, t ui.DataTable) CSV {
	return CSV{Name: name, Next: func() (ui.DataTable, bool, error) { return t, false, nil }}
}

// Attachment is a file for the visitor to save.
type Attachment struct {
	Name string // with its extension
	Type string // the media type
	// Write writes the content.
	Write func(w io.Writer) error
}

// PDF returns a PDF file.
func PDF(name string, content []byte) Attachment {
	return Attachment{Name: name + ".pdf", Type: "application/pdf", Write: func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}}
}

func (f Attachment) send(v *Visit) error {
	v.Header().Set("Content-Type", f.Type)
	v.Header().Set("Content-Disposition", `attachment; filename="`+f.Name+`"`)
	if v.IsHead() {
		return nil
	}
	if err := f.Write(v); err != nil {
		panic(http.ErrAbortHandler) // an incomplete file must not look complete
	}
	return nil
}

func (c CSV) send(v *Visit) error {
	for first, more := true, true; more; first = false {
		var t ui.DataTable
		var err error
		if t, more, err = c.next(v); err != nil {
			if first {
				return err
			}
			panic(http.ErrAbortHandler) // an incomplete file must not look complete
		}
		if first {
			v.Header().Set("Content-Type", "text/csv; charset=utf-8")
			v.Header().Set("Content-Disposition", `attachment; filename="`+c.Name+`.csv"`)
		}
		if v.IsHead() {
			return nil // the first batch was read, so the file exists; HEAD needs no more
		}
		if err := t.CSV(v, first); err != nil {
			return nil // the client has disconnected
		}
	}
	return nil
}

// next reads the next batch. Each batch has the time limit of a page, even if the client reads the file slowly.
func (c CSV) next(v *Visit) (t ui.DataTable, more bool, err error) {
	ctx, done := v.DetachedContext(visitTimeout)
	defer done()
	v.ctx = ctx
	return c.Next()
}

// NoResponse is the response of a handler that has written the response itself.
type NoResponse struct{}

func (NoResponse) send(*Visit) error { return nil }

// entityTag returns the ETag of a response body.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// explainUncertain returns err, or a warning about a possible change if the database did not confirm a commit.
func explainUncertain(err error) error {
	if errors.Is(err, store.ErrUncertain) {
		return fault.New(fault.ServiceUnavailable,
			"The database did not confirm the change, so it may have been made. Check before you try again.").WithCause(err)
	}
	return err
}

// failure is the content of an error page.
type failure struct {
	Title, Text ui.Words
	Request     string
	Home        string // address of the first page of the section
	RetryHref   string // address of the retry, or empty if a retry cannot help
}

func (srv *server) showError(x *httpapi.Exchange, f *fault.Error) {
	x.Header().Del("WWW-Authenticate")
	if httpapi.RedirectTrailingSlash(x) {
		return
	}
	content := failure{Title: "Something went wrong", Text: faultWords(f), Request: x.ID, Home: Base}
	if operators := Base + "/operator"; x.Request.URL.Path == operators || strings.HasPrefix(x.Request.URL.Path, operators+"/") {
		content.Home = operators
	}
	switch {
	case f.Code == fault.NotFound:
		content.Title = "Not found"
		if x.Endpoint() == "unknown" {
			content.Text = "There is no such page. Check its address."
		}
	case f.Code == fault.PermissionDenied:
		content.Title = "Not allowed"
	case f.Status() == http.StatusServiceUnavailable:
		content.Title = "Temporarily unavailable"
		if f.Cause != nil {
			content.Text = "The service has a temporary problem. Running requests are not affected. Try again in a moment."
		}
		if x.Request.Method == http.MethodGet {
			content.RetryHref = x.Request.URL.RequestURI()
		}
	}
	locale := localeOf(x.Request)
	frame := ui.Layout{Title: content.Title, Locale: locale, Languages: Languages(locale), Brand: srv.brand,
		Theme: themeOf(x.Request), NoShortcuts: noShortcuts(x.Request), Home: content.Home, Main: content}
	contentType := "text/html; charset=utf-8"
	body, err := srv.common.Render("error", frame)
	if err != nil {
		srv.Log.Error("the error page cannot be rendered", "request", x.ID, "cause", err)
		contentType = "text/plain; charset=utf-8"
		body = []byte(f.Message())
	}
	setLanguage(x.Header(), locale)
	x.Header().Set("Content-Type", contentType)
	x.WriteHeader(f.Status())
	_, _ = x.Write(body) // the client may have disconnected
}
