package operatorpages

import (
	"encoding/json"
	"errors"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/job"
	"tollgate/internal/job/row"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// jobPage shows one job.
type jobPage struct {
	ID       string
	State    ui.Badge
	Acts     []any
	Facts    ui.Facts
	Steps    ui.Timeline
	Attempts ui.DataTable
}

// jobRow is a job with the fields of its public body that the pages show.
type jobRow struct {
	job.View
	ID      string `json:"id"`
	Model   string `json:"model"`
	Status  string `json:"status"`
	Created int64  `json:"created"`
	Error   *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func jobRowOf(v job.View) jobRow {
	r := jobRow{View: v}
	_ = json.Unmarshal(v.Body, &r) // fields that cannot be parsed stay empty
	r.View = v                     // the body may have members with the names of View's fields
	return r
}

func jobRows(views []job.View) []jobRow {
	rows := make([]jobRow, len(views))
	for i, v := range views {
		rows[i] = jobRowOf(v)
	}
	return rows
}

func (r jobRow) badge() ui.Badge {
	b := show.JobBadge(r.Status)
	if r.Error != nil {
		b.Label = ui.Sayf("%s: %s", b.Label, r.Error.Code)
	}
	return b
}

// jobsTable lists jobs. If names is nil, all jobs are of one account, and the table has no account
// column.
func jobsTable(rows []jobRow, names map[string]string) ui.DataTable {
	t := ui.DataTable{Caption: "Jobs", Columns: []ui.Column{{Title: "Time"}, {Title: "Account"}, {Title: "State"}, {Title: "Model"},
		{Title: "Line", Fold: true}, {Title: "Attempts", Right: true, Fold: true},
		{Title: "On hold", Right: true, Fold: true}, {Title: "Cost", Right: true}, {Title: "Job", Fold: true}}}
	for _, r := range rows {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/operator/jobs/" + r.ID, Cells: []any{ui.Moment{MS: r.Created * 1000},
			accountCell(names, r.Account), r.badge(), r.Model, ui.OrDash(r.Line), ui.Count{N: int64(len(r.Attempts))},
			ui.Money{Amount: r.Held}, ui.Money{Amount: r.Cost}, ui.Ident{ID: r.ID, Cut: true}}})
	}
	if names == nil {
		t = t.Without(1)
	}
	return t
}

func (c *console) listJobs(v *page.Visit) (page.Responder, error) {
	status := v.Query("status")
	content := page.List{Title: "Jobs", All: "All jobs", Path: "/operator/jobs", Tabs: v.Tabs("/operator/jobs", "State", "status",
		show.JobStates())}
	if !content.Tabs.HasCurrent() {
		return nil, fault.New(fault.InvalidRequest, "%q is not a state of jobs.", status)
	}
	if err := v.View(func(tx *store.Tx) (err error) {
		form := listFilter{Path: content.Path, Codes: jobCodes(), Catalog: c.Catalog.Current(),
			Names: []string{"account", "key", "model", "line", "code", "since", "until"}}
		var ids selectedIDs
		if content.Filters, ids, err = form.formTx(tx, v); err != nil {
			return err
		}
		if status != "" {
			content.Filters.Fields = append(content.Filters.Fields, ui.FormField{Name: "status", Kind: ui.Hidden, Value: status})
		}
		f, ok := selection(v, &content.Filters, ids)
		if !ok {
			return nil
		}
		results, more, err := job.ListTx(tx, job.Filter{Account: f.Account, Key: f.Key, Code: f.Code, Model: f.Model, Line: f.Line,
			SinceMS: f.SinceMS, UntilMS: f.UntilMS, Status: status, After: f.After, Limit: f.Limit})
		if err != nil {
			return err
		}
		rows := jobRows(results)
		names, err := accountNamesTx(tx, rows, func(r jobRow) string { return r.Account })
		content.Table = jobsTable(rows, names)
		content.Pager = v.Pager(content.Path, more, page.Last(rows, func(r jobRow) string { return r.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	return content.Page(content.Filters.Clear != "" || status != "", ui.EmptyState{Title: "No jobs yet",
		Text: "Image and video jobs appear here and are kept for job_retention."}), nil
}

// noJob turns row.ErrNoJob into a 404 and returns any other error unchanged.
func noJob(err error) error {
	if errors.Is(err, row.ErrNoJob) {
		return fault.New(fault.NotFound, "There is no such job. Records are kept for job_retention after a job has ended.")
	}
	return err
}

func jobOf(v *page.Visit) (jobRow, error) {
	view, err := page.Read(v, func(tx *store.Tx) (job.View, error) { return job.GetTx(tx, v.PathID()) })
	return jobRowOf(view), noJob(err)
}

func (c *console) showJob(v *page.Visit) (page.Responder, error) {
	r, err := jobOf(v)
	if err != nil {
		return nil, err
	}
	var names map[string]string
	var key any
	if err := v.View(func(tx *store.Tx) (err error) {
		if names, err = account.AccountNamesTx(tx, []string{r.Account}); err != nil {
			return err
		}
		key, err = keyLinkTx(tx, r.Key)
		return err
	}); err != nil {
		return nil, err
	}
	content := jobPage{ID: r.ID, State: r.badge(), Attempts: jobAttemptsTable(r.Attempts), Acts: jobButtons(v, r)}
	content.Facts = ui.Facts{{Name: "Model", Value: r.Model},
		{Name: "Account", Value: accountLink(r.Account, names[r.Account], "")},
		{Name: "Key", Value: key},
		{Name: "Request", Value: ui.Ident{ID: r.Request, Href: page.Base + "/operator/requests/" + r.Request}},
		{Name: "Line", Value: lineLink(r.Line)}, {Name: "On hold", Value: ui.Money{Amount: r.Held}},
		{Name: "Charged", Value: ui.Money{Amount: r.Cost}}, {Name: "Node", Value: ui.OrDash(r.Node)},
		{Name: "Machine", Value: ui.OrDash(r.Host)},
		{Name: "Submitted", Value: ui.Moment{MS: r.Created * 1000}}, {Name: "Ended", Value: ui.Moment{MS: r.EndedMS}}}
	if r.Error != nil {
		content.Facts = append(ui.Facts{{Name: "Message to the user", Value: ui.Text{Text: show.JobMessage(r.Error.Message)}}}, content.Facts...)
	}
	if r.Over > 0 {
		content.Facts = append(content.Facts, ui.Fact{Name: "Usage above the hold", Value: ui.Money{Amount: r.Over}})
	}
	for _, s := range r.Steps {
		stage := ui.Stage{Label: ui.Title(show.StateLabel(s.Name)), At: ui.Moment{MS: s.At}}
		if word, ok := show.JobStep(s.Name); ok {
			stage.Label = word
		}
		if s.Line != "" {
			stage.Note = ui.Text{Text: ui.Data(s.Line), Muted: true}
		}
		content.Steps = append(content.Steps, stage)
	}
	return page.FullPage{Name: "job", Title: ui.Sayf("Job %s", r.ID), Main: content}.WithNotice(v, map[string]ui.Words{
		"cancelled": "The job is cancelled. Its user was refunded. The provider was told to stop, if it supports that.",
		"requeued":  "The job was requeued. If it had ended, this is its new job.",
	}), nil
}

func jobButtons(v *page.Visit, r jobRow) []any {
	path := page.Base + "/operator/jobs/" + r.ID
	var buttons []any
	if r.EndedMS == 0 {
		buttons = append(buttons, v.Confirm(ui.Confirm{ID: "cancel", Button: "Cancel the job", Title: "Cancel this job?", Danger: true,
			Action: path + "/cancel",
			Text: []ui.Words{ui.Sayf("The job fails, and its user gets %s back. The gateway asks the provider to stop the task, "+
				"if the provider supports that. The provider may still charge for it.", ui.USD(r.Held))}}))
	}
	requeue := ui.Confirm{ID: "requeue", Button: "Requeue", Title: "Run this job again?", Action: path + "/requeue",
		Text: []ui.Words{"The job leaves its line, loses its attempts and waits again at its old place. Its hold stays."}}
	if r.EndedMS > 0 {
		requeue.Text = []ui.Words{"The job is submitted again as a new job with the same key, at its user's expense."}
	}
	if r.Status == "succeeded" {
		requeue.Danger = true
		requeue.Fields = []ui.FormField{{Name: "force", Kind: ui.Check, Label: "Run it again although it succeeded",
			Prefix: "requeue-"}}
	}
	return append(buttons, v.Confirm(requeue))
}

func jobAttemptsTable(list []row.TracedAttempt) ui.DataTable {
	t := ui.DataTable{Caption: "Attempts",
		Columns: []ui.Column{{Title: "Line"}, {Title: "Outcome"}, {Title: "Cause"}, {Title: "Submitted"},
			{Title: "Ended"}, {Title: "Ticket"}, {Title: "Provider cost", Right: true}}}
	for _, a := range list {
		outcome := ui.Badge{Tone: ui.OK, Label: "succeeded"}
		switch {
		case a.Code != "":
			outcome = ui.Badge{Tone: ui.Bad, Label: ui.Data(a.Code)}
		case a.Lost:
			outcome = ui.Badge{Tone: ui.Warn, Label: "no answer"}
		case a.Ended == 0:
			outcome = ui.Badge{Tone: ui.Info, Label: "running"}
		}
		cause := a.Cause
		if cause == "" {
			cause = a.Message
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{a.Line, outcome, ui.Text{Text: ui.Data(ui.OrDash(cause))}, ui.Moment{MS: a.Submitted},
			ui.Moment{MS: a.Ended}, ui.Ident{ID: a.Ticket, Cut: true}, knownAmount(a.LineCost)}})
	}
	return t
}

func (c *console) cancelJob(v *page.Visit) (page.Responder, error) {
	if err := operator.CancelJob(v.Context(), c.Jobs, show.Actor(v), v.PathID()); err != nil {
		return nil, noJob(err)
	}
	return page.To("/operator/jobs/"+v.PathID(), "cancelled"), nil
}

func (c *console) requeueJob(v *page.Visit) (page.Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{{Name: "force", Kind: ui.Check, Label: "Again"}}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	id, _, err := operator.RequeueJob(v.Context(), c.Jobs, show.Actor(v), v.PathID(), job.RequeueOptions{Force: form.Field("force").Checked,
		Show: func(view job.View) []byte { return []byte(jobRowOf(view).ID) }})
	if err != nil {
		return nil, noJob(err)
	}
	return page.To("/operator/jobs/"+string(id), "requeued"), nil
}
