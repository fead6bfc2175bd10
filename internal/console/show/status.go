package show

import (
	"net/http"
	"strconv"

	"tollgate/internal/console/part"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
)

// Status shows how a request ended: the status, and the code of an error.
func Status(status int, code string) part.Badge {
	word := strconv.Itoa(status)
	if code != "" {
		word += " " + code
	}
	switch {
	case status < http.StatusBadRequest:
		return part.Badge{Tone: part.OK, Word: word}
	case status < http.StatusInternalServerError:
		return part.Badge{Tone: part.Warn, Word: word}
	}
	return part.Badge{Tone: part.Bad, Word: word}
}

// Tokens are those of prompt and answer in short.
func Tokens(t ledger.Tokens) part.Text {
	if t.Prompt == 0 && t.Completion == 0 {
		return part.Text{Text: "–", Muted: true}
	}
	return part.Text{Text: part.Thousands(t.Prompt) + " → " + part.Thousands(t.Completion)}
}

// NoneSince stands where a page of the log has found nothing in as much of it as a page
// looks through; nil: it has, or there is no more.
func NoneSince(p requestlog.Page, pager part.Pager) *part.Empty {
	if len(p.Receipts) > 0 || !p.More {
		return nil
	}
	return &part.Empty{Title: "Nothing matches since " + part.UTC(p.BackMS) + " UTC",
		Text: "A page looks through so much of the log at a time. " +
			"A span of days is found at once.", Link: &part.Link{Href: pager.Next, Text: "Look further back", Button: true}}
}
