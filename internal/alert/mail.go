package alert

import (
	"context"
	"strings"
	"time"

	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Mails are the mails about alerts. The zero value sends none.
type Mails struct {
	DB        *store.DB
	Mailer    *mail.Mailer
	Addresses []string // of the readers
}

func (m Mails) on() bool { return m.Mailer.On() && len(m.Addresses) > 0 }

// maxMailed bounds the mailed alerts of a node in an hour, so a line with many changes fills no
// mailbox.
const maxMailed = 30

// hourCount counts events in the current hour.
type hourCount struct {
	hour int64
	n    int
}

// add counts an event and returns the events of its hour.
func (c *hourCount) add(now time.Time) int {
	if hour := now.Unix() / 3600; hour != c.hour {
		*c = hourCount{hour: hour}
	}
	c.n++
	return c.n
}

// mail writes the mails about an alert to the outbox.
func (s *Sender) mail(ctx context.Context, alert Alert) {
	switch n := s.mailed.add(time.Unix(alert.At, 0)); {
	case n == maxMailed+1:
		s.log.Warn("further alerts about lines are not mailed in this hour", "mailed", maxMailed)
		return
	case n > maxMailed:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cause := id.New("alert_")
	err := s.mails.DB.Update(ctx, func(tx *store.Tx) error {
		for _, address := range s.mails.Addresses {
			if err := s.mails.Mailer.EnqueueTx(tx, mail.Letter{Kind: mail.Alert, Subject: strings.ToLower(address), Cause: cause, To: address,
				Values: map[string]string{"alert": alert.summary(), "text": alert.text(), "time": mail.Time(alert.At * 1000)}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.log.Warn("an alert about a line was not mailed", "line", alert.Line, "model", alert.Model, "state", alert.State, "error", err)
	}
}
