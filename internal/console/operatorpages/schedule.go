package operatorpages

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

const changesPath = "/operator/catalog/changes"

// schedulePage shows the rejected form to schedule a change.
type schedulePage struct {
	Changes []string
	Form    ui.PostForm
}

// changePage is a scheduled change of the catalog.
type changePage struct {
	State   ui.Badge
	Reason  string // of a failure; otherwise empty
	Facts   ui.Facts
	Changes []string
	Diff    ui.Diff
	Cancel  *ui.Confirm // nil unless the change is pending
}

// Later returns the form to schedule the checked catalog.
func (p catalogEditPage) Later() ui.PostForm { return scheduleForm(p.NextText, revisionText(p.Base)) }

func scheduleForm(text, base string) ui.PostForm {
	const prefix = "later-"
	return ui.PostForm{Action: page.Base + changesPath, Submit: "Schedule", Fields: []ui.FormField{
		{Name: "yaml", Prefix: prefix, Kind: ui.Hidden, Value: text}, {Name: "base", Prefix: prefix, Kind: ui.Hidden, Value: base},
		{Name: "at", Prefix: prefix, Label: "Time in UTC", Kind: "datetime-local", Required: true,
			Hint: "The changes are applied at this time, unless the same models or lines are changed before."},
		{Name: "note", Prefix: prefix, Label: "Note", Hint: "For operators."},
		{Name: "tell_customers", Prefix: prefix, Label: "Tell customers about new prices", Kind: ui.Check,
			Hint: "They see the new prices with the time beside the models, and get a mail if mail is on. Costs are never shown."},
	}}
}

// scheduleCatalog schedules a checked catalog.
func (c *console) scheduleCatalog(v *page.Visit) (page.Responder, error) {
	form := scheduleForm("", "")
	if err := v.ReadLongForm(&form, maxCatalog); err != nil {
		return nil, err
	}
	base, baseErr := strconv.ParseInt(form.Field("base").Value, 10, 64)
	doc, _, err := catalog.Parse([]byte(form.Field("yaml").Value), c.Providers)
	if err != nil || baseErr != nil || base == 0 {
		return nil, fault.New(fault.InvalidRequest, "This form is incomplete. Check the catalog again, and schedule it then.")
	}
	at, err := readTime(&form, "at")
	if err == nil {
		err = c.schedule(v, doc, base, catalog.Schedule{AtMS: at, Note: strings.TrimSpace(form.Field("note").Value),
			Announced: form.Field("tell_customers").Checked})
	}
	if err == nil {
		return page.To("/operator/catalog", "scheduled"), nil
	}
	if err := page.AddErrors(&form, err); err != nil {
		return nil, err
	}
	preview, err := page.Read(v, func(tx *store.Tx) (catalog.ApplyResult, error) { return catalog.PreviewTx(tx, doc) })
	return page.FullPage{Name: "catalogschedule", Title: "Schedule the changes", Main: schedulePage{preview.Changes, form},
		Status: http.StatusUnprocessableEntity}, err
}

// readTime returns the time in a field of a form, in Unix milliseconds. An error names the field.
func readTime(form *ui.PostForm, name string) (int64, error) {
	at, err := time.Parse(ui.TimeFormat, strings.TrimSpace(form.Field(name).Value))
	if err != nil {
		return 0, fault.At(fault.InvalidRequest, name, "{param} must be a date with a time, in UTC.")
	}
	return at.UnixMilli(), nil
}

func (c *console) schedule(v *page.Visit, doc *catalog.Document, base int64, s catalog.Schedule) error {
	err := v.Update(func(tx *store.Tx) error {
		_, err := operator.ScheduleTx(tx, show.Actor(v), doc, base, s)
		return err
	})
	if errors.Is(err, operator.ErrApplied) {
		return fault.New(fault.InvalidRequest, "Somebody has applied another catalog in the meantime, so nothing was scheduled. "+
			"Edit the catalog again.")
	}
	if err == nil {
		c.refreshNow(v, "the scheduled change", c.Catalog.Refresh)
	}
	return err
}

// changeBadge shows the state of a scheduled change.
func changeBadge(s catalog.ChangeState) ui.Badge {
	tone := map[catalog.ChangeState]ui.Tone{catalog.ChangePending: ui.Info, catalog.ChangeApplied: ui.OK, catalog.ChangeFailed: ui.Bad}[s]
	return ui.Badge{Tone: tone, Label: ui.Data(s.String())}
}

// scheduledRows is the maximum number of scheduled changes on the page of the catalog.
const scheduledRows = 10

// scheduledTableTx lists the newest scheduled changes.
func scheduledTableTx(tx *store.Tx) (ui.DataTable, error) {
	t := ui.DataTable{Caption: "Scheduled changes", Columns: []ui.Column{{Title: "Time"}, {Title: "State"}, {Title: "Changes"},
		{Title: "Note"}}}
	all, _, err := catalog.ScheduledChangesTx(tx, "", scheduledRows)
	for _, c := range all {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + changesPath + "/" + c.ID,
			Cells: []any{ui.Moment{MS: c.AtMS}, changeBadge(c.State), ui.Text{Text: firstChanges(c.Changes), Lines: true},
				ui.OrDash(c.Note)}})
	}
	return t, err
}

func (c *console) showChange(v *page.Visit) (page.Responder, error) {
	var content changePage
	err := v.View(func(tx *store.Tx) error {
		change, err := catalog.ScheduledChangeTx(tx, v.PathID())
		if err != nil {
			return err
		}
		base, next, err := change.DocumentsTx(tx)
		if err != nil {
			return err
		}
		authors, err := operator.LastActorsTx(tx, operator.CatalogSchedule, []string{change.ID})
		if err != nil {
			return err
		}
		isAnnounced := "no"
		if change.Announced {
			isAnnounced = "yes"
		}
		content = changePage{State: changeBadge(change.State), Reason: change.Reason, Changes: change.Changes,
			Diff: ui.DiffOf(string(base.YAML()), string(next.YAML())),
			Facts: ui.Facts{{Name: "Time", Value: ui.Moment{MS: change.AtMS}}, {Name: "Scheduled", Value: ui.Moment{MS: change.CreatedMS}},
				{Name: "By", Value: ui.OrDash(show.ActorName(authors[change.ID]))}, {Name: "Note", Value: ui.OrDash(change.Note)},
				{Name: "Customers are told", Value: isAnnounced}, {Name: "On revision", Value: revisionText(change.Base)}}}
		if change.State == catalog.ChangePending {
			confirm := v.Confirm(ui.Confirm{ID: "cancel", Button: "Cancel the change", Title: "Cancel this change?", Danger: true,
				Action: page.Base + changesPath + "/" + change.ID + "/cancel", Text: []ui.Words{"The catalog stays as it is at that time."}})
			content.Cancel = &confirm
		}
		if change.Revision > 0 {
			content.Facts = append(content.Facts, ui.Fact{Name: "Revision", Value: ui.Link{
				Href: page.Base + "/operator/catalog/revisions/" + revisionText(change.Revision), Text: ui.Data(revisionText(change.Revision))}})
		}
		return nil
	})
	return page.FullPage{Name: "catalogchange", Title: "Scheduled change", Main: content}, err
}

func (c *console) cancelChange(v *page.Visit) (page.Responder, error) {
	err := v.Update(func(tx *store.Tx) error {
		_, err := operator.CancelChangeTx(tx, show.Actor(v), v.PathID())
		return err
	})
	if err == nil {
		c.refreshNow(v, "the cancelled change", c.Catalog.Refresh)
	}
	return page.To("/operator/catalog", "cancelled"), err
}
