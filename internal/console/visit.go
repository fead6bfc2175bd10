package console

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// visitTimeout bounds what a page asks of the database.
const visitTimeout = 30 * time.Second

// visit is one request for a page, by somebody who may see it.
type visit struct {
	*httpapi.Exchange
	c       *console
	ctx     context.Context // outlives the reader, so that an act is whole
	route   route
	session account.ConsoleSession // whose visit it is; zero: nobody is signed in
}

// account is whose things the visitor sees.
func (v *visit) account() string { return v.session.User.Account }

// address is where the visitor comes from.
func (v *visit) address() netip.Addr {
	return httpapi.ClientAddress(v.Request, v.c.TrustedProxies)
}

// view runs read on one snapshot.
func (v *visit) view(read func(tx *store.Tx) error) error { return v.c.DB.View(v.ctx, read) }

// update runs act in one transaction.
func (v *visit) update(act func(tx *store.Tx) error) error { return v.c.DB.Update(v.ctx, act) }

// query is a parameter of the page's address; empty: it is not there.
func (v *visit) query(name string) string {
	value := v.Request.URL.Query().Get(name)
	if !plain(value) || len(value) > 256 {
		return ""
	}
	return value
}

// confirm opens a dialog that the page's address asks for.
func (v *visit) confirm(c part.Confirm) part.Confirm {
	c.Open = v.query("confirm") == c.ID
	return c
}

// answer is what a page answers.
type answer interface{ send(v *visit) error }

// page is a whole page.
type page struct {
	name, title string
	main        any // what its template gets
	status      int // 0: 200
	notices     []part.Notice
}

// done adds a notice of what the act before did: the page's address names it, as
// `?done=saved`, and words say it. A page has no others than its words.
func (p page) done(v *visit, words map[string]string) page {
	if text, ok := words[v.query("done")]; ok {
		p.notices = append(p.notices, part.Notice{Tone: part.OK, Text: text, Focus: true})
	}
	return p
}

func (p page) send(v *visit) error {
	var whole bytes.Buffer
	if err := v.c.pages.Render(&whole, p.name, v.frame(p)); err != nil {
		return err
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		v.WriteHeader(p.status)
	}
	_, _ = v.Write(whole.Bytes()) // the reader may be gone
	return nil
}

// frame is what stands around a page.
func (v *visit) frame(p page) part.Surround {
	f := part.Surround{Title: p.title, Theme: themeOf(v.Request), Main: p.main, Home: Base, Leave: Base + "/sign-out"}
	side := user
	if v.session.Kind == account.OperatorSession {
		side = operators
		f.Home, f.Leave, f.Who = Base+"/operator", Base+"/operator/sign-out", "operator"
	}
	f.Notices = p.notices
	if v.session.ID == "" {
		return f
	}
	if v.session.User.ID != "" {
		f.Who = v.session.User.Email
	}
	for _, e := range v.c.menu(side) {
		here := e.path == v.route.path || e.path != "" && e.path != "/operator" && strings.HasPrefix(v.route.path, e.path+"/")
		f.Nav = append(f.Nav, part.NavItem{Href: Base + e.path, Text: e.text, Icon: e.icon, Current: here})
	}
	return f
}

// fragment is a part of a page, as the module fetches it again. It is not sent
// again while it is the same.
type fragment struct {
	name string
	main any
}

func (f fragment) send(v *visit) error {
	var whole bytes.Buffer
	if err := v.c.pages.RenderAlone(&whole, f.name, f.main); err != nil {
		return err
	}
	tag := entityTag(whole.Bytes())
	v.Header().Set("ETag", tag)
	if v.Request.Header.Get("If-None-Match") == tag {
		v.WriteHeader(http.StatusNotModified)
		return nil
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = v.Write(whole.Bytes())
	return nil
}

// redirect leads to another page, by GET.
type redirect struct{ to string }

// to leads to a page below Base; done names what was done there, see page.done.
func to(path, done string) answer {
	address := Base + path
	if done != "" {
		address += "?done=" + url.QueryEscape(done)
	}
	return redirect{address}
}

func (r redirect) send(v *visit) error {
	v.Header().Set("Location", r.to)
	v.WriteHeader(http.StatusSeeOther)
	return nil
}

// download is a table as CSV, read and sent in parts, so that its length takes no
// memory.
type download struct {
	name string // of the file, without .csv
	// next returns the next part, and whether more follow.
	next func() (part.DataTable, bool, error)
}

func (d download) send(v *visit) error {
	for titled, more := true, true; more; titled = false {
		var t part.DataTable
		var err error
		if t, more, err = d.next(); err != nil {
			if titled {
				return err
			}
			panic(http.ErrAbortHandler) // what was sent must not look whole
		}
		if titled {
			v.Header().Set("Content-Type", "text/csv; charset=utf-8")
			v.Header().Set("Content-Disposition", `attachment; filename="`+d.name+`.csv"`)
		}
		if err := t.CSV(v, titled); err != nil {
			return nil // the reader is gone
		}
	}
	return nil
}

// sent is an answer that was written already.
type sent struct{}

func (sent) send(*visit) error { return nil }

// maxForm bounds a form.
const maxForm = 64 << 10

// read fills a form with what was sent, and refuses what it has no field for.
func (v *visit) read(form *part.Inputs) error { return v.readLong(form, maxForm) }

// readLong is read for a form that may be longer than others.
func (v *visit) readLong(form *part.Inputs, limit int64) error {
	if kind, _, _ := strings.Cut(v.Request.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return fault.New(fault.InvalidRequest, "This is no form of the console. Reload the page and send it again.")
	}
	body, err := v.Body(limit)
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return fault.New(fault.InvalidRequest, "This form cannot be read. Reload the page and send it again.")
	}
	for name, sent := range values {
		field := form.Field(name)
		if field == nil || field.Kind != part.Checks && len(sent) > 1 {
			return fault.New(fault.InvalidRequest, "This form has a field that the page does not know. Reload the page and send it again.")
		}
		for _, value := range sent {
			if !plain(strings.NewReplacer("\r", "", "\n", "", "\t", "").Replace(value)) {
				return fault.New(fault.InvalidRequest, "%s has characters that cannot be kept.", field.Label)
			}
		}
	}
	for i := range form.Fields {
		fill(&form.Fields[i], values[form.Fields[i].Name])
	}
	return nil
}

// fill gives a field what was sent for it.
func fill(f *part.FormField, sent []string) {
	has := make(map[string]bool, len(sent))
	for _, value := range sent {
		has[value] = true
	}
	f.Value = ""
	if len(sent) > 0 {
		f.Value = sent[0]
	}
	f.On = len(sent) > 0
	for i := range f.Options {
		f.Options[i].On = has[f.Options[i].Value]
	}
}

// refused puts a fault that its sender can mend into the form, and takes the
// passwords out of it. Any other error is returned: the whole page fails.
func refused(form *part.Inputs, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Status() >= http.StatusInternalServerError || f.Code == fault.NotFound {
		return err
	}
	form.Refuse(f.Param, f.Message)
	form.Forget()
	return nil
}

// below returns an address of the console that somebody sent, and the first page
// for any other.
func below(sent string) string {
	u, err := url.Parse(sent)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(sent, "\\\r\n\t") ||
		path.Clean(u.Path) != u.Path || u.Path != Base && !strings.HasPrefix(u.Path, Base+"/") {
		return Base
	}
	return u.RequestURI()
}
