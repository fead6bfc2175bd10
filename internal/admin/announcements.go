package admin

import (
	"tollgate/internal/announcement"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// announcementAnswer is an announcement to customers (operator.md, Operator API).
type announcementAnswer struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Text    string `json:"text"`
	Level   string `json:"level"`
	State   string `json:"state"`
	From    int64  `json:"from"`
	Until   *int64 `json:"until"`
	Created int64  `json:"created"`
}

func showAnnouncement(a announcement.Announcement, nowMS int64) announcementAnswer {
	return announcementAnswer{ID: a.ID, Title: a.Title, Text: a.Text, Level: a.Level, State: a.State(nowMS),
		From: seconds(a.FromMS), Until: nilIfZero(seconds(a.UntilMS)), Created: seconds(a.CreatedMS)}
}

// draftFields returns the fields of a body that edit a draft.
func draftFields(d *announcement.Draft) []field {
	instant := func(name string, ms *int64) field {
		return field{name: name, must: "a time in Unix seconds", set: setter(func(s int64) { *ms = min(max(s, 1), maxExpires) * 1000 })}
	}
	until := instant("until", &d.UntilMS)
	until.null = func() { d.UntilMS = 0 }
	return []field{textField("title", &d.Title), textField("text", &d.Text), textField("level", &d.Level),
		instant("from", &d.FromMS), until}
}

// answerAnnouncementTx returns an announcement as an answer.
func answerAnnouncementTx(tx *store.Tx, a announcement.Announcement, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	now, err := tx.NowMS()
	return showAnnouncement(a, now), err
}

func (s *server) createAnnouncement(c *call) (any, error) {
	draft := announcement.Draft{Level: announcement.Info}
	body, err := c.decodeBody(draftFields(&draft)...)
	if err != nil {
		return nil, err
	}
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		a, err := operator.CreateAnnouncementTx(tx, s.actor(c), draft)
		return answerAnnouncementTx(tx, a, err)
	})
}

func (s *server) listAnnouncements(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		now, err := tx.NowMS()
		if err != nil {
			return nil, err
		}
		items, more, err := announcement.ListTx(tx, after, limit)
		return newList(items, more, func(a announcement.Announcement) announcementAnswer { return showAnnouncement(a, now) }), err
	})
}

func (s *server) changeAnnouncement(c *call) (any, error) {
	body, err := c.readObject()
	if err != nil {
		return nil, err
	}
	return change(s, c, func(tx *store.Tx) (any, error) {
		a, err := operator.ChangeAnnouncementTx(tx, s.actor(c), c.id, func(draft *announcement.Draft) error {
			return body.decode(draftFields(draft)...)
		})
		return answerAnnouncementTx(tx, a, err)
	})
}

func (s *server) deleteAnnouncement(c *call) (any, error) {
	return change(s, c, func(tx *store.Tx) (any, error) {
		return deletedAnswer{c.id, true}, operator.DeleteAnnouncementTx(tx, s.actor(c), c.id)
	})
}
