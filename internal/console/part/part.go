// Package part owns what the console's pages are made of: the layout, the
// components, and how money, times and numbers are written.
//
// A component is a type of this package with a template of its name in lower
// case in html/; `{{part .}}` draws any of them, so that a page's handler
// decides what stands there and its template where. Invariants: templates are
// parsed once, and a page is drawn whole before its first byte is sent; nothing
// is markup but what a template of ours says; State is never colour alone.
package part

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"path"
	"reflect"
	"strings"
)

//go:embed html/*.html
var embedded embed.FS

// Pages are the parsed pages.
type Pages struct {
	components *template.Template
	pages      map[string]*template.Template
}

// Parse reads the pages of a folder, one a file, which is called by its name
// without `.html`; in others it is the template `page/NAME`. asset returns the address of a static file. An error is a
// fault of the build.
func Parse(pages fs.FS, asset func(name string) string) (*Pages, error) {
	p := &Pages{pages: map[string]*template.Template{}}
	functions := template.FuncMap{
		"part":  p.part,
		"asset": asset,
		"icon":  func(name string) Icon { return Icon(name) },
		"text":  func(v any) Text { return Text{Text: fmt.Sprint(v)} },
	}
	components := template.New("").Funcs(functions)
	files, err := fs.Glob(embedded, "html/*.html")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := parse(components.New(nameOf(file)), embedded, file); err != nil {
			return nil, err
		}
	}
	files, err = fs.Glob(pages, "*.html")
	if err != nil {
		return nil, err
	}
	// A page may draw another one in itself: what of it is fetched again.
	others, err := components.Clone()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := parse(others.New("page/"+nameOf(file)), pages, file); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		whole, err := others.Clone()
		if err != nil {
			return nil, err
		}
		if err := parse(whole.New("main"), pages, file); err != nil {
			return nil, err
		}
		p.pages[nameOf(file)] = whole
	}
	p.components = components
	return p, nil
}

// nameOf is what a template is called.
func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".html") }

func parse(t *template.Template, from fs.FS, file string) error {
	raw, err := fs.ReadFile(from, file)
	if err != nil {
		return err
	}
	if _, err := t.Parse(string(raw)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Names returns the names of all pages.
func (p *Pages) Names() []string {
	var names []string
	for name := range p.pages {
		names = append(names, name)
	}
	return names
}

// Surround is what stands around a page.
type Surround struct {
	Title   string
	Theme   string    // light or dark; empty: as the reader's system has it
	Nav     []NavItem // empty: nobody is signed in, and the page stands alone
	Home    string    // where the product's name leads
	Who     string    // who is signed in, as the menu shows it
	Leave   string    // where the form that signs out goes
	Notices []Notice
	Main    any // what the page's template gets
}

// NavItem is one entry of the menu.
type NavItem struct {
	Href, Text string
	Icon       string
	Current    bool
}

// Render draws a page.
func (p *Pages) Render(w io.Writer, page string, f Surround) error {
	return p.execute(w, page, "layout", f)
}

// RenderAlone draws a page without what stands around it: a part of one that
// the module fetches again.
func (p *Pages) RenderAlone(w io.Writer, page string, main any) error {
	return p.execute(w, page, "main", main)
}

func (p *Pages) execute(w io.Writer, page, name string, data any) error {
	t, ok := p.pages[page]
	if !ok {
		return fmt.Errorf("there is no page %q", page)
	}
	var whole bytes.Buffer
	if err := t.ExecuteTemplate(&whole, name, data); err != nil {
		return fmt.Errorf("draw the page %s: %w", page, err)
	}
	_, err := w.Write(whole.Bytes())
	return err
}

// errNoComponent means that a template was given something to draw that is no
// component.
var errNoComponent = errors.New("not a component")

// part draws a component; nil draws nothing, and a text is itself.
func (p *Pages) part(component any) (template.HTML, error) {
	v := reflect.ValueOf(component)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", nil
		}
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return "", nil
	case v.Type() == reflect.TypeFor[string]():
		component = Text{Text: v.String()}
		v = reflect.ValueOf(component)
	}
	t := p.components.Lookup(strings.ToLower(v.Type().Name()))
	if t == nil || v.Type().PkgPath() != reflect.TypeFor[Surround]().PkgPath() {
		return "", fmt.Errorf("%T: %w", component, errNoComponent)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v.Interface()); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // what a template of ours has escaped
}
