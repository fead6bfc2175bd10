package app

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrandSettings checks the settings of the shop's appearance and their errors.
func TestBrandSettings(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const svg = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`
	for _, c := range []struct{ setting, want string }{
		{"service_contact: help@example.com", ""},
		{"service_contact: https://example.com/help", ""},
		{"service_contact: example.com", "must be a mail address, or an http:// or https:// address"},
		{"service_contact: javascript:alert(1)", "must be a mail address, or an http:// or https:// address"},
		{"brand_color: '#AA3300'", ""},
		{"brand_color: red", "must be a color such as #1f5fbf"},
		{"brand_logo: " + write("logo.svg", svg), ""},
		{"brand_logo: " + write("logo", picture.String()), ""},
		{"brand_logo: " + write("logo.gif", "GIF89a"), "must be an SVG or a PNG"},
		{"brand_logo: " + write("page.html", "<html></html>"), "must be an SVG or a PNG"},
		{"brand_logo: " + write("large.svg", svg+strings.Repeat(" ", maxLogo)), "at most 100 KB"},
		{"brand_logo: " + filepath.Join(t.TempDir(), "none.png"), "no such file"},
	} {
		_, err := settingsFrom(c.setting, nil, nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.setting, err, c.want)
		}
	}
	s, err := settingsFrom("service_name: Blue Sky\nservice_contact: help@example.com\nbrand_color: '#AA3300'", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := s.brand(); b.Name != "Blue Sky" || b.Contact != "mailto:help@example.com" || b.Color != "#aa3300" {
		t.Errorf("the brand is %+v", b)
	}
}
