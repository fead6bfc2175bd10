package app

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/url"
	"os"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/mail"
)

// maxLogo bounds the file of a logo, which every page loads.
const maxLogo = 100 << 10

// brandSettings are the settings of the shop's appearance.
type brandSettings struct {
	contact  string // a mailto, http or https address
	color    page.Color
	logo     []byte
	logoType string
}

// brand returns the appearance of the shop.
func (s *Settings) brand() page.Brand {
	return page.Brand{Name: s.ServiceName, Contact: s.shop.contact, Color: s.shop.color, Logo: s.shop.logo, LogoType: s.shop.logoType}
}

// help returns the end of error messages for customers without credit: where to add credit, and whom to ask.
// It returns "" if there are neither payments nor a contact.
func (s *Settings) help() string {
	var sentences []string
	if s.StripeKey != "" || s.EPayKey != "" {
		sentences = append(sentences, "Add credit at "+strings.TrimRight(s.PublicURL, "/")+page.Base+"/billing.")
	}
	if s.shop.contact != "" {
		sentences = append(sentences, "For help, contact "+strings.TrimPrefix(s.shop.contact, "mailto:")+".")
	}
	return strings.Join(sentences, " ")
}

// readContact reads a mail address or the address of a page.
func readContact(text string) (string, error) {
	if !strings.Contains(text, "://") && strings.Contains(text, "@") {
		address, err := mail.ParseAddress(text)
		if err != nil {
			return "", err
		}
		return (&url.URL{Scheme: "mailto", Opaque: address}).String(), nil
	}
	address, err := readURL(text)
	if err != nil {
		return "", errors.New("must be a mail address, or an http:// or https:// address")
	}
	return address, nil
}

// readLogo reads the file of a logo.
func (s *brandSettings) readLogo(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxLogo+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if len(raw) > maxLogo {
		return fmt.Errorf("the file must have at most %d KB", maxLogo>>10)
	}
	var root struct{ XMLName xml.Name }
	if _, err := png.DecodeConfig(bytes.NewReader(raw)); err == nil {
		s.logo, s.logoType = raw, "image/png"
		return nil
	}
	if err := xml.Unmarshal(raw, &root); err != nil || root.XMLName.Local != "svg" {
		return errors.New("the file must be an SVG or a PNG")
	}
	s.logo, s.logoType = raw, "image/svg+xml"
	return nil
}
