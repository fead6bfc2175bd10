// Package part owns what the console's pages are made of: the layout, the
// components, and how money, times and numbers are written.
//
// A component is a type of this package with a template of its name in lower
// case in html/; `{{part .}}` draws any of them, so that a page's handler
// decides what stands there and its template where. Invariants: templates are
// parsed once, when the first page is drawn, and a page is drawn whole before its first byte is sent; nothing
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
	"sync"
)

//go:embed html/*.html
var embedded embed.FS

// Pages are pages that are parsed when the first of them is drawn: a start is the
// faster for it, and who sells by the API alone has no memory full of them.
type Pages struct {
	templates func() (*template.Template, error) // parsed
}

// ofPage is what the template of a page is called: apart from those of components.
const ofPage = "page/"

// New makes the pages of some folders, html/NAME.html each; in others one is the
// template `page/NAME`. asset returns the address of a static file.
func New(asset func(name string) string, folders ...fs.FS) *Pages {
	p := &Pages{}
	p.templates = sync.OnceValues(func() (*template.Template, error) {
		all := template.New("").Funcs(template.FuncMap{
			"part":  p.part,
			"asset": asset,
			"icon":  func(name string) Icon { return Icon(name) },
			"text":  func(v any) Text { return Text{Text: fmt.Sprint(v)} },
		})
		if err := parse(all, "", embedded); err != nil {
			return nil, err
		}
		for _, folder := range folders {
			if err := parse(all, ofPage, folder); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
	return p
}

// errTwice means that two folders have a page of one name.
var errTwice = errors.New("a page of this name is there already")

// parse reads a folder; what its templates are called begins with prefix.
func parse(all *template.Template, prefix string, folder fs.FS) error {
	files, err := fs.Glob(folder, "html/*.html")
	if err != nil {
		return err
	}
	for _, file := range files {
		name := prefix + nameOf(file)
		if all.Lookup(name) != nil {
			return fmt.Errorf("%s: %w", file, errTwice)
		}
		raw, err := fs.ReadFile(folder, file)
		if err != nil {
			return err
		}
		if _, err := all.New(name).Parse(string(raw)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// lookup finds a template; there being none, or none that can be parsed, is a fault of the build.
func (p *Pages) lookup(name string) (*template.Template, error) {
	all, err := p.templates()
	if err != nil {
		return nil, err
	}
	t := all.Lookup(name)
	if t == nil {
		return nil, fmt.Errorf("there is no template %q", name)
	}
	return t, nil
}

// nameOf is what a template is called.
func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".html") }

// Surround is what stands around a page.
type Surround struct {
	Title   string
	Theme   string    // light or dark; empty: as the reader's system has it
	NoKeys  bool      // the reader wants no shortcuts on the keyboard
	Nav     []NavItem // empty: nobody is signed in, and the page stands alone
	Find    string    // where the box that finds anything sends its text, as q; empty: there is none
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

// entry is an entry of the menu with the letter that leads there, typed after g.
type entry struct {
	NavItem
	Letter string // empty: all of its letters are taken
}

// Menu are the entries of the menu. The letter of each is the first of its text that
// none before it has.
func (f Surround) Menu() []entry {
	menu, taken := make([]entry, len(f.Nav)), map[rune]bool{}
	for i, item := range f.Nav {
		menu[i].NavItem = item
		for _, letter := range strings.ToLower(item.Text) {
			if 'a' <= letter && letter <= 'z' && !taken[letter] {
				menu[i].Letter, taken[letter] = string(letter), true
				break
			}
		}
	}
	return menu
}

// Render draws a page.
func (p *Pages) Render(w io.Writer, page string, f Surround) error {
	var main bytes.Buffer
	if err := p.RenderAlone(&main, page, f.Main); err != nil {
		return err
	}
	return p.execute(w, "layout", surrounded{f, template.HTML(main.String())}) //nolint:gosec // what a template of ours has escaped
}

// surrounded is what the layout draws: a page, and what stands around it.
type surrounded struct {
	Surround
	Body template.HTML
}

// RenderAlone draws a page without what stands around it: a part of one that
// the module fetches again.
func (p *Pages) RenderAlone(w io.Writer, page string, main any) error {
	return p.execute(w, ofPage+page, main)
}

func (p *Pages) execute(w io.Writer, name string, data any) error {
	t, err := p.lookup(name)
	if err != nil {
		return err
	}
	var whole bytes.Buffer
	if err := t.Execute(&whole, data); err != nil {
		return fmt.Errorf("draw %s: %w", name, err)
	}
	_, err = w.Write(whole.Bytes())
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
	if v.Type().PkgPath() != reflect.TypeFor[Surround]().PkgPath() {
		return "", fmt.Errorf("%T: %w", component, errNoComponent)
	}
	t, err := p.lookup(strings.ToLower(v.Type().Name()))
	if err != nil {
		return "", fmt.Errorf("%T: %w: %w", component, errNoComponent, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v.Interface()); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // what a template of ours has escaped
}
