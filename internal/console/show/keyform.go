package show

import (
	"errors"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// KeyForm asks for the settings of a key. The fields have the names of the API. now is the current catalog.
func KeyForm(now *catalog.Snapshot, action string, submit ui.Words) ui.PostForm {
	f := ui.PostForm{Action: action, Submit: submit, Fields: []ui.FormField{
		{Name: "name", Label: "Name", Hint: "What uses the key, for example backend."},
		{Name: "rpm", Label: "Requests per minute", Numeric: true, Hint: "Leave empty for no limit. Requests above it get a 429."},
		{Name: "daily_budget_usd", Label: "Daily budget", Before: "$", Numeric: true,
			Hint: "Per UTC day. Leave empty for no limit. Requests above it get a 402."},
		{Name: "total_limit_usd", Label: "Total limit", Before: "$", Numeric: true, Hint: "For the life of the key. Leave empty for no limit."},
		{Name: "allowed_models", Label: "Models", Kind: ui.Checks, Hint: "Choose none to allow all models."},
		{Name: "allowed_ips", Label: "Addresses", Kind: ui.Area,
			Hint: "One IP address or CIDR per line. Leave empty to allow all addresses."},
		{Name: "wait_for_pictures", Label: "Wait for pictures", Kind: ui.Check,
			Hint: "For programs that expect the picture in the response, such as OpenAI's clients. They get it if it is ready in time."},
	}}
	for _, m := range now.Models() {
		if m.State != catalog.StateRetired {
			models := f.Field("allowed_models")
			models.Options = append(models.Options, ui.Option{Value: m.ID, Label: ModelLabel(now, m.ID)})
		}
	}
	return f
}

// FillKeyForm fills in the current settings of a key. An allowed model that is retired or not in the catalog
// stays an option until a user removes it.
func FillKeyForm(f *ui.PostForm, k account.Key) {
	l := k.Ledger.Limits
	f.Field("name").Value = k.Name
	if l.RPM != nil {
		f.Field("rpm").Value = strconv.FormatInt(*l.RPM, 10)
	}
	for name, amount := range map[string]*money.Amount{"daily_budget_usd": l.DailyBudget, "total_limit_usd": l.TotalLimit} {
		if amount != nil {
			f.Field(name).Value = amount.String()
		}
	}
	models := f.Field("allowed_models")
	for _, allowed := range k.AllowedModels {
		listed := false
		for i := range models.Options {
			if models.Options[i].Value == allowed {
				models.Options[i].Selected, listed = true, true
			}
		}
		if !listed {
			models.Options = append(models.Options,
				ui.Option{Value: allowed, Label: ui.Sayf("%s (not in the catalog, or retired)", allowed), Selected: true})
		}
	}
	f.Field("allowed_ips").Value = strings.Join(account.ShowIPs(k.AllowedIPs), "\n")
	f.Field("wait_for_pictures").Checked = k.WaitForPictures
}

// ReadKeyForm reads the settings from a form. It returns all errors joined; each names its field.
func ReadKeyForm(f *ui.PostForm, s *account.KeySettings) error {
	s.Name = f.Field("name").Value
	s.RPM, s.DailyBudget, s.TotalLimit, s.AllowedModels, s.AllowedIPs = nil, nil, nil, nil, nil
	var faults []error
	if text := strings.TrimSpace(f.Field("rpm").Value); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			faults = append(faults, fault.At(fault.InvalidRequest, "rpm",
				"Requests per minute must be a whole number from 1, or empty for no limit."))
		} else {
			s.RPM = &n
		}
	}
	for name, amount := range map[string]**money.Amount{"daily_budget_usd": &s.DailyBudget, "total_limit_usd": &s.TotalLimit} {
		text := strings.TrimPrefix(strings.TrimSpace(f.Field(name).Value), "$")
		if text == "" {
			continue
		}
		value, err := money.ParseTyped(strings.TrimSpace(text))
		if err != nil || value < 0 {
			faults = append(faults, fault.At(fault.InvalidRequest, name,
				"%s must be an amount of US dollars, for example 5 or 0.25, or empty for no limit.", f.Field(name).Label))
			continue
		}
		*amount = &value
	}
	for _, o := range f.Field("allowed_models").Options {
		if o.Selected {
			s.AllowedModels = append(s.AllowedModels, o.Value)
		}
	}
	s.AllowedIPs = append(s.AllowedIPs, strings.Fields(f.Field("allowed_ips").Value)...)
	s.WaitForPictures = f.Field("wait_for_pictures").Checked
	return errors.Join(append(faults, s.Check())...)
}
