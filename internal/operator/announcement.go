package operator

import (
	"tollgate/internal/announcement"
	"tollgate/internal/store"
)

// announcementDetails returns the fields of an announcement for the log.
func announcementDetails(a announcement.Announcement) Details {
	d := Details{"title": a.Title, "text": a.Text, "level": a.Level, "from": a.FromMS / 1000}
	if a.UntilMS != 0 {
		d["until"] = a.UntilMS / 1000
	}
	return d
}

// CreateAnnouncementTx stores an announcement; see announcement.CreateTx.
func CreateAnnouncementTx(tx *store.Tx, by Actor, d announcement.Draft) (announcement.Announcement, error) {
	a, err := announcement.CreateTx(tx, d)
	if err != nil {
		return a, err
	}
	return a, writeLogTx(tx, by, LogRow{Act: AnnouncementCreate, Object: a.ID, After: announcementDetails(a)})
}

// ChangeAnnouncementTx changes an announcement; see announcement.ChangeTx.
func ChangeAnnouncementTx(tx *store.Tx, by Actor, id string, change func(*announcement.Draft) error) (announcement.Announcement, error) {
	before, after, err := announcement.ChangeTx(tx, id, change)
	if err != nil {
		return after, err
	}
	return after, logAnnouncementTx(tx, by, before, after)
}

// EndAnnouncementTx ends an announcement now; see announcement.EndTx.
func EndAnnouncementTx(tx *store.Tx, by Actor, id string) error {
	before, after, err := announcement.EndTx(tx, id)
	if err != nil {
		return err
	}
	return logAnnouncementTx(tx, by, before, after)
}

// logAnnouncementTx logs the change of an announcement.
func logAnnouncementTx(tx *store.Tx, by Actor, before, after announcement.Announcement) error {
	return writeLogTx(tx, by, LogRow{Act: AnnouncementChange, Object: after.ID, Before: announcementDetails(before),
		After: announcementDetails(after)})
}

// DeleteAnnouncementTx deletes an announcement.
func DeleteAnnouncementTx(tx *store.Tx, by Actor, id string) error {
	a, err := announcement.DeleteTx(tx, id)
	if err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: AnnouncementDelete, Object: id, Before: announcementDetails(a)})
}
