package userpages

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// requestPage shows one request with its outcome and its charge.
type requestPage struct {
	State    ui.Badge
	Meaning  *ui.Notice // explains an error and its effect on the charge
	Receipt  ui.DataTable
	Timeline ui.Timeline
	Times    ui.Bars // until the first byte and until the end; empty if they are the same
	Facts    ui.Facts
	Copy     ui.CopyField
	Codes    ui.Snippets // the request as code; empty if the endpoint runs no model
}

// promptPlaceholder replaces the prompt in the code of a request.
const promptPlaceholder = "(your prompt, which is not stored)"

func (c *console) showRequest(v *page.Visit) (page.Responder, error) {
	var r requestlog.Receipt
	var key any
	var model *catalog.Model
	if err := v.View(func(tx *store.Tx) (err error) {
		if r, err = requestlog.OwnTx(tx, v.Account(), v.PathID()); err != nil {
			return err
		}
		if key, err = keyLinkTx(tx, v.Account(), r.Key); err != nil {
			return err
		}
		model, err = c.pricedModelTx(tx, r)
		return err
	}); errors.Is(err, requestlog.ErrNone) {
		return nil, fault.New(fault.NotFound, "There is no request with this id in your log. Check the id. The log deletes old requests.")
	} else if err != nil {
		return nil, err
	}
	content := requestPage{State: show.Status(r.Status, r.Code), Receipt: show.Bill(r, model), Timeline: timelineOf(r), Times: timesOf(r),
		Copy:  ui.CopyField{ID: "request", Label: "Request id", Value: r.ID},
		Codes: ui.Snippets{ID: "code", Tabs: show.CallSnippets(v.PublicURL(), r.Endpoint, r.Model, promptPlaceholder)}}
	content.Meaning = meaningOf(r)
	content.Facts = factsOf(r, key)
	return page.FullPage{Name: "request", Title: ui.Sayf("Request %s", r.ID), Main: content}, nil
}

// keyLinkTx returns a link to an account's key, a text for a deleted key, or nil for a request without a key.
func keyLinkTx(tx *store.Tx, accountID, key string) (any, error) {
	if key == "" {
		return nil, nil
	}
	k, err := account.AccountKeyTx(tx, accountID, key)
	if account.IsNotFound(err) {
		return "a deleted key", nil
	}
	return ui.Link{Href: page.Base + "/keys/" + key, Text: ui.Data(show.KeyName(k))}, err
}

// pricedModelTx returns the model of a request with the prices of the request. It returns nil if the
// request has no price or its catalog revision was deleted.
func (c *console) pricedModelTx(tx *store.Tx, r requestlog.Receipt) (*catalog.Model, error) {
	if r.Revision == 0 {
		return nil, nil
	}
	m, err := c.archive.ModelTx(tx, r.Revision, r.Model)
	if errors.Is(err, catalog.ErrNoRevision) {
		return nil, nil
	}
	return m, err
}

// meaningOf explains an error and its effect on the charge. It returns nil if there was no error.
func meaningOf(r requestlog.Receipt) *ui.Notice {
	if r.Code == "" && r.Status < http.StatusBadRequest {
		return nil
	}
	n := ui.Notice{Tone: ui.Info, Title: "You were not charged.", Text: show.Meaning(r.Code)}
	if r.Cost > 0 {
		n.Title = "You were charged for the part you received."
	}
	switch {
	case fault.Code(r.Code) == fault.ClientClosed:
		n.Text = "Your program closed the connection before the answer was whole."
	case r.Job != "" && r.Status < http.StatusBadRequest:
		n.Text = "The job failed, and the reserved amount was released."
		n.Link = &ui.Link{Href: page.Base + "/jobs/" + r.Job, Text: "To the job"}
	case n.Text == "" && r.Status >= http.StatusInternalServerError:
		n.Text = "No provider answered correctly. Send the request again."
	case n.Text == "":
		n.Text = "The request was refused. The error message says what to change."
	case fault.Code(r.Code) == fault.InsufficientQuota:
		n.Link = &ui.Link{Href: page.Base + "/billing", Text: "To your balance"}
	}
	return &n
}

// sourceLabels describe the source of a charge's token counts.
var sourceLabels = map[ledger.UsageSource]ui.Words{
	ledger.SourceProvider: "by the provider",
	ledger.SourceGateway:  "by this service, because the provider reported no usage",
	ledger.SourceBoth:     "partly by the provider and partly by this service",
	ledger.SourceProgress: "by the last record before the answer broke off",
}

func factsOf(r requestlog.Receipt, key any) ui.Facts {
	facts := ui.Facts{{Name: "Endpoint", Value: ui.Text{Text: ui.Data(r.Endpoint), Mono: true}}, {Name: "Model", Value: ui.OrDash(r.Model)}}
	add := func(name ui.Words, value any) { facts = append(facts, ui.Fact{Name: name, Value: value}) }
	if key != nil {
		add("Key", key)
	}
	if r.Job != "" {
		add("Job", ui.Ident{ID: r.Job, Href: page.Base + "/jobs/" + r.Job})
	}
	if r.Code != "" {
		add("Code", ui.Text{Text: ui.Data(r.Code), Mono: true})
	}
	add("Received", ui.Moment{MS: r.CreatedMS})
	add("Duration", ui.Duration{MS: r.DurationMS})
	add("Held before it ran", ui.Money{Amount: r.Held, InFull: true})
	if released := r.Held - r.Cost; released > 0 {
		add("Given back", ui.Money{Amount: released, InFull: true})
	}
	if words := sourceLabels[r.Source]; words != "" && r.Cost > 0 && r.Job == "" {
		add("Counted", words)
	}
	if r.StandsFor > 1 {
		add("Stands for", ui.Sayf("%s with the same refusal", ui.Requests(r.StandsFor)))
	}
	return facts
}

// timesOf splits the duration of a request at the first byte of its answer. It returns nil if one of the parts
// is empty.
func timesOf(r requestlog.Receipt) ui.Bars {
	first, rest := r.FirstByteMS, r.DurationMS-r.FirstByteMS
	if first <= 0 || rest <= 0 {
		return nil
	}
	bar := func(label ui.Words, ms int64) ui.Bar {
		return ui.Bar{Label: label, Percent: int(100 * ms / r.DurationMS), Value: ui.Duration{MS: ms}}
	}
	return ui.Bars{bar("Until the first byte", first), bar("Until the end", rest)}
}

// publicAttempt has the fields of an attempt that customers may see. The line and the provider's message are
// left out.
type publicAttempt struct {
	Skipped    string `json:"skipped"`
	Code       string `json:"code"`
	DurationMS int64  `json:"duration_ms"`
}

func timelineOf(r requestlog.Receipt) ui.Timeline {
	all := ui.Timeline{{Label: "received", At: ui.Moment{MS: r.CreatedMS}}}
	var attempts []publicAttempt // the attempts of a job are on the job's page
	if r.Job == "" && json.Unmarshal(r.Attempts, &attempts) == nil {
		for _, a := range attempts {
			switch {
			case a.Skipped != "":
			case a.Code == "":
				all = append(all, ui.Stage{Tone: ui.OK, Label: "a provider answered",
					Note: ui.Text{Text: ui.Sayf("in %s", ui.FormatDuration(a.DurationMS)), Muted: true}})
			default:
				note := ui.Sayf("after %s", ui.FormatDuration(a.DurationMS))
				if words := show.CodeLabel(a.Code); words != "provider failed" {
					note = ui.Sayf("%s, %s", words, note)
				}
				all = append(all, ui.Stage{Tone: ui.Bad, Label: "a provider failed", Note: ui.Text{Text: note, Muted: true, Title: ui.Data(a.Code)}})
			}
		}
	}
	end := ui.Stage{Tone: ui.OK, Label: ui.Sayf("answered %s", strconv.Itoa(r.Status)), At: ui.Moment{MS: r.CreatedMS + r.DurationMS}}
	switch {
	case fault.Code(r.Code) == fault.ClientClosed:
		end.Tone, end.Label = ui.Plain, "your program disconnected"
	case r.Outcome == ledger.Refused:
		end.Tone, end.Label = ui.Bad, ui.Sayf("refused with %s", strconv.Itoa(r.Status))
	case r.Status >= http.StatusBadRequest:
		end.Tone = ui.Bad
	case r.Code != "":
		end.Tone, end.Label = ui.Bad, "the job failed"
	case r.Job != "":
		end.Label = "the job is done"
	}
	return append(all, end)
}
