package static

import (
	"compress/gzip"
	"io"
	"math"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFilesAreImmutable checks the size, the headers and the compressed form of each file. The address
// must contain the checksum.
func TestFilesAreImmutable(t *testing.T) {
	t.Parallel()
	f, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{"console.css": 24 << 10, "console.js": 20 << 10, "playground.js": 24 << 10, "icons.svg": 8 << 10,
		"logo.svg": 1 << 10, "clip.svg": 1 << 10, "lucide-LICENSE.txt": 8 << 10}
	if len(sizes) != len(contentTypes) {
		t.Error("a file has no size limit in this test")
	}
	for name, limit := range sizes {
		segment := strings.TrimPrefix(f.Path(name), "/console/static/")
		plain, zipped := httptest.NewRecorder(), httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		if !f.Serve(plain, r, segment) {
			t.Fatalf("%s is not at %s", name, segment)
		}
		r.Header.Set("Accept-Encoding", "br, gzip")
		f.Serve(zipped, r, segment)
		if plain.Body.Len() > limit || plain.Body.Len() == 0 || !strings.Contains(plain.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s has %d bytes, want 1 to %d; headers %v", name, plain.Body.Len(), limit, plain.Header())
		}
		unzip, err := gzip.NewReader(zipped.Body)
		if err != nil || zipped.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: the compressed file has the headers %v and the error %v", name, zipped.Header(), err)
		}
		if got, err := io.ReadAll(unzip); err != nil || string(got) != plain.Body.String() {
			t.Errorf("%s: the compressed content differs from the plain content, error %v", name, err)
		}
		if f.Serve(httptest.NewRecorder(), r, name) {
			t.Errorf("%s is served without a checksum in the address", name)
		}
	}
	if f.Path("other") != "" {
		t.Error("Path returned an address for an unknown file")
	}
}

var colorProperty = regexp.MustCompile(`--([a-z0-9-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`)

// TestContrasts checks that the stylesheet's text colors have enough contrast in both themes, and that
// colors are used only through custom properties.
func TestContrasts(t *testing.T) {
	t.Parallel()
	raw, err := embedded.ReadFile("console.css")
	if err != nil {
		t.Fatal(err)
	}
	var palettes [2]map[string]string
	palettes[0], palettes[1] = map[string]string{}, map[string]string{}
	for _, m := range colorProperty.FindAllStringSubmatch(string(raw), -1) {
		palettes[0][m[1]], palettes[1][m[1]] = m[2], m[3]
	}
	backgrounds := []string{"bg", "sub", "raised", "code"}
	minContrasts := map[string]float64{"text": 7, "muted": 4.5, "accent": 4.5, "edge": 3,
		"s1": 3, "s2": 3, "s3": 3, "s4": 3, "s5": 3, "s6": 3, "s7": 3,
		"ok": 4.5, "warn": 4.5, "bad": 4.5, "info": 4.5}
	for theme, palette := range palettes {
		check := func(background, color string, minContrast float64) {
			if palette[background] == "" || palette[color] == "" {
				t.Fatalf("the stylesheet has no color %s or no color %s", background, color)
			}
			if got := contrast(t, palette[background], palette[color]); got < minContrast {
				t.Errorf("theme %d: the contrast of %s on %s is %.1f, want at least %.1f", theme, color, background, got, minContrast)
			}
		}
		for color, minContrast := range minContrasts {
			for _, background := range backgrounds {
				check(background, color, minContrast)
			}
		}
		for _, tone := range []string{"ok", "warn", "bad", "info"} {
			check(tone+"-bg", tone, 4.5)
		}
		check("info-bg", "text", 4.5) // a bar's name
		check("accent", "on-accent", 4.5)
	}
	if strings.Count(string(raw), "#") > len(colorProperty.FindAllString(string(raw), -1))*2 {
		t.Error("a color is used outside the custom properties")
	}
}

// contrast returns the contrast ratio of two colors as defined by WCAG 2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, hex string) (sum float64) {
	t.Helper()
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// TestLicense checks that the icons have their license beside them.
func TestLicense(t *testing.T) {
	t.Parallel()
	raw, err := embedded.ReadFile("lucide-LICENSE.txt")
	if err != nil || !strings.Contains(string(raw), "ISC License") {
		t.Errorf("the license file has the error %v and the text %q, want the ISC License", err, raw)
	}
}

// TestScriptsMakeNoMarkup checks that the scripts make no markup from text. The only exception is the
// function for answers of our own server.
func TestScriptsMakeNoMarkup(t *testing.T) {
	t.Parallel()
	unsafe := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|createContextualFragment|parseFromString`)
	for name, limit := range map[string]int{"playground.js": 0, "console.js": 1} {
		raw, err := embedded.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := unsafe.FindAllString(string(raw), -1); len(found) != limit {
			t.Errorf("%s uses %v, want %d uses", name, found, limit)
		}
	}
}
