package page

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"

	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// Responder answers a visit: FullPage, Fragment, Redirect, CSV or NoResponse.
type Responder interface {
	// send answers the visit. If send returns an error, it has written nothing.
	send(v *Visit) error
}

// FullPage is a whole page.
type FullPage struct {
	Name    string // name of the template
	Title   string
	Main    any // data of the template
	Status  int // zero means 200
	Notices []ui.Notice
}

// WithNotice adds a notice about the act before this page. The page's address names the notice, as in
// `?done=saved`, and words has its text. Names outside words add no notice.
func (p FullPage) WithNotice(v *Visit, words map[string]string) FullPage {
	if text, ok := words[v.Query("done")]; ok {
		p.Notices = append(p.Notices, ui.Notice{Tone: ui.OK, Text: text, Focus: true})
	}
	return p
}

func (p FullPage) send(v *Visit) error {
	whole, err := v.section.pages.Render(p.Name, v.layout(p))
	if err != nil {
		return err
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Status != 0 {
		v.WriteHeader(p.Status)
	}
	_, _ = v.Write(whole) // the reader may have disconnected
	return nil
}

// Fragment is an element of a page that console.js fetches again. If it has not changed, the response
// is a 304.
type Fragment struct {
	Name string // name of the template
	Main any    // data of the template
}

func (f Fragment) send(v *Visit) error {
	whole, err := v.section.pages.RenderFragment(f.Name, f.Main)
	if err != nil {
		return err
	}
	tag := entityTag(whole)
	v.Header().Set("ETag", tag)
	if v.Request.Header.Get("If-None-Match") == tag {
		v.WriteHeader(http.StatusNotModified)
		return nil
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = v.Write(whole)
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

func (r Redirect) send(v *Visit) error {
	v.Header().Set("Location", string(r))
	v.WriteHeader(http.StatusSeeOther)
	return nil
}

// CSV is a table as a file. It is read and sent in batches, so that a long table needs little memory.
type CSV struct {
	Name string // name of the file without .csv
	// Next returns the next batch of rows, and whether more follow.
	Next func() (ui.DataTable, bool, error)
}

// Bounds of a list's file, in rows.
const (
	batchRows   = 500
	maxFileRows = 200_000
)

// ListFile returns a list as a file. read returns the rows after an id, at most limit, and the id for the
// next batch, or an empty string after the last row.
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

// CSVFile is a short table as a file.
func CSVFile(name string, t ui.DataTable) CSV {
	return CSV{Name: name, Next: func() (ui.DataTable, bool, error) { return t, false, nil }}
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
			return nil // the first batch has shown whether the file exists; a HEAD request needs no more
		}
		if err := t.CSV(v, first); err != nil {
			return nil // the reader has disconnected
		}
	}
	return nil
}

// next reads the next batch. Each batch has the time limit of a page, however slowly the client reads
// the file.
func (c CSV) next(v *Visit) (t ui.DataTable, more bool, err error) {
	ctx, done := v.DetachedContext(visitTimeout)
	defer done()
	v.ctx = ctx
	return c.Next()
}

// NoResponse is the response of a handler that has written the response itself.
type NoResponse struct{}

func (NoResponse) send(*Visit) error { return nil }

// entityTag returns the ETag of a content.
func entityTag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// explainUncertain returns the error to show for err. After an unconfirmed commit, the error
// warns of a possible change.
func explainUncertain(err error) error {
	if errors.Is(err, store.ErrUncertain) {
		return fault.New(fault.ServiceUnavailable,
			"The database did not confirm the change, so it may have been made. Check before you try again.").WithCause(err)
	}
	return err
}

// failure is the content of an error page.
type failure struct {
	Title, Text, Request string
	RetryHref            string // address of the retry, or empty if a retry cannot help
}

func (srv *server) showError(x *httpapi.Exchange, f *fault.Error) {
	x.Header().Del("WWW-Authenticate")
	if httpapi.RedirectTrailingSlash(x) {
		return
	}
	content := failure{Title: "Something went wrong", Text: f.Message(), Request: x.ID}
	switch {
	case f.Code == fault.NotFound:
		content.Title = "Not found"
		if x.Endpoint() == "unknown" {
			content.Text = "There is no such page. Check its address."
		}
	case f.Status() == http.StatusServiceUnavailable:
		content.Title = "Temporarily unavailable"
		if f.Cause != nil {
			content.Text = "The service has a temporary problem. Running requests are not affected. Try again in a moment."
		}
		if x.Request.Method == http.MethodGet {
			content.RetryHref = x.Request.URL.RequestURI()
		}
	}
	frame := ui.Layout{Title: content.Title, Theme: themeOf(x.Request), NoKeys: noKeys(x.Request), Home: Base, Main: content}
	contentType := "text/html; charset=utf-8"
	whole, err := srv.common.Render("error", frame)
	if err != nil {
		srv.Log.Error("the error page cannot be rendered", "request", x.ID, "cause", err)
		contentType = "text/plain; charset=utf-8"
		whole = []byte(content.Text)
	}
	x.Header().Set("Content-Type", contentType)
	x.WriteHeader(f.Status())
	_, _ = x.Write(whole) // the reader may have disconnected
}
