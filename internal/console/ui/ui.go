// Package ui owns the building blocks of the console's pages: the layout, the components, and the
// formats of money, times and numbers.
//
// A component is a type of this package with a template in html/; the template has the type's name
// in lower case. `{{render .}}` renders any component, so a page's handler chooses the components and
// its template places them.
//
// Invariants: templates are parsed once, before the first page is rendered; a page is rendered
// completely before its first byte is sent; only templates of the console make markup; a color
// never shows a state without a word.
package ui

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"tollgate/internal/mail"
)

//go:embed html/*.html
var embedded embed.FS

// Pages has the templates of pages, in each language. The templates of a language are parsed when the first
// page in the language is rendered. This makes the start faster, and a gateway without console visitors saves
// the memory.
type Pages struct {
	editions map[mail.Locale]*edition
}

// edition has the pages in one language.
type edition struct {
	load    func() (templateSet, error)
	refusal AccessCheck
}

// templateSet has the parsed templates and the texts of an edition.
type templateSet struct {
	templates *template.Template
	texts     Texts
}

// AccessCheck returns the reason why the visitor may not use the handler of a method and an address. It returns
// an empty text if the visitor may.
type AccessCheck func(method, address string) Words

// pagePrefix is the prefix of the names of page templates. Component templates have no prefix.
const pagePrefix = "page/"

// New returns the pages in the files html/NAME.html of folders. Other templates call such a page `page/NAME`.
// asset returns the address of a static file. Buttons, forms and links are disabled if refusal returns a reason
// for their handlers. If refusal is nil, none are disabled.
func New(asset func(name string) string, refusal AccessCheck, folders ...fs.FS) *Pages {
	p := &Pages{editions: map[mail.Locale]*edition{}}
	for _, locale := range mail.Locales() {
		e := &edition{refusal: refusal}
		e.load = sync.OnceValues(func() (templateSet, error) { return e.read(locale, asset, folders) })
		p.editions[locale] = e
	}
	return p
}

// read parses the templates of an edition.
func (e *edition) read(locale mail.Locale, asset func(name string) string, folders []fs.FS) (templateSet, error) {
	texts, err := ReadTexts(locale)
	if err != nil {
		return templateSet{}, err
	}
	all := template.New("").Funcs(template.FuncMap{
		"render": e.render,
		"asset":  asset,
		"icon":   func(name string) Icon { return Icon(name) },
		"say":    func(format string, values ...any) string { return texts.Say(Sayf(Words(format), values...)) },
		"words":  texts.translate,
	})
	if err := parseFolder(all, "", embedded); err != nil {
		return templateSet{}, err
	}
	for _, folder := range folders {
		if err := parseFolder(all, pagePrefix, folder); err != nil {
			return templateSet{}, err
		}
	}
	for _, t := range all.Templates() {
		if t.Tree != nil {
			EachText(t.Tree, texts.markup)
		}
	}
	return templateSet{all, texts}, nil
}

// Say returns the text of w in a language. Handlers use it for texts in addresses and in form values.
func (p *Pages) Say(locale mail.Locale, w Words) (string, error) {
	e, err := p.editions[locale].load()
	return e.texts.Say(w), err
}

// translate returns the text of Words, and other values unchanged.
func (t Texts) translate(value any) any {
	if w, ok := value.(Words); ok {
		return t.Say(w)
	}
	return value
}

// markup translates a text in the markup of a template. It returns a text without a translation unchanged.
func (t Texts) markup(text string) string {
	if translated, ok := t[Words(html.UnescapeString(text))]; ok {
		return html.EscapeString(translated)
	}
	return text
}

// errDuplicate reports two folders with the same page name.
var errDuplicate = errors.New("another folder has a page with the same name")

// parseFolder reads a folder's templates and adds prefix to their names.
func parseFolder(all *template.Template, prefix string, folder fs.FS) error {
	files, err := fs.Glob(folder, "html/*.html")
	if err != nil {
		return err
	}
	for _, file := range files {
		name := prefix + nameOf(file)
		if all.Lookup(name) != nil {
			return fmt.Errorf("%s: %w", file, errDuplicate)
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

func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".html") }

// Brand is the appearance of the shop in the layout.
type Brand struct {
	Name  string
	Logo  string // address of the picture
	Style string // address of a stylesheet; may be empty
	// Contact leads to the shop's help. It may be nil.
	Contact *Link
	// Links lead to the public pages of the shop, for the end of each page.
	Links []Link
}

// Layout is the data of a page, including the menu and the notices around the content.
type Layout struct {
	Title       Words
	Locale      mail.Locale // language of the page
	Languages   []Language  // the choice of languages
	Brand       Brand
	Theme       string    // light or dark; if empty, the theme of the visitor's system
	NoShortcuts bool      // the visitor has turned off keyboard shortcuts
	Nav         []NavItem // empty if the visitor is not signed in; then the page has no menu
	Find        string    // address of the search box, with the parameter q; if empty, there is no box
	Home        string    // address of the link on the shop's name
	User        Words     // the signed-in user in the menu
	Role        Words     // the role of the user; empty for customers
	SignOut     string    // address of the sign-out form
	Notices     []Notice
	Wide        bool // a visitor who is not signed in sees the page in the width of a table
	Main        any  // data of the page's template

	Announcements []Banner // above the notices
}

// Language is a language to choose.
type Language struct {
	Locale  mail.Locale
	Name    string // in the language itself
	Current bool
}

// NavItem is one entry of the menu.
type NavItem struct {
	Href    string
	Text    Words
	Icon    string
	Current bool
}

// menuEntry is an entry of the menu with its shortcut, a letter typed after g.
type menuEntry struct {
	NavItem
	Letter string // empty if earlier entries use all letters of the text
}

// Menu returns the entries of the menu. The shortcut of an entry is the first letter of its text without an
// earlier entry.
func (f Layout) Menu() []menuEntry {
	menu, used := make([]menuEntry, len(f.Nav)), map[rune]bool{}
	for i, item := range f.Nav {
		menu[i].NavItem = item
		for _, letter := range strings.ToLower(item.Text.String()) {
			if 'a' <= letter && letter <= 'z' && !used[letter] {
				menu[i].Letter, used[letter] = string(letter), true
				break
			}
		}
	}
	return menu
}

// Render renders a page in the language of its layout.
func (p *Pages) Render(page string, f Layout) ([]byte, error) {
	main, err := p.RenderFragment(f.Locale, page, f.Main)
	if err != nil {
		return nil, err
	}
	return p.editions[f.Locale].execute("layout", layoutData{f, template.HTML(main)}) //nolint:gosec // our own template has escaped its data
}

// layoutData is the data of the layout template.
type layoutData struct {
	Layout
	Body template.HTML
}

// RenderFragment renders a template without the layout, for an update of an open page.
func (p *Pages) RenderFragment(locale mail.Locale, page string, main any) ([]byte, error) {
	return p.editions[locale].execute(pagePrefix+page, main)
}

// execute executes a template. It returns an error if an embedded template is missing or invalid.
func (e *edition) execute(name string, data any) ([]byte, error) {
	all, err := e.load()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = all.templates.ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
}

// errNotComponent reports a value in a template whose type is not a component.
var errNotComponent = errors.New("not a component")

// render renders a component. It renders nil as nothing, Words as Text, and a string as Text without a
// translation. If the visitor may not use a control, render renders Refused instead.
func (e *edition) render(component any) (template.HTML, error) {
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
		component = Text{Text: Data(v.String())}
		v = reflect.ValueOf(component)
	case v.Type() == reflect.TypeFor[Words]():
		component = Text{Text: Words(v.String())}
		v = reflect.ValueOf(component)
	}
	if c, ok := v.Interface().(control); ok && e.refusal != nil {
		method, address, label := c.target()
		if reason := e.refusal(method, address); reason != "" {
			v = reflect.ValueOf(Refused{Label: label, Reason: reason})
		}
	}
	if v.Type().PkgPath() != reflect.TypeFor[Layout]().PkgPath() {
		return "", fmt.Errorf("%T: %w", component, errNotComponent)
	}
	raw, err := e.execute(strings.ToLower(v.Type().Name()), v.Interface())
	if err != nil {
		return "", fmt.Errorf("render %T: %w", component, err)
	}
	return template.HTML(raw), nil //nolint:gosec // our own template has escaped its data
}

// Prose is a long text by the operator.
type Prose struct {
	Title string // first heading of a text in Markdown, if the text begins with a heading of level 1
	Lang  string // the language, as in the attribute lang of HTML; if empty, the page's language
	Plain string // a text without markup, or empty
	HTML  template.HTML
}

// Markdown renders a text in Markdown, with tables. It leaves out HTML in the text, and gives links to scripts
// an empty address.
func Markdown(source []byte) (Prose, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table))
	doc := md.Parser().Parse(text.NewReader(source))
	var p Prose
	if h, ok := doc.FirstChild().(*ast.Heading); ok && h.Level == 1 {
		p.Title = string(h.Lines().Value(source))
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, doc); err != nil {
		return Prose{}, fmt.Errorf("render Markdown: %w", err)
	}
	p.HTML = template.HTML(out.String()) //nolint:gosec // the renderer escapes texts and leaves HTML out
	return p, nil
}
