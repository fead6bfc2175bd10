package operatorpages

import (
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// createdCodesPage shows new codes once.
type createdCodesPage struct {
	Title ui.Words
	Codes *ui.Snippets // nil if the codes were shown before
}

var codeTones = map[string]ui.Tone{account.CodeUnused: ui.Info, account.CodeUsed: ui.OK, account.CodeExpired: ui.Warn}

func (c *console) listCodes(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Codes", All: "All codes", Path: "/operator/codes"}
	if err := v.View(func(tx *store.Tx) error {
		list, more, err := account.ListCodesTx(tx, v.Query("after"), page.Rows)
		if err != nil {
			return err
		}
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(code account.RedeemCode) string { return code.ID }))
		content.Table, err = codesTableTx(tx, v, list)
		return err
	}); err != nil {
		return nil, err
	}
	create := page.CreateLink("/operator/codes/new", "Create codes")
	if len(content.Table.Rows) > 0 {
		content.New = create
	}
	return content.Page(false, ui.EmptyState{Title: "No codes yet", Link: create,
		Text: "A customer redeems a code once in the console and gets its value as credit."}).WithNotice(v, map[string]ui.Words{
		"void": "The code is void and can no longer be redeemed.",
	}), nil
}

// codesTableTx lists codes with their accounts and buttons. The account of a code has redeemed it.
func codesTableTx(tx *store.Tx, v *page.Visit, list []account.RedeemCode) (ui.DataTable, error) {
	nowMS, err := tx.NowMS()
	if err != nil {
		return ui.DataTable{}, err
	}
	names, err := accountNamesTx(tx, list, func(code account.RedeemCode) string { return code.Account })
	t := ui.DataTable{Caption: "Redeem codes", Columns: []ui.Column{{Title: "Ends in"}, {Title: "State"}, {Title: "Value", Right: true},
		{Title: "Created"}, {Title: "Expires"}, {Title: "Redeemed by"}, {Title: "Redeemed"}, {Title: "Batch"}, {Title: "Change"}}}
	for _, code := range list {
		state := code.State(nowMS)
		expiresCell := any(ui.Moment{MS: code.ExpiresMS})
		if code.ExpiresMS == 0 {
			expiresCell = ui.Text{Text: "no end", Muted: true}
		}
		accountCell, changeCell := any(ui.Text{Text: "–", Muted: true}), any(ui.Text{Text: "–", Muted: true})
		if code.Account != "" {
			accountCell = ui.Link{Href: page.Base + "/operator/accounts/" + code.Account, Text: ui.Data(names[code.Account])}
		}
		if state == account.CodeUnused {
			changeCell = v.Confirm(ui.Confirm{ID: code.ID, Button: "Void", Title: ui.Sayf("Void the code that ends in %s?", code.Hint), Danger: true,
				Action: page.Base + "/operator/codes/" + code.ID + "/void",
				Text:   []ui.Words{ui.Sayf("It can no longer be redeemed for %s. This cannot be undone.", ui.USD(code.Value))}})
		}
		t.Rows = append(t.Rows,
			ui.DataRow{Cells: []any{ui.Text{Text: ui.Data(code.Hint), Mono: true}, ui.Badge{Tone: codeTones[state], Label: ui.Words(state)},
				ui.Money{Amount: code.Value}, ui.Moment{MS: code.CreatedMS}, expiresCell, accountCell, ui.Moment{MS: code.RedeemedMS},
				ui.Ident{ID: code.Batch, Cut: true}, changeCell}})
	}
	return t, err
}

// Values of the form field `as`, the format of new codes.
const (
	codesAsPage = "page"
	codesAsCSV  = "csv"
)

func newCodesForm(v *page.Visit, once string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/codes/new", Submit: "Create codes", Cancel: page.Base + "/operator/codes",
		Fields: []ui.FormField{
			{Name: "usd", Label: "Value of each", Before: "$", Numeric: true, Required: true},
			{Name: "count", Label: "How many", Numeric: true, Required: true, Value: "1", Hint: "1 to 1,000."},
			{Name: "expires", Label: "Last day", Kind: "date", Hint: "The last day (UTC) to redeem them. Leave empty for no expiry."},
			{Name: "as", Label: "Show them", Kind: ui.Choice, Options: []ui.Option{
				{Value: codesAsPage, Label: "on the next page"}, {Value: codesAsCSV, Label: "as a CSV file"}},
				Hint: "They are shown only once."},
			secretField(v, "Required because codes are worth money."),
			{Name: "once", Kind: ui.Hidden, Value: once},
		}}
}

// secretField asks an operator for the credential of the current session: the operator's token, a code or the
// password.
func secretField(v *page.Visit, hint ui.Words) ui.FormField {
	f := ui.FormField{Name: "secret", Kind: "password", Label: "Your password", Complete: "current-password", Required: true,
		Hint: hint}
	if v.Session.User.ID == "" {
		f.Label, f.Complete = "Operator's token", "off"
	} else if v.Session.User.NoPassword {
		f.Label, f.Complete = "Code of your second factor", "one-time-code"
	}
	return f
}

func (c *console) newCodes(v *page.Visit) (page.Responder, error) {
	return page.FormPage("Create codes", newCodesForm(v, rand.Text())), nil
}

// readCodesForm reads the form of new codes. It returns all errors joined. CreateCodesTx checks the values.
func readCodesForm(form *ui.PostForm) (account.NewCodes, error) {
	var n account.NewCodes
	var countErr, dayErr error
	usd, valueErr := dollars(form, "usd")
	if usd != nil {
		n.Value = *usd
	}
	var err error
	if n.Count, err = strconv.ParseInt(strings.TrimSpace(form.Field("count").Value), 10, 64); err != nil {
		countErr = fault.At(fault.InvalidRequest, "count", "How many must be a whole number from 1 to 1,000.")
	}
	if text := strings.TrimSpace(form.Field("expires").Value); text != "" {
		last, err := time.Parse(time.DateOnly, text)
		if err != nil || last.Year() < 1970 || last.Year() > 9998 {
			dayErr = fault.At(fault.InvalidRequest, "expires", "The last day must be a date such as 2027-12-31.")
		}
		n.ExpiresMS = last.AddDate(0, 0, 1).UnixMilli()
	}
	return n, errors.Join(valueErr, countErr, dayErr)
}

// createCodes creates codes and shows their texts in the same response.
func (c *console) createCodes(v *page.Visit) (page.Responder, error) {
	form := newCodesForm(v, "")
	return v.Submit(&form, func() (page.Responder, error) {
		n, err := readCodesForm(&form)
		if err != nil {
			return nil, err
		}
		once, err := v.Once(&form, "codes")
		if err != nil {
			return nil, err
		}
		if err := c.confirmIdentity(v, form.Field("secret").Value, "no code was created"); err != nil {
			return nil, err
		}
		var codes []account.RedeemCode
		var texts []string
		if err := v.Update(func(tx *store.Tx) error {
			codes, texts = nil, nil // clear the result of a rolled-back attempt
			_, _, err := page.OnceTx(tx, once, func() (string, error) {
				if codes, texts, err = operator.CreateCodesTx(tx, show.Actor(v), n); err != nil {
					return "", err
				}
				return codes[0].Batch, nil
			})
			return err
		}); err != nil {
			return nil, err
		}
		return showCodes(codes, texts, form.Field("as").Value == codesAsCSV)
	}, func() (page.FullPage, error) { return page.FormPage("Create codes", form), nil })
}

// showCodes shows new codes as a page or as a file. codes is empty if the codes were shown before.
func showCodes(codes []account.RedeemCode, texts []string, asCSV bool) (page.Responder, error) {
	content := createdCodesPage{Title: "Codes created"}
	if len(codes) > 0 {
		t := textsTable(codes, texts)
		if asCSV {
			return page.CSVFile(codes[0].Batch, t), nil
		}
		var file strings.Builder
		if err := t.CSV(&file, true); err != nil {
			return nil, err
		}
		content.Title = ui.Sayf("%s of %s created", ui.Plural(len(codes), "%s code", "%s codes"), ui.USD(codes[0].Value))
		content.Codes = &ui.Snippets{ID: "codes", Tabs: []ui.Snippet{{Name: "Codes", Text: ui.Data(strings.Join(texts, "\n"))},
			{Name: "CSV", Text: ui.Data(file.String())}}}
	}
	return page.FullPage{Name: "createdcodes", Title: content.Title, Main: content}, nil
}

func textsTable(codes []account.RedeemCode, texts []string) ui.DataTable {
	t := ui.DataTable{Columns: []ui.Column{{Title: "code"}, {Title: "usd"}, {Title: "expires"}, {Title: "id"}, {Title: "batch"}}}
	for i, code := range codes {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{texts[i], ui.Money{Amount: code.Value}, ui.Moment{MS: code.ExpiresMS}, code.ID,
			code.Batch}})
	}
	return t
}

func (c *console) voidCode(v *page.Visit) (page.Responder, error) {
	return v.Done("/operator/codes", "void", func(tx *store.Tx) error {
		_, err := operator.VoidCodeTx(tx, show.Actor(v), v.PathID())
		return err
	})
}
