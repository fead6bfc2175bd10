package userpages

import (
	"embed"

	"tollgate/internal/console/part"
)

// receivers are programs for receiving events. The guides have the same programs.
//
//go:embed receiver/receiver.*
var receivers embed.FS

// receiverCodes returns example receivers. An error means a missing embedded file.
func receiverCodes() (part.Snippets, error) {
	codes := part.Snippets{ID: "receiver"}
	for _, one := range []struct{ name, file string }{{"Python", "py"}, {"Node", "mjs"}, {"Go", "go.txt"}, {"PHP", "php"}} {
		text, err := receivers.ReadFile("receiver/receiver." + one.file)
		if err != nil {
			return codes, err
		}
		codes.Tabs = append(codes.Tabs, part.Snippet{Name: one.name, Text: string(text)})
	}
	return codes, nil
}
