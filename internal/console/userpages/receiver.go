package userpages

import (
	"embed"

	"tollgate/internal/console/ui"
)

// receivers are programs for receiving events. The guides have the same programs.
//
//go:embed receiver/receiver.*
var receivers embed.FS

// receiverCodes returns example receivers. An error means a missing embedded file.
func receiverCodes() (ui.Snippets, error) {
	codes := ui.Snippets{ID: "receiver"}
	for _, one := range []struct{ name, file string }{{"Python", "py"}, {"Node", "mjs"}, {"Go", "go.txt"}, {"PHP", "php"}} {
		text, err := receivers.ReadFile("receiver/receiver." + one.file)
		if err != nil {
			return codes, err
		}
		codes.Tabs = append(codes.Tabs, ui.Snippet{Name: one.name, Text: string(text)})
	}
	return codes, nil
}
