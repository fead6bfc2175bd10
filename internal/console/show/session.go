package show

import (
	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
)

// SessionList lists the sessions of a user, one for each signed-in browser.
type SessionList struct {
	Table ui.DataTable
	Pager ui.Pager
	All   ui.Confirm // ends all sessions
}

// sessionsAfter is the query parameter with the id of the last session on the previous page.
const sessionsAfter = "sessions"

// SessionsTx lists the visitor's sessions, for the page at path. The buttons to end sessions post to addresses
// below actionPath.
func SessionsTx(tx *store.Tx, v *page.Visit, path, actionPath string) (SessionList, error) {
	list, more, err := account.ListSessionsTx(tx, v.Session.User.ID, v.Query(sessionsAfter), page.Rows)
	last := page.Last(list, func(session account.ConsoleSession) string { return session.ID })
	s := SessionList{Pager: v.PagerBy(sessionsAfter, path, more, last)}
	s.Table = ui.DataTable{Caption: "Signed in", Columns: []ui.Column{
		{Title: "Browser"}, {Title: "Signed in to"}, {Title: "Address"}, {Title: "Last use"}, {Title: "Signed in"}, {Title: ""}}}
	for _, session := range list {
		pages := ui.Words("your account")
		if session.Kind == account.OperatorSession {
			pages = "operator's pages"
		}
		browser := ui.Text{Text: browserName(session.Agent), Title: ui.Data(session.Agent)}
		var end any = ui.Button{Action: page.Base + actionPath + "/" + session.ID + "/end", Label: "Sign out", About: browser.Text}
		if session.ID == v.Session.ID {
			end = ui.Badge{Tone: ui.OK, Label: "this browser"}
		}
		s.Table.Rows = append(s.Table.Rows, ui.DataRow{Cells: []any{browser, pages, ui.Text{Text: ui.Data(session.Address), Mono: true},
			ui.Moment{MS: session.SeenMS}, ui.Moment{MS: session.CreatedMS}, end}})
	}
	s.All = v.Confirm(ui.Confirm{ID: "end-all", Button: "Sign out everywhere", Title: "Sign out everywhere?",
		Action: page.Base + actionPath + "/end",
		Text:   []ui.Words{"All browsers, including this one, must sign in again. API keys keep working."}})
	return s, err
}
