package ui

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tollgate/internal/money"
)

// kit returns an example of every component, with word in every text.
func kit(text string) []any {
	word := Data(text)
	inputs := PostForm{Action: "/console/x", Submit: word, Cancel: "/console", Error: word, Danger: true, Fields: []FormField{
		{Name: "a", Label: word, Value: text, Hint: word, Error: word, Before: "$", After: "min", Required: true, Numeric: true},
		{Name: "b2", Kind: Area, Label: word, Code: true},
		{Name: "b", Kind: Area, Label: word, Value: text, Error: word},
		{Name: "c", Kind: Choice, Label: word, Options: []Option{{Value: text, Label: word, Selected: true}}},
		{Name: "d", Kind: Checks, Label: word, Options: []Option{{Value: text, Label: word, Selected: true}}},
		{Name: "e", Kind: Check, Label: word, Checked: true},
		{Name: "f", Kind: Hidden, Value: text},
		{Name: "i", Label: word, Options: []Option{{Value: text}}},
		{Name: "j", Kind: "date", Label: word, Value: "2026-05-31"},
		{Name: "g", Kind: "password", Label: word, Complete: "current-password"},
	}}
	link := Link{Href: "/console/x?y=" + text, Text: word, Icon: "plus", Button: true, Main: true}
	all := []any{
		Icon("check"),
		Text{Text: word}, Text{Text: word, Mono: true, Muted: true}, Text{Text: word, Lines: true},
		Text{Text: "in short", Title: word},
		Money{Amount: -1}, Money{Amount: 5 * money.USD},
		Count{1_234_567}, Duration{1400}, Elapsed{1_800_000_000_000}, Moment{}, Moment{1_800_000_000_000},
		Ident{ID: text, Href: "/console/x", Cut: true}, Badge{Tone: Bad, Label: word, Title: text},
		link, Link{Href: "/console", Text: word},
		Figure{Label: word, Value: text, Note: text}, FigureRow{{Label: word, Value: Count{1}}}, Facts{{word, text}},
		Notice{Tone: Bad, Title: word, Text: word, Link: &link, Focus: true}, Notice{},
		Banner{Tone: Warn, Title: word, Text: word, Dismiss: &Button{Action: "/console/x", Label: word}}, Banner{Title: word},
		EmptyState{Title: word, Text: word, Link: &link},
		Tabs{Label: word, Items: []Tab{{"/console", word, true}}}, Pager{}, Pager{First: "/console", Next: "/console?after=" + text},
		QR{Label: word, Text: "otpauth://totp/x"},
		CopyField{ID: "copy", Label: word, Value: text}, Snippets{ID: "codes", Tabs: []Snippet{{word, word, false}, {word, word, true}}},
		Tile{Href: "/console", Title: word, Image: "/media/x.jpg", Alt: word, State: Badge{Tone: Info, Label: word}, Notes: []any{Money{}}},
		Tile{Href: "/console", Title: word, Clip: "/media/x.mp4", Alt: word, State: Badge{Tone: OK, Label: word}},
		Tiles{{Href: "/console", Title: word, State: Badge{Tone: Warn, Label: word}}},
		Timeline{{Tone: OK, Label: word, At: Moment{1}, Note: text}, {Label: word}},
		Bars{{Label: word, Href: "/console", Percent: 40, Value: Money{}}, {Label: word, Value: Count{}}},
		FirstSteps{{Done: true, Text: word}, {Text: word, Link: &Link{Href: "/console", Text: word}}, {Text: word}},
		Button{Action: "/console/x", Label: word, About: word}, Refused{Label: word, Reason: word}, Refused{Reason: word},
		ButtonMenu{First: Button{Action: "/console/x", Label: word, About: word}, Label: word, About: word,
			Others: []Button{{Action: "/console/x", Label: word, About: word}}}, Group{Badge{}, text},
		Confirm{ID: "confirm", Button: word, Title: word, Text: []Words{word}, Action: "/console/x", Type: text, Danger: true,
			Open: true, Error: word, Fields: []FormField{{Name: "h", Label: word}}},
		inputs.Fields[0], inputs, PostForm{Action: "/console/x", Submit: word},
		DiffOf("a\nb\n"+text+"\n", "a\n"+text+"\n"), Diff{}, Diff{{}, {Old: 1, Text: text}},
		Filters{Action: "/console", Clear: "/console", Fields: inputs.Fields[2:3]},
		Prose{Plain: text, Lang: "en"},
		DayBars{Label: word, Days: []DayBar{{Day: "2026-05-01"}, {"2026-05-02", 9, 9}, {"2026-05-03", 98, 100}, {"2026-05-04", 0, 7}}}, DayBars{},
	}
	return append(append(all, kitTables(text)...), kitCharts(text)...)
}

func kitTables(text string) []any {
	word := Data(text)
	cells := []any{Ident{ID: text}, Badge{Tone: OK, Label: word}, Money{Amount: 41_200_000_000}, Moment{1_800_000_000_000}, text}
	columns := []Column{{Title: word}, {Title: word, Fold: true}, {Title: word, Right: true}, {Title: word}, {Title: word}}
	return []any{
		DataTable{Caption: word, Columns: columns, Rows: []DataRow{{Href: "/console/x", Cells: cells}, {Cells: cells}}, Foot: cells},
		DataTable{Caption: word},
	}
}

func kitCharts(text string) []any {
	word := Data(text)
	chart := func(unit ChartUnit, values ...int64) Chart {
		c := Chart{ID: "c" + string(unit), Title: word, Unit: unit, EmptyText: word,
			Series: []ChartSeries{{Name: word}, {Name: "Other", Rest: true}}}
		for _, v := range values {
			c.Buckets = append(c.Buckets, word)
			c.Series[0].Values, c.Series[1].Values = append(c.Series[0].Values, v), append(c.Series[1].Values, v/3)
		}
		return c
	}
	return []any{chart(InUSD), chart(InUSD, 0, 0), chart(InCount, 1), chart(InUSD, 5, 0, 1_000_000_000, 7), chart(InMS, 1<<53, 2)}
}

// newPages returns pages with page as the template kit.
func newPages(page string) *Pages {
	return New(func(name string) string { return "/console/static/" + name }, nil, fstest.MapFS{"html/kit.html": {Data: []byte(page)}})
}

// inline matches scripts, and style and event attributes in tags.
var inline = regexp.MustCompile(`(?i)<[a-z][a-z0-9]*(?:\s+[a-z-]+(?:="[^"]*")?)*\s+(?:style|on[a-z]+)\s*=|<script[^>]*>[^<]|<script>`)

// TestKit checks that every component can be rendered with ordinary, empty, long and hostile words,
// and that each component has a template and an example.
func TestKit(t *testing.T) {
	t.Parallel()
	p := newPages(`<h1>Kit</h1>{{range .}}{{render .}}{{end}}`)
	inKit := map[string]bool{}
	for name, word := range map[string]string{
		"ordinary": "swift-1", "none": "", "long": strings.Repeat("wörter ", 1500), "rtl": "\u202eabc مرحبا",
		"hostile": `"><script>alert(1)</script><img src=x onerror=alert(1)>' style=x javascript:`,
	} {
		layout := Layout{Locale: "en", Title: Data(word), Brand: Brand{Name: word, Logo: "/console/static/logo.svg"}, Home: "/console",
			SignOut: "/console/sign-out", Main: kit(word), User: Data(word), Nav: []NavItem{{"/console", Data(word), "menu", true}}}
		raw, err := p.Render("kit", layout)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		page := string(raw)
		if found := inline.FindString(page); found != "" {
			t.Errorf("%s: the page has an inline script or style: %s", name, found)
		}
		if name == "ordinary" && strings.Count(page, word) < 100 {
			t.Errorf("the page has the word %d times, want at least 100", strings.Count(page, word))
		}
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(m[1], "/console") && m[1][0] != '#' && m[1][0] != '?' {
				t.Errorf("%s: the page links to %s outside the console", name, m[1])
			}
		}
	}
	for _, component := range kit("") {
		inKit[strings.ToLower(reflect.TypeOf(component).Name())] = true
	}
	files, err := fs.Glob(embedded, "html/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := nameOf(file); name != "layout" && !inKit[name] {
			t.Errorf("the kit has no example of %s", name)
		}
		delete(inKit, nameOf(file))
	}
	for name := range inKit {
		t.Errorf("%s has no template", name)
	}
}

// TestForeignTypesAreRejected checks that a page does not render a value of a foreign type.
func TestForeignTypesAreRejected(t *testing.T) {
	t.Parallel()
	p := newPages(`{{render .}}`)
	for _, v := range []any{7, money.USD, struct{}{}, []string{"a"}, Layout{}} {
		if _, err := p.RenderFragment("en", "kit", v); err == nil {
			t.Errorf("rendering a %T returned no error", v)
		}
	}
	var none *Link
	for _, v := range []any{nil, none, ""} {
		if _, err := p.RenderFragment("en", "kit", v); err != nil {
			t.Errorf("rendering %#v: error %v, want none", v, err)
		}
	}
	if _, err := p.RenderFragment("en", "other", nil); err == nil {
		t.Error("rendering a missing page returned no error")
	}
}

// TestMarkupIsMadeInOneFile checks that only ui.go makes values of html/template's unescaped
// types.
func TestMarkupIsMadeInOneFile(t *testing.T) {
	t.Parallel()
	unescaped := regexp.MustCompile(`template\.(HTML|HTMLAttr|JS|JSStr|CSS|URL|Srcset)\b`)
	var found []string
	for _, folder := range []string{".", "..", "../page", "../show", "../userpages", "../operatorpages", "../static"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d Go files, want some; error %v", folder, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") && unescaped.Match(raw) {
				found = append(found, file)
			}
		}
	}
	if !slices.Equal(found, []string{"ui.go"}) {
		t.Errorf("only ui.go may make markup, but found it in %v", found)
	}
}
