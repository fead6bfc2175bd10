package app

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// fileSuffix ends the key of a setting for a secret's file.
const fileSuffix = "_file"

// inFile returns the setting for the file of a secret setting.
func (s Setting) inFile(to *Settings) Setting {
	return Setting{Key: s.Key + fileSuffix, Help: "file that holds " + s.Key + ", in its place", Secret: true,
		read: func(path string) error {
			text, err := readSecretFile(path)
			if err != nil {
				return err
			}
			if s.Key == "admin_token" {
				to.AdminTokenFile = path
			}
			if err := s.read(text); err != nil {
				return fmt.Errorf("what the file holds %w", err)
			}
			return nil
		}}
}

// rereadToken reads the operator's token again from the file in the setting. If the file is
// unreadable or the token invalid, the old token stays.
func (a *App) rereadToken() {
	if a.settings.AdminTokenFile == "" {
		return
	}
	text, err := readSecretFile(a.settings.AdminTokenFile)
	if err == nil {
		next := *a.settings
		if next.AdminToken, err = readToken(text); err == nil {
			err = checkToken(&next)
		}
	}
	switch {
	case err != nil:
		a.log.Warn("the operator's token stays, since its file cannot be taken again", "setting", "admin_token_file", "error", err)
	case a.token.Is(text):
	default:
		a.token.Replace(text)
		a.log.Info("the operator's token is another one now", "setting", "admin_token_file")
	}
}

// readSecretFile reads a file and removes the white space around its content.
func readSecretFile(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", permissionError(path, err)
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case len(raw) > largestFile:
		return "", fmt.Errorf("must name a file of at most %d bytes", largestFile)
	case text == "":
		return "", errors.New("must name a file that holds something")
	}
	return text, nil
}
