package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/mail"
)

// maxLegal bounds each file of terms or of a privacy policy, in bytes.
const maxLegal = 256 << 10

// readLegal reads a text and its other languages, which are in files beside it with the language before the
// extension.
func readLegal(path string) (page.LegalText, error) {
	text := page.LegalText{}
	ext := filepath.Ext(path)
	for _, locale := range mail.Locales() {
		name := path
		if locale != mail.English {
			name = strings.TrimSuffix(path, ext) + "." + string(locale) + ext
		}
		p, err := readProse(name)
		if errors.Is(err, fs.ErrNotExist) && locale != mail.English {
			continue
		}
		if err != nil {
			return nil, err
		}
		text[locale] = p
	}
	return text, nil
}

// readProse reads a file with a text.
func readProse(path string) (ui.Prose, error) {
	file, err := os.Open(path)
	if err != nil {
		return ui.Prose{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxLegal+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return ui.Prose{}, err
	}
	switch {
	case len(raw) > maxLegal:
		return ui.Prose{}, fmt.Errorf("%s must have at most %d KB", path, maxLegal>>10)
	case !utf8.Valid(raw):
		return ui.Prose{}, fmt.Errorf("%s must be a text in UTF-8", path)
	case strings.TrimSpace(string(raw)) == "":
		return ui.Prose{}, fmt.Errorf("%s is empty", path)
	case strings.EqualFold(filepath.Ext(path), ".md"):
		return ui.Markdown(raw)
	}
	return ui.Prose{Plain: string(raw)}, nil
}

// checkLegal checks the settings of terms together.
func checkLegal(s *Settings) error {
	if s.legal.Version != "" && s.legal.Terms == nil {
		return &SettingError{"terms_version", errors.New("needs terms_file: users must be able to read what they accept")}
	}
	return nil
}
