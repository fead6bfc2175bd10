package announcement

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// replaceTx replaces the draft of an announcement.
func replaceTx(tx *store.Tx, id string, with Draft) error {
	_, _, err := ChangeTx(tx, id, func(d *Draft) error { *d = with; return nil })
	return err
}

// create stores an announcement.
func create(t *testing.T, db *store.DB, d Draft) (a Announcement) {
	t.Helper()
	storetest.Update(t, db, func(tx *store.Tx) (err error) {
		a, err = CreateTx(tx, d)
		return err
	})
	return a
}

// wantActive checks the titles of the active announcements after a refresh.
func wantActive(t *testing.T, b *Board, titles ...string) {
	t.Helper()
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range b.Active() {
		got = append(got, a.Title)
	}
	if !slices.Equal(got, titles) {
		t.Errorf("active are %q, want %q", got, titles)
	}
}

// TestLife follows announcements from their plan to their end, and their dismissal by users, on a node whose
// clock is wrong.
func TestLife(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		b := NewBoard(db, nil)
		b.now = func() time.Time { return clock.Now().AddDate(1, 0, 0) }
		if got := b.Active(); got != nil {
			t.Errorf("a new board has %v", got)
		}
		start := clock.Now().UnixMilli()
		hour := time.Hour.Milliseconds()
		now := create(t, db, Draft{Title: " Now ", Text: "a\r\nb\n", Level: Warning})
		clock.Advance(time.Millisecond) // the list is sorted by it
		later := create(t, db, Draft{Title: "Later", Level: Info, FromMS: start + hour, UntilMS: start + 2*hour})
		if now.Title != "Now" || now.Text != "a\nb" || now.FromMS != start || now.State(start) != Active || later.State(start) != Planned {
			t.Errorf("created %+v and %+v", now, later)
		}
		wantActive(t, b, "Now")
		clock.Advance(time.Hour)
		if got := b.Active(); len(got) != 2 || got[0].ID != later.ID {
			t.Errorf("an hour later, without a refresh, active are %+v", got)
		}
		for _, user := range []string{"ada", "ada", "bob"} {
			storetest.Update(t, db, func(tx *store.Tx) error {
				return errors.Join(DismissTx(tx, user, later.ID), DismissTx(tx, user, "ann_none"))
			})
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return ForgetUserTx(tx, "bob") })
		wantDismissed(t, db, "ada", later.ID)
		wantDismissed(t, db, "bob")
		clock.Advance(time.Hour)
		if got := b.Active(); len(got) != 1 || got[0].ID != now.ID {
			t.Errorf("two hours later, without a refresh, active are %+v", got)
		}
		end := clock.Now().UnixMilli()
		for range 2 { // the second end changes nothing
			storetest.Update(t, db, func(tx *store.Tx) error {
				_, a, err := EndTx(tx, now.ID)
				if a.UntilMS != end {
					t.Errorf("the end is %d, want %d", a.UntilMS, end)
				}
				return err
			})
			clock.Advance(time.Minute)
		}
		wantActive(t, b)
		storetest.Update(t, db, func(tx *store.Tx) error {
			return replaceTx(tx, now.ID, Draft{Title: "Again", Level: Info})
		})
		wantActive(t, b, "Again")
		storetest.Update(t, db, func(tx *store.Tx) error {
			list, more, err := ListTx(tx, "", 1)
			if err != nil || !more || len(list) != 1 || list[0].ID != later.ID {
				t.Errorf("the first page is %+v, more %v, error %v", list, more, err)
			}
			list, more, err = ListTx(tx, later.ID, 1)
			if err != nil || more || len(list) != 1 || list[0].Title != "Again" {
				t.Errorf("the last page is %+v, more %v, error %v", list, more, err)
			}
			_, err = DeleteTx(tx, later.ID)
			return err
		})
		wantDismissed(t, db, "ada")
	})
}

// wantDismissed checks the dismissed announcements of a user.
func wantDismissed(t *testing.T, db *store.DB, user string, want ...string) {
	t.Helper()
	storetest.View(t, db, func(tx *store.Tx) error {
		got, err := DismissedTx(tx, user)
		if !slices.Equal(got, want) {
			t.Errorf("%s has dismissed %q, want %q", user, got, want)
		}
		return err
	})
}

// TestFaults checks that each wrong draft names its fields, and changes nothing.
func TestFaults(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		start := clock.Now().UnixMilli()
		stored := create(t, db, Draft{Title: "Stored", Level: Info})
		for name, c := range map[string]struct {
			draft      Draft
			field      string
			createOnly bool // a change may have the content
		}{
			"no title":   {draft: Draft{Level: Info}, field: "title"},
			"long title": {draft: Draft{Title: strings.Repeat("ü", maxTitle+1), Level: Info}, field: "title"},
			"two lines":  {draft: Draft{Title: "a\nb", Level: Info}, field: "title"},
			"long text":  {draft: Draft{Title: "a", Text: strings.Repeat("ü", maxText+1), Level: Info}, field: "text"},
			"control":    {draft: Draft{Title: "a", Text: "a\x00", Level: Info}, field: "text"},
			"no level":   {draft: Draft{Title: "a"}, field: "level"},
			"backwards":  {draft: Draft{Title: "a", Level: Info, FromMS: start + 2, UntilMS: start + 1}, field: "until"},
			"over":       {draft: Draft{Title: "a", Level: Info, FromMS: start - 2, UntilMS: start}, field: "until", createOnly: true},
		} {
			_, err := store.Write(t.Context(), db, func(tx *store.Tx) (Announcement, error) { return CreateTx(tx, c.draft) })
			wantFault(t, name, c.field, err)
			if !c.createOnly {
				err := db.Update(t.Context(), func(tx *store.Tx) error { return replaceTx(tx, stored.ID, c.draft) })
				wantFault(t, name, c.field, err)
			}
		}
		for range maxOpen - 1 {
			create(t, db, Draft{Title: "More", Level: Info})
		}
		_, err := store.Write(t.Context(), db, func(tx *store.Tx) (Announcement, error) { return CreateTx(tx, stored.Draft) })
		wantFault(t, "too many", "", err)
		storetest.Update(t, db, func(tx *store.Tx) error { return replaceTx(tx, stored.ID, stored.Draft) })
		storetest.Update(t, db, func(tx *store.Tx) error { _, _, err := EndTx(tx, stored.ID); return err })
		create(t, db, Draft{Title: "One more", Level: Info})
	})
}

// wantFault checks that an error is a fault of a field.
func wantFault(t *testing.T, name, field string, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.InvalidRequest || f.Param != field {
		t.Errorf("%s: the error is %v, want a fault of the field %q", name, err, field)
	}
}
