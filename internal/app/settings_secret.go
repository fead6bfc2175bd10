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
	return Setting{Key: s.Key + fileSuffix, Help: "file with the value of " + s.Key, Secret: true,
		read: func(path string) error {
			text, err := readSecretFile(path)
			if err != nil {
				return err
			}
			to.ownFiles = append(to.ownFiles, path)
			if s.Key == "admin_token" {
				to.AdminTokenFile = path
			}
			if err := s.read(text); err != nil {
				return fmt.Errorf("the content of the file %w", err)
			}
			to.texts[s.Key] = text
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
		a.log.Warn("kept the old operator token: its file cannot be used", "setting", "admin_token_file", "error", err)
	case a.token.Is(text):
	default:
		a.token.Replace(text)
		a.log.Info("operator token reloaded", "setting", "admin_token_file")
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
		return "", fmt.Errorf("the file is larger than %d bytes", largestFile)
	case text == "":
		return "", errors.New("the file is empty")
	}
	return text, nil
}
