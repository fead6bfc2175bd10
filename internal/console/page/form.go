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
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/repeat"
	"tollgate/internal/store"
)

// maxForm bounds a form.
const maxForm = 64 << 10

// Read fills a form with what was sent, and refuses what it has no field for.
func (v *Visit) Read(form *part.Inputs) error { return v.ReadLong(form, maxForm) }

// Blank refuses a form that is more than its button.
func (v *Visit) Blank() error { return v.Read(&part.Inputs{}) }

// Typed reads the form of a part.Confirm that has something typed, and tells whether it
// is what was wanted.
func (v *Visit) Typed(want string) (bool, error) {
	form := part.Inputs{Fields: []part.FormField{{Name: "typed", Label: "The name"}}}
	err := v.Read(&form)
	typed := strings.TrimSpace(form.Field("typed").Value)
	return err == nil && (typed == want || typed != "" && seen(typed) == seen(want)), err
}

// seen is what a reader can type of a name: stored ones may have unseen characters.
func seen(name string) string { return strings.TrimSpace(account.Seen(name)) }

// ReadLong is Read for a form that may have as many bytes as limit says.
func (v *Visit) ReadLong(form *part.Inputs, limit int64) error {
	if kind, _, _ := strings.Cut(v.Request.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return fault.New(fault.InvalidRequest, "This is no form of the console. Reload the page and send it again.")
	}
	body, err := v.Body(limit)
	if err != nil {
		return err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return fault.New(fault.InvalidRequest, "This form cannot be read. Reload the page and send it again.")
	}
	for name, sent := range values {
		field := form.Field(name)
		if field == nil || field.Kind != part.Checks && len(sent) > 1 {
			return fault.New(fault.InvalidRequest, "This form has a field that the page does not know. Reload the page and send it again.")
		}
		for _, value := range sent {
			if !plain(strings.NewReplacer("\r", "", "\n", "", "\t", "").Replace(value)) {
				return fault.New(fault.InvalidRequest, "%s has characters that cannot be kept.", field.Label)
			}
		}
	}
	for i := range form.Fields {
		fill(&form.Fields[i], values[form.Fields[i].Name])
	}
	return nil
}

// fill gives a field what was sent for it.
func fill(f *part.FormField, sent []string) {
	has := make(map[string]bool, len(sent))
	for _, value := range sent {
		has[value] = true
	}
	f.Value = ""
	if len(sent) > 0 {
		f.Value = sent[0]
	}
	f.On = len(sent) > 0
	for i := range f.Options {
		f.Options[i].On = has[f.Options[i].Value]
	}
}

// Refused puts the faults that its sender can mend into the form, each beside its field,
// and takes the passwords out of it: an error may join many. One that joins any other is
// returned: the whole page fails. A form whose once-value is used up gets another one.
func Refused(form *part.Inputs, err error) error {
	if errors.Is(err, errSentBefore) {
		form.Field("once").Value = rand.Text()
	}
	faults, whole := faultsOf(err)
	if !whole {
		return err
	}
	for _, f := range faults {
		form.Refuse(f.Param, f.Message())
	}
	form.Forget()
	return nil
}

// faultsOf are the faults that an error joins, and whether they are all of it and can be
// mended by who sent the form.
func faultsOf(err error) (faults []*fault.Error, whole bool) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			more, whole := faultsOf(one)
			if !whole {
				return nil, false
			}
			faults = append(faults, more...)
		}
		return faults, len(faults) > 0
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Status() >= http.StatusInternalServerError || f.Code == fault.NotFound {
		return nil, false
	}
	return []*fault.Error{f}, true
}

// plain tells whether a text from outside can be part of anything that is
// stored: UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// onceWindow is how long a form that was sent again does nothing.
const onceWindow = 24 * time.Hour

// Bounds of a once-value, bytes: those of the forms are rand.Text.
const (
	minOnce = 16
	maxOnce = 64
)

// errSentBefore is a form that has a used once-value and other values than were sent with
// it: a browser went back to it, or it stands in two tabs.
var errSentBefore = fault.New(fault.InvalidRequest,
	"This form was sent before with other values, and what it did then stands. Look at that first; to do this too, send it again.")

// Once is the once-value of a form, its field `once`. What is saved for it is the id
// of what the form made; what tells forms of several kinds apart, and what their fields
// hold tells one from the next: all but passwords, and the confirmation.
func (v *Visit) Once(form *part.Inputs, what string) (repeat.Once, error) {
	value := form.Field("once").Value
	if len(value) < minOnce || len(value) > maxOnce {
		return repeat.Once{}, fault.New(fault.InvalidRequest, "This form is incomplete. Reload the page and send it again.")
	}
	by := v.Account()
	if v.side.Kind == account.OperatorSession {
		by = "operator"
	}
	said := fmt.Appendf(nil, "%q", what)
	for _, f := range form.Fields {
		if f.Name == "once" || f.Name == "sure" || f.Kind == "password" {
			continue
		}
		said = fmt.Appendf(said, " %q %q", f.Name, f.Value)
		for _, o := range f.Options {
			if o.On {
				said = fmt.Appendf(said, " %q", o.Value)
			}
		}
	}
	return repeat.Once{Scope: "console " + by, Key: value, Fingerprint: said, Window: onceWindow}, nil
}

// OnceTx does what a form asks for, unless the same form has done it before: then
// it returns what was made then. A form that asked for something else with the same
// once-value is refused (Refused).
func OnceTx(tx *store.Tx, once repeat.Once, act func() (made string, err error)) (made string, again bool, err error) {
	saved, err := repeat.AnswerTx(tx, once)
	if errors.Is(err, repeat.ErrOtherBody) {
		err = errSentBefore
	}
	if err != nil || saved != nil {
		return string(saved), saved != nil, err
	}
	if made, err = act(); err != nil {
		return "", false, err
	}
	return made, false, repeat.SaveTx(tx, once, []byte(made))
}
