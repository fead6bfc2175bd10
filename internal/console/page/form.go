package page

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// maxForm is the maximum size of a form in bytes.
const maxForm = 64 << 10

// ReadForm fills a form with the sent values and rejects unknown fields.
func (v *Visit) ReadForm(form *ui.PostForm) error { return v.ReadLongForm(form, maxForm) }

// NoFields rejects a form with any field.
func (v *Visit) NoFields() error { return v.ReadForm(&ui.PostForm{}) }

// SubmitName is Submit for the form of a ui.Confirm. It runs act only if the visitor has typed name.
func (v *Visit) SubmitName(name string, act func() (Responder, error), showForm func() (FullPage, error)) (Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{{Name: "typed", Label: "The name"}}}
	return v.Submit(&form, func() (Responder, error) {
		typed := strings.TrimSpace(form.Field("typed").Value)
		if typed != name && (typed == "" || visible(typed) != visible(name)) {
			return nil, fault.At(fault.InvalidRequest, "typed", "The name does not match.")
		}
		return act()
	}, showForm)
}

// visible returns the characters of a name that a visitor can type. Stored names may have invisible characters.
func visible(name string) string { return strings.TrimSpace(account.RemoveInvisible(name)) }

// ReadLongForm is ReadForm with a limit in bytes instead of maxForm.
func (v *Visit) ReadLongForm(form *ui.PostForm, limit int64) error {
	if kind, _, _ := strings.Cut(v.Request.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return fault.New(fault.InvalidRequest, "This is not a form of the console. Reload the page and send it again.")
	}
	body, err := v.Body(limit)
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return fault.New(fault.InvalidRequest, "This form cannot be read. Reload the page and send it again.")
	}
	for name, fieldValues := range values {
		field := form.Field(name)
		if field == nil || field.Kind != ui.Checks && len(fieldValues) > 1 {
			return fault.New(fault.InvalidRequest, "This form has an unknown field. Reload the page and send it again.")
		}
		for _, value := range fieldValues {
			if !isPlainText(strings.NewReplacer("\r", "", "\n", "", "\t", "").Replace(value)) {
				return fault.New(fault.InvalidRequest, "%s contains control characters. Remove them.", field.Label)
			}
		}
	}
	for i := range form.Fields {
		fill(&form.Fields[i], values[form.Fields[i].Name])
	}
	return nil
}

// Submit reads a form and calls act for the response. If act rejects the form, Submit adds the
// errors to the form and returns the page from showForm with the status 422, or 429 if act has set
// Retry-After.
func (v *Visit) Submit(form *ui.PostForm, act func() (Responder, error), showForm func() (FullPage, error)) (Responder, error) {
	if err := v.ReadForm(form); err != nil {
		return nil, err
	}
	out, err := act()
	if err == nil {
		return out, nil
	}
	if err := AddErrors(form, err); err != nil {
		return nil, err
	}
	p, err := showForm()
	p.Status = http.StatusUnprocessableEntity
	if v.Header().Get("Retry-After") != "" {
		p.Status = http.StatusTooManyRequests
	}
	return p, err
}

// fill sets the value and the options of a field to the sent values.
func fill(f *ui.FormField, fieldValues []string) {
	selected := make(map[string]bool, len(fieldValues))
	for _, value := range fieldValues {
		selected[value] = true
	}
	f.Value = ""
	if len(fieldValues) > 0 {
		f.Value = fieldValues[0]
	}
	f.Checked = len(fieldValues) > 0
	for i := range f.Options {
		f.Options[i].Selected = selected[f.Options[i].Value]
	}
}

// AddErrors writes the faults in err next to their fields and clears the form's passwords. err may join several
// errors. If the visitor cannot correct one of these errors, AddErrors returns err, and the whole page fails.
// For errAlreadySent, AddErrors replaces the form's once-value.
func AddErrors(form *ui.PostForm, err error) error {
	if errors.Is(err, errAlreadySent) {
		form.Field("once").Value = rand.Text()
	}
	faults, correctable := faultsOf(err)
	if !correctable {
		return err
	}
	for _, f := range faults {
		form.AddError(f.Param, faultWords(f))
	}
	form.ClearPasswords()
	return nil
}

// faultsOf returns the faults joined in an error. correctable reports whether the visitor can correct every
// joined error.
func faultsOf(err error) (faults []*fault.Error, correctable bool) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			others, correctable := faultsOf(e)
			if !correctable {
				return nil, false
			}
			faults = append(faults, others...)
		}
		return faults, len(faults) > 0
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Status() >= http.StatusInternalServerError || f.Code == fault.NotFound {
		return nil, false
	}
	return []*fault.Error{f}, true
}

// isPlainText reports whether a text is UTF-8 without control characters, so that it may be stored.
func isPlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// onceWindow is the time in which a repeated form has no second effect. A form that creates an object has a
// random text in its hidden field `once`, the once-value.
const onceWindow = 24 * time.Hour

// Bounds of a once-value, in bytes. The forms use rand.Text.
const (
	minOnce = 16
	maxOnce = 64
)

// errAlreadySent rejects a form with a used once-value and other field values. The visitor went back to the
// form, or has opened the form in two tabs.
var errAlreadySent = fault.New(fault.InvalidRequest,
	"This form was already sent with other values, and those were saved. Check them first. To save these values too, send the form again.")

// Once returns the once-value of a form, for OnceTx. The fingerprint consists of kind and the values of all
// fields except passwords and the confirmation.
func (v *Visit) Once(form *ui.PostForm, kind string) (ledger.Once, error) {
	value := form.Field("once").Value
	if len(value) < minOnce || len(value) > maxOnce {
		return ledger.Once{}, fault.New(fault.InvalidRequest, "This form is incomplete. Reload the page and send it again.")
	}
	owner := v.Account()
	if v.section.Kind == account.OperatorSession {
		owner = "operator"
	}
	fingerprint := fmt.Appendf(nil, "%q", kind)
	for _, f := range form.Fields {
		if f.Name == "once" || f.Name == "sure" || f.Kind == "password" {
			continue
		}
		fingerprint = fmt.Appendf(fingerprint, " %q %q", f.Name, f.Value)
		for _, o := range f.Options {
			if o.Selected {
				fingerprint = fmt.Appendf(fingerprint, " %q", o.Value)
			}
		}
	}
	return ledger.Once{Scope: "console " + owner, Key: value, Fingerprint: fingerprint, Window: onceWindow}, nil
}

// OnceTx runs act, which returns the id of the new object, and saves the id. If the same form was sent before,
// OnceTx returns the saved id, and repeated is true. OnceTx rejects a form with a used once-value and other
// field values (see AddErrors).
func OnceTx(tx *store.Tx, once ledger.Once, act func() (id string, err error)) (id string, repeated bool, err error) {
	saved, err := ledger.AnswerTx(tx, once)
	if errors.Is(err, ledger.ErrOtherBody) {
		err = errAlreadySent
	}
	if err != nil || saved != nil {
		return string(saved), saved != nil, err
	}
	if id, err = act(); err != nil {
		return "", false, err
	}
	return id, false, ledger.SaveTx(tx, once, []byte(id))
}
