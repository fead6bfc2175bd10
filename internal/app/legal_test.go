package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/mail"
)

// TestLegalSettings checks the settings of terms and privacy and their errors.
func TestLegalSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	terms := write("terms.md", "# Terms\n\nPay [here](javascript:alert(1)). <script>alert(2)</script>\n")
	write("terms.zh-CN.md", "# 条款\n")
	for _, c := range []struct{ settings, want string }{
		{"terms_file: " + terms, ""},
		{"privacy_file: " + write("privacy.txt", "<b>We keep nothing.</b>"), ""},
		{"terms_file: " + dir, "is a directory"},
		{"terms_file: " + terms + "\nterms_version: 2026-12-01", ""},
		{"terms_file: " + terms + "\nterms_version: " + strings.Repeat("1", 81), "at most 80 bytes"},
		{"terms_version: 2026-12-01", "needs terms_file"},
		{"terms_file: " + write("empty.md", " \n"), "is empty"},
		{"terms_file: " + write("large.md", strings.Repeat("x", maxLegal+1)), "at most 256 KB"},
		{"terms_file: " + write("picture.md", "\xff\xd8\xff"), "a text in UTF-8"},
	} {
		s, err := settingsFrom(c.settings, nil, nil)
		if err == nil {
			err = checkLegal(s)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.settings, err, c.want)
		}
	}
	missing := filepath.Join(dir, "none.md")
	_, err := settingsFrom("terms_file: "+missing, nil, nil)
	if err == nil || !strings.HasSuffix(err.Error(), ": "+missing+": no such file or directory") {
		t.Errorf("without the file: error %v, want its path once", err)
	}
	s, err := settingsFrom("terms_file: "+terms, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	english, chinese := s.legal.Terms[mail.English], s.legal.Terms[mail.Chinese]
	if english.Title != "Terms" || chinese.Title != "条款" {
		t.Errorf("the titles are %q and %q", english.Title, chinese.Title)
	}
	if html := string(english.HTML); strings.Contains(html, "javascript") || strings.Contains(html, "<script") {
		t.Errorf("the terms have a script: %s", html)
	}
}
