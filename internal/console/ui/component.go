package ui

import (
	"fmt"
	"net/http"
	"slices"

	"tollgate/internal/money"
)

// Tone is the color of a state. A color is always shown with a word.
type Tone string

// The tones.
const (
	Plain Tone = ""
	OK    Tone = "ok"
	Info  Tone = "info"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
)

// Icon is a symbol of icons.svg. It only decorates the word beside it.
type Icon string

// Text is a text. It may come from anybody, because templates escape it.
type Text struct {
	Text  Words
	Muted bool
	Mono  bool
	Lines bool  // line breaks are kept
	Title Words // the full text if Text is shortened
}

// Money is an amount. Its title shows the exact value.
type Money struct {
	Amount money.Amount
	InFull bool // show all digits

	decimals int // decimals of the table's column; if 0, the decimals of USD
}

// Text formats the amount for people.
func (m Money) Text() string {
	switch {
	case m.InFull:
		return ExactUSD(m.Amount)
	case m.decimals == 0, m.Amount == 0:
		return USD(m.Amount)
	}
	return formatDecimals(m.Amount, m.decimals)
}

// Exact returns the amount with all digits.
func (m Money) Exact() string { return m.Amount.String() + " USD" }

// Count is a whole number.
type Count struct{ N int64 }

// Text formats the number for people.
func (c Count) Text() string { return Thousands(c.N) }

// Moment is a time in Unix milliseconds. Zero is shown as never. The page has the time in UTC; console.js shows
// it in the visitor's time zone.
type Moment struct{ MS int64 }

// ISO returns the time in ISO 8601.
func (m Moment) ISO() string { return ISO(m.MS) }

// Text returns the time in UTC.
func (m Moment) Text() Words { return UTC(m.MS) }

// Duration is a span of time in milliseconds.
type Duration struct{ MS int64 }

// Text formats the span for people.
func (t Duration) Text() Words { return FormatDuration(t.MS) }

// Elapsed is the time since SinceMS, in Unix milliseconds. Without console.js, the page shows the start
// instead.
type Elapsed struct{ SinceMS int64 }

// Start returns the start as text, in UTC.
func (e Elapsed) Start() Words { return UTC(e.SinceMS) }

// Ident is an identifier. It links to Href unless Href is empty. If Cut is set, a long identifier is shortened,
// and its title has the full identifier.
type Ident struct {
	ID, Href string
	Cut      bool
}

// Text returns the identifier, shortened if Cut is set.
func (i Ident) Text() string {
	if i.Cut && len(i.ID) > 14 {
		return i.ID[:5] + "…" + i.ID[len(i.ID)-6:]
	}
	return i.ID
}

// Badge shows a state as a dot and a word.
type Badge struct {
	Tone  Tone
	Label Words
	Title string // the name of the state in the API; may be empty
}

// Link leads to a path below /console, or to an http(s) address set by the gateway.
type Link struct {
	Href   string
	Text   Words
	Icon   string
	Button bool // looks like a button
	Main   bool // the main action of a page
	NewTab bool // opens in a new tab
}

// Figure is one figure of a FigureRow.
type Figure struct {
	Label Words
	Value any // a component
	Note  any // a component, or nil
}

// FigureRow is a row of figures. The first figure is the main one of the page and is drawn large.
type FigureRow []Figure

// Facts is a list of names and values.
type Facts []Fact

// Fact is one of Facts.
type Fact struct {
	Name  Words
	Value any // a component
}

// Notice is a message about a completed action or about a state.
type Notice struct {
	Tone  Tone
	Title Words
	Text  Words
	Link  *Link
	Focus bool // the notice gets the focus when the page opens
}

// Symbol returns the icon of the notice's tone.
func (n Notice) Symbol() Icon {
	switch n.Tone {
	case OK:
		return "circle-check"
	case Warn:
		return "triangle-alert"
	case Bad:
		return "circle-alert"
	}
	return "info"
}

// Banner is an announcement to customers.
type Banner struct {
	Tone    Tone // Info or Warn
	Title   Words
	Text    Words   // line breaks are kept; may be empty
	Dismiss *Button // nil in a preview
}

// Symbol returns the icon of the banner's tone.
func (b Banner) Symbol() Icon { return Notice{Tone: b.Tone}.Symbol() }

// EmptyState replaces an empty list.
type EmptyState struct {
	Title, Text Words
	Link        *Link
}

// Tab is one of Tabs.
type Tab struct {
	Href    string
	Text    Words
	Current bool
}

// Tabs are links to lists, side by side.
type Tabs struct {
	Label Words // name of the choice
	Items []Tab
}

// HasCurrent reports whether one of the tabs is the current one.
func (t Tabs) HasCurrent() bool {
	return slices.ContainsFunc(t.Items, func(tab Tab) bool { return tab.Current })
}

// Pager has the addresses of the first and the next page of a list.
type Pager struct{ First, Next string }

// CopyField is a text in a field with a copy button. ID is unique on the page.
type CopyField struct {
	ID    string
	Label Words
	Value string
}

// Snippets are texts to copy, as tabs, such as an example in several programming languages. ID is unique on the
// page.
type Snippets struct {
	ID   string
	Tabs []Snippet
}

// Snippet is one of Snippets.
type Snippet struct {
	Name, Text Words
	Prose      bool // sentences; long lines are wrapped
}

// Tile is one result of a gallery.
type Tile struct {
	Href       string
	Title, Alt Words
	Image      string // address of the gateway's own picture; if empty, State is shown
	Clip       string // address of the gateway's own clip, fetched on play
	State      Badge
	Notes      []any // components
}

// Tiles is a gallery.
type Tiles []Tile

// Timeline lists events in chronological order.
type Timeline []Stage

// Stage is one event of a Timeline.
type Stage struct {
	Tone  Tone
	Label Words
	At    Moment
	Note  any // a component, or nil
}

// FirstSteps is the list of a new user's first steps, in order.
type FirstSteps []FirstStep

// FirstStep is one of FirstSteps.
type FirstStep struct {
	Done bool
	Text Words
	Link *Link // to the page of the step, or nil
}

// Bar is a row with a bar behind the label.
type Bar struct {
	Label   Words
	Href    string
	Percent int // length of the bar, 0 to 100
	Value   any // a component
}

// Bars are rows with bars.
type Bars []Bar

// AlignDecimals returns the bars with the same number of decimals for all amounts.
func (b Bars) AlignDecimals() Bars {
	t := DataTable{Columns: make([]Column, 1)}
	for _, bar := range b {
		t.Rows = append(t.Rows, DataRow{Cells: []any{bar.Value}})
	}
	b = slices.Clone(b)
	for i, row := range t.AlignDecimals().Rows {
		b[i].Value = row.Cells[0]
	}
	return b
}

// Button is a button with an immediate and reversible effect.
type Button struct {
	Action string // address of the form
	Label  Words
	About  Words       // the object's name, for screen readers
	Hidden []FormField // of the kind Hidden
}

// control is a component that leads to a handler.
type control interface {
	// target returns the handler's method and address, and the label of the component. A form has no label.
	target() (method, address string, label Words)
}

func (b Button) target() (method, address string, label Words) {
	return http.MethodPost, b.Action, b.Label
}
func (c Confirm) target() (method, address string, label Words) {
	return http.MethodPost, c.Action, c.Button
}
func (f PostForm) target() (method, address string, label Words) {
	return http.MethodPost, f.Action, ""
}
func (l Link) target() (method, address string, label Words) { return http.MethodGet, l.Href, l.Text }

// Refused replaces a button, form or link that the visitor may not use.
type Refused struct {
	Label  Words // empty for a form
	Reason Words
}

// ButtonMenu has the buttons for one object. First is the usual button, and a menu has the others.
type ButtonMenu struct {
	First  Button
	Label  Words // name of the menu of Others, followed by About
	About  Words
	Others []Button
}

// Group is a row of components.
type Group []any

// Confirm is a button with a dialog about its effect. Without console.js, the button requests the
// page with the dialog open: `?confirm=ID`.
type Confirm struct {
	ID     string // unique on the page
	Button Words  // the effect in one or two words
	Title  Words
	Text   []Words     // the changes, including money
	Action string      // address of the form
	Type   string      // text to type for a confirmation; may be empty
	Fields []FormField // further fields
	Danger bool
	Open   bool
	Error  Words // why the action was rejected
}

// TypeLabel returns the label of the field for Type.
func (c Confirm) TypeLabel() Words { return Sayf("Type %s to confirm", c.Type) }

// JoinAnd joins words, or strings without a translation, with commas and a final "and".
func JoinAnd[W Words | string](words []W) Words {
	if len(words) < 2 {
		return JoinComma(words)
	}
	last := len(words) - 1
	return Sayf("%s and %s", JoinComma(words[:last]), words[last])
}

// JoinComma joins words, or strings without a translation, with commas.
func JoinComma[W Words | string](words []W) Words { return joinBy("%s, %s", words) }

// JoinSemicolon joins words, or strings without a translation, with semicolons.
func JoinSemicolon[W Words | string](words []W) Words { return joinBy("%s; %s", words) }

// Paragraphs joins texts with an empty line between them. It leaves out empty texts.
func Paragraphs(texts ...Words) Words {
	texts = slices.DeleteFunc(texts, func(w Words) bool { return w == "" })
	return joinBy("%s\n\n%s", texts)
}

// Lines joins texts with line breaks.
func Lines(texts []Words) Words { return joinBy("%s\n%s", texts) }

// joinBy joins words with a format for two words.
func joinBy[W Words | string](format Words, words []W) (joined Words) {
	for i, w := range words {
		if i == 0 {
			joined = asWords(w)
		} else {
			joined = Sayf(format, joined, w)
		}
	}
	return joined
}

// asWords returns value as Words. A value of another type has no translation.
func asWords(value any) Words {
	if w, ok := value.(Words); ok {
		return w
	}
	return Data(fmt.Sprint(value))
}
