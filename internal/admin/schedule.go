package admin

import (
	"context"
	"net/url"
	"strconv"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// changeAnswer is a scheduled change of the catalog.
type changeAnswer struct {
	ID            string   `json:"id"`
	At            int64    `json:"at"`
	State         string   `json:"state"`
	Base          int64    `json:"base"`
	Changes       []string `json:"changes"`
	Note          string   `json:"note"`
	TellCustomers bool     `json:"tell_customers"`
	Revision      int64    `json:"revision,omitempty"`
	Reason        string   `json:"reason,omitempty"`
	Created       int64    `json:"created"`
	Ended         int64    `json:"ended,omitempty"`
}

func showChange(c catalog.ScheduledChange) changeAnswer {
	return changeAnswer{ID: c.ID, At: seconds(c.AtMS), State: c.State.String(), Base: c.Base, Changes: c.Changes, Note: c.Note,
		TellCustomers: c.Announced, Revision: c.Revision, Reason: c.Reason, Created: seconds(c.CreatedMS), Ended: seconds(c.EndedMS)}
}

// scheduledAnswer is the answer to PUT /catalog with a time.
type scheduledAnswer struct {
	changeAnswer

	Warnings []string `json:"warnings"`
}

// boolean reads a query parameter with the value true or false. A missing parameter is false.
func boolean(values url.Values, name string) (bool, error) {
	switch text := values.Get(name); {
	case text == "true":
		return true, nil
	case text == "false", !values.Has(name):
		return false, nil
	}
	return false, fault.At(fault.InvalidRequest, name, "%s must be true or false.", name)
}

// maxAt is 9999-12-31, in Unix seconds.
const maxAt = 253402214400

// scheduleOf reads the schedule of a catalog from the query. Without at, the result is zero.
func scheduleOf(values url.Values) (s catalog.Schedule, err error) {
	if s.Announced, err = boolean(values, "tell_customers"); err != nil {
		return s, err
	}
	s.Note = values.Get("note")
	if !values.Has("at") {
		if values.Has("note") || values.Has("tell_customers") {
			return s, fault.At(fault.InvalidRequest, "at", "note and tell_customers need at: the time of the change in Unix seconds.")
		}
		return s, nil
	}
	at, err := strconv.ParseInt(values.Get("at"), 10, 64)
	if err != nil || at < 1 || at > maxAt {
		return s, fault.At(fault.InvalidRequest, "at", "at must be a time in Unix seconds.")
	}
	s.AtMS = at * 1000
	return s, nil
}

// schedule schedules a catalog.
func (s *server) schedule(c *call, doc *catalog.Document, at catalog.Schedule, warnings []string) (any, error) {
	return s.changeSchedule(c, func(tx *store.Tx) (any, error) {
		scheduled, err := operator.ScheduleTx(tx, s.actor(c), doc, 0, at)
		return scheduledAnswer{showChange(scheduled), warnings}, err
	})
}

// changeSchedule runs act and refreshes this node's catalog before the answer is sent.
func (s *server) changeSchedule(c *call, act func(tx *store.Tx) (any, error)) (any, error) {
	out, err := change(s, c, act)
	if err == nil {
		s.refresh(context.WithoutCancel(c.ctx))
	}
	return out, err
}

func (s *server) listChanges(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		all, more, err := catalog.ScheduledChangesTx(tx, after, limit)
		return newList(all, more, showChange), err
	})
}

func (s *server) getChange(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		found, err := catalog.ScheduledChangeTx(tx, c.id)
		return showChange(found), err
	})
}

func (s *server) cancelChange(c *call) (any, error) {
	return s.changeSchedule(c, func(tx *store.Tx) (any, error) {
		cancelled, err := operator.CancelChangeTx(tx, s.actor(c), c.id)
		return showChange(cancelled), err
	})
}
