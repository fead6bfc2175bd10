package contract

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

//go:embed html/*.html
var embedded embed.FS

// Paths of the documents and of their reference pages. The operators' paths are below the operator API, so a
// proxy can hide all of them together.
const (
	CallersSource   = "/openapi.json"
	CallersPage     = "/docs"
	OperatorsSource = "/admin/openapi.json"
	OperatorsPage   = "/admin/docs"
)

// Site serves the documents, their reference pages, and the first page of an address without a console.
type Site struct {
	Callers, Operators *Specification

	templates *template.Template
}

// Specification is an OpenAPI document with its reference page. Both are made on first use.
type Specification struct {
	document func() (*OpenAPI, error)
	page     func() ([]byte, error)
}

// NewSite reads the templates. It returns an error if an embedded template is invalid. asset returns the
// address of a file of the console. explain is as for Callers.
func NewSite(asset, explain func(string) string) (*Site, error) {
	s := &Site{templates: template.New("").Funcs(template.FuncMap{
		"asset": asset, "inline": inline, "paragraphs": paragraphs, "captioned": captioned,
	})}
	if _, err := s.templates.ParseFS(embedded, "html/*.html"); err != nil {
		return nil, err
	}
	s.Callers = s.document(func() (*OpenAPI, error) { return Callers(explain) }, CallersSource)
	s.Operators = s.document(func() (*OpenAPI, error) { return Operators(explain) }, OperatorsSource)
	return s, nil
}

func (s *Site) document(document func() (*OpenAPI, error), source string) *Specification {
	document = sync.OnceValues(document)
	return &Specification{document: document, page: sync.OnceValues(func() ([]byte, error) {
		d, err := document()
		if err != nil {
			return nil, err
		}
		reference := d.reference(source)
		return s.render("reference.html", layout{Title: reference.Title, Contents: reference.contents()}, reference)
	})}
}

// layout is the data of the template layout.html.
type layout struct {
	Title    string
	Contents []heading
	Body     template.HTML
}

// heading is an entry of the table of contents.
type heading struct {
	Anchor, Text string
	Below        []heading
}

func (r reference) contents() []heading {
	all := []heading{{Anchor: "keys", Text: "Keys"}}
	for _, c := range r.Chapters {
		h := heading{Anchor: c.Anchor, Text: c.Name}
		for _, o := range c.Operations {
			h.Below = append(h.Below, heading{Anchor: o.Anchor, Text: o.Summary})
		}
		all = append(all, h)
	}
	all = append(all, heading{Anchor: "refusals", Text: "Refusals"})
	types := heading{Anchor: "types", Text: "Types"}
	for _, t := range r.Types {
		types.Below = append(types.Below, heading{Anchor: t.Anchor, Text: t.Name})
	}
	return append(all, types)
}

// render renders a page in the layout.
func (s *Site) render(name string, l layout, content any) ([]byte, error) {
	var body, whole bytes.Buffer
	if err := s.templates.ExecuteTemplate(&body, name, content); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	l.Body = template.HTML(body.String()) //nolint:gosec // escaped by our template
	if err := s.templates.ExecuteTemplate(&whole, "layout.html", l); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return whole.Bytes(), nil
}

// Source writes the document. Any web page may read the document, because it contains no secret.
func (s *Specification) Source(w http.ResponseWriter) error {
	openAPI, err := s.document()
	if err != nil {
		return err
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "public, max-age=300")
	send(w, "application/json", openAPI.JSON())
	return nil
}

// Page writes the reference page.
func (s *Specification) Page(w http.ResponseWriter) error {
	page, err := s.page()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	sendPage(w, page)
	return nil
}

// sendPage writes a page without scripts. The page may load only the stylesheet and the images of
// the console.
func sendPage(w http.ResponseWriter, page []byte) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	send(w, "text/html; charset=utf-8", page)
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the client may have disconnected
}

// inline formats text between backticks as code.
func inline(text string) template.HTML {
	var out strings.Builder
	for i, piece := range strings.Split(text, "`") {
		piece = template.HTMLEscapeString(piece)
		if i%2 == 1 {
			piece = "<code>" + piece + "</code>"
		}
		out.WriteString(piece)
	}
	return template.HTML(out.String()) //nolint:gosec // escaped above
}

// paragraphs returns the parts of a text between empty lines.
func paragraphs(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return strings.Split(text, "\n\n")
}

// captioned returns the data for a table of fields with a caption.
func captioned(caption string, fields []field) any {
	return struct {
		Caption string
		Fields  []field
	}{caption, fields}
}
