package page

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"tollgate/internal/console/static"
	"tollgate/internal/console/ui"
)

// Brand is the appearance of the shop in the console. The zero value is tollgate's own appearance.
type Brand struct {
	Name    string // of the service
	Contact string // where customers get help: a mailto, http or https address
	Logo    []byte // a picture for light and dark backgrounds; may be empty
	// LogoType is the content type of Logo.
	LogoType string
	Color    Color // of links and buttons
}

// Color is a color as in `#1f5fbf`, or empty.
type Color string

// colorText matches a Color that is not empty.
var colorText = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// ParseColor parses a color such as `#1f5fbf`.
func ParseColor(text string) (Color, error) {
	if !colorText.MatchString(text) {
		return "", fmt.Errorf("must be a color such as #1f5fbf, not %q", text)
	}
	return Color(strings.ToLower(text)), nil
}

// rgb is a color as red, green and blue between 0 and 1.
type rgb [3]float64

func (c Color) parts() (parts rgb) {
	for i := range parts {
		n, _ := strconv.ParseUint(string(c[1+2*i:3+2*i]), 16, 8) // ParseColor has checked the digits
		parts[i] = float64(n) / math.MaxUint8
	}
	return parts
}

func (p rgb) color() Color {
	text := "#"
	for _, part := range p {
		text += fmt.Sprintf("%02x", int(math.Round(part*math.MaxUint8)))
	}
	return Color(text)
}

// mix returns p with a share of other, between 0 and 1.
func (p rgb) mix(other rgb, share float64) (mixed rgb) {
	for i := range p {
		mixed[i] = p[i]*(1-share) + other[i]*share
	}
	return mixed
}

// luminance is the relative luminance of WCAG 2.
func (p rgb) luminance() float64 {
	linear := func(part float64) float64 {
		if part <= 0.04045 {
			return part / 12.92
		}
		return math.Pow((part+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(p[0]) + 0.7152*linear(p[1]) + 0.0722*linear(p[2])
}

func (p rgb) contrast(other rgb) float64 {
	light, dark := p.luminance(), other.luminance()
	if light < dark {
		light, dark = dark, light
	}
	return (light + 0.05) / (dark + 0.05)
}

// readable mixes p with end, as little as possible, until text in the color is readable on ground.
func (p rgb) readable(ground, end rgb) rgb {
	const minContrast, steps = 5.5, 40
	for i := range steps {
		if c := p.mix(end, float64(i)/steps); c.contrast(ground) >= minContrast {
			return c
		}
	}
	return end
}

// Backgrounds of the two themes in console.css. They have the lowest contrast to colored text.
const (
	lightGround Color = "#e8f0fc"
	darkGround  Color = "#1f2430"
)

// OnWhite returns the color, or a darker one if text in the color is not readable on white. It returns an empty
// color unchanged.
func (c Color) OnWhite() Color {
	if c == "" {
		return ""
	}
	return c.parts().readable(rgb{1, 1, 1}, rgb{}).color()
}

// style returns the stylesheet for the shop's color. The color is darker in the light theme and lighter in the
// dark theme if text needs the contrast.
func (c Color) style() []byte {
	white, black := rgb{1, 1, 1}, rgb{}
	light := c.parts().readable(lightGround.parts(), black)
	dark := c.parts().readable(darkGround.parts(), white)
	lightTint, darkTint := white.mix(light, 0.08), darkGround.parts().mix(dark, 0.06)
	return fmt.Appendf(nil, "@layer brand { :root { --accent: light-dark(%[1]s, %[2]s); --info: light-dark(%[1]s, %[2]s); "+
		"--s1: light-dark(%[1]s, %[2]s); --info-bg: light-dark(%[3]s, %[4]s); } }\n",
		light.color(), dark.color(), lightTint.color(), darkTint.color())
}

// logoNames are the file names of a shop's logo, by content type.
var logoNames = map[string]string{"image/svg+xml": "shop.svg", "image/png": "shop.png"}

// files adds the brand's logo and stylesheet to the console's files, and returns the brand for the layout.
func (b Brand) files(own *static.Files) (*static.Files, ui.Brand) {
	shown := ui.Brand{Name: b.Name, Logo: own.Path("logo.svg"), Contact: b.ContactLink()}
	if shown.Name == "" {
		shown.Name = "tollgate"
	}
	if len(b.Logo) > 0 {
		name := logoNames[b.LogoType]
		own = own.With(name, b.LogoType, b.Logo)
		shown.Logo = own.Path(name)
	}
	if b.Color != "" {
		own = own.With("brand.css", "text/css; charset=utf-8", b.Color.style())
		shown.Style = own.Path("brand.css")
	}
	return own, shown
}

// ContactLink returns the link to the shop's contact, or nil if the shop has no contact.
func (b Brand) ContactLink() *ui.Link {
	u, err := url.Parse(b.Contact)
	if err != nil || b.Contact == "" {
		return nil
	}
	text := u.Opaque // of mailto
	if text == "" {
		text = u.Host + strings.TrimSuffix(u.Path, "/")
	}
	return &ui.Link{Href: b.Contact, Text: ui.Data(text)}
}

// AskFor returns a sentence that names the person to ask. what completes the sentence, such as "for credit".
func (b Brand) AskFor(what ui.Words) ui.Words {
	if link := b.ContactLink(); link != nil {
		return ui.Sayf("Ask %s %s.", link.Text, what)
	}
	return ui.Sayf("Ask your operator %s.", what)
}
