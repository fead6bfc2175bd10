package page

import (
	"regexp"
	"testing"

	"tollgate/internal/console/static"
	"tollgate/internal/console/ui"
)

// TestColorKeepsContrast checks that texts and buttons in the color of a shop can be read in both themes,
// however pale or dark the color is.
func TestColorKeepsContrast(t *testing.T) {
	t.Parallel()
	pairs := regexp.MustCompile(`--(accent|info-bg): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`)
	for _, text := range []string{"#ffffff", "#000000", "#ffff00", "#00ff00", "#1F5FBF", "#c0392b", "#808080", "#010203"} {
		c, err := ParseColor(text)
		if err != nil {
			t.Fatal(err)
		}
		colors := map[string][2]Color{}
		for _, m := range pairs.FindAllStringSubmatch(string(c.style()), -1) {
			colors[m[1]] = [2]Color{Color(m[2]), Color(m[3])}
		}
		if len(colors) != 2 {
			t.Fatalf("%s: the style is %s", text, c.style())
		}
		for theme, grounds := range [2][]Color{{"#ffffff", lightGround, colors["info-bg"][0]}, {"#12151c", darkGround, colors["info-bg"][1]}} {
			for _, ground := range grounds {
				if got := colors["accent"][theme].parts().contrast(ground.parts()); got < 4.5 {
					t.Errorf("%s: the contrast of %s to %s is %.1f, want 4.5", text, colors["accent"][theme], ground, got)
				}
			}
		}
	}
	for _, text := range []string{"", "red", "#fff", "#12345g", "#1234567", "url(x)"} {
		if _, err := ParseColor(text); err == nil {
			t.Errorf("ParseColor(%q) has no error", text)
		}
	}
}

// TestBrandFiles checks that a logo and a color have addresses of their own, which Serve knows.
func TestBrandFiles(t *testing.T) {
	t.Parallel()
	own, err := static.Read()
	if err != nil {
		t.Fatal(err)
	}
	_, plain := Brand{}.files(own)
	if plain.Name != "tollgate" || plain.Style != "" || plain.Logo != own.Path("logo.svg") || plain.Contact != nil {
		t.Errorf("without settings the brand is %+v", plain)
	}
	files, b := Brand{Name: "Blue Sky", Contact: "mailto:help@example.com", Color: "#aa3300", Logo: []byte("<svg/>"),
		LogoType: "image/svg+xml"}.files(own)
	if b.Name != "Blue Sky" || b.Logo != files.Path("shop.svg") || b.Logo == "" || b.Style != files.Path("brand.css") || b.Style == "" {
		t.Errorf("the brand is %+v", b)
	}
	if want := (ui.Link{Href: "mailto:help@example.com", Text: ui.Data("help@example.com")}); *b.Contact != want {
		t.Errorf("the contact is %+v, want %+v", *b.Contact, want)
	}
	if own.Path("brand.css") != "" {
		t.Error("the files of one brand are served by all consoles")
	}
}
