package ui

import (
	"cmp"
	"slices"
	"strings"
)

// Kinds of fields, in addition to the types of HTML's input: text, password, email, number.
const (
	Area   = "area"   // several lines
	Choice = "choice" // one of Options
	Checks = "checks" // any of Options
	Check  = "check"  // yes or no
	Hidden = "hidden"
	Widget = "widget" // the box of a challenge service, with an input of its own; Value is the site key
)

// FormField is one field of a form, with its label, a hint and its error.
type FormField struct {
	Name        string
	Label       Words
	Kind        string // empty means text
	Value       string
	Options     []Option // options of a choice, or suggestions for a text
	Checked     bool     // for the kind Check; after ReadForm, whether the form has sent the field
	Links       []Link   // after the label of a check
	Hint, Error Words
	Before      Words  // text before the value, such as $
	After       Words  // text after the value
	Complete    string // value of autocomplete; if empty, off
	Numeric     bool   // phones show a keyboard of digits
	Code        bool   // an area for code, with the maximum height
	Required    bool
	ReadOnly    bool
	Fragment    bool   // console.js fills the field from the fragment of the page's address and sends the form
	Prefix      string // makes the id unique if several forms on the page have the name
}

// Option is an option of a choice.
type Option struct {
	Value    string
	Label    Words
	Selected bool
	Disabled bool // not selectable; the label explains the other options
}

// ID returns the id of the field on the page.
func (f FormField) ID() string { return f.Prefix + "f-" + f.Name }

// Type returns the type of the input.
func (f FormField) Type() string {
	if f.Kind == "" {
		return "text"
	}
	return f.Kind
}

// DescribedBy returns the ids for aria-describedby.
func (f FormField) DescribedBy() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.ID()+"-hint")
	}
	if f.Error != "" {
		ids = append(ids, f.ID()+"-wrong")
	}
	return strings.Join(ids, " ")
}

// Autocomplete returns the value of the attribute autocomplete.
func (f FormField) Autocomplete() string {
	if f.Complete == "" {
		return "off"
	}
	return f.Complete
}

// PostForm is a form for POST. Its errors are shown beside the fields and above the form, each with
// a link to its field.
type PostForm struct {
	Action string
	Submit Words
	Cancel string // address of the cancel link; may be empty
	Danger bool
	Fields []FormField
	Error  Words // error of the whole form
}

// Field returns the field with a name, or nil.
func (f *PostForm) Field(name string) *FormField {
	i := slices.IndexFunc(f.Fields, func(field FormField) bool { return field.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Fields[i]
}

// AddError sets the error of a field, or of the whole form if the form does not show the field. It
// does not replace an earlier error of the field.
func (f *PostForm) AddError(name string, message Words) {
	name, _, _ = strings.Cut(name, "[") // a list is one field of the form
	field := f.Field(name)
	if field == nil || field.Kind == Hidden {
		f.Error = cmp.Or(f.Error, message)
		return
	}
	if field.Error != "" {
		return
	}
	field.Error = messageOf(message, name, field.Label)
}

// ClearPasswords clears the password fields.
func (f *PostForm) ClearPasswords() {
	for i := range f.Fields {
		if f.Fields[i].Kind == "password" {
			f.Fields[i].Value = ""
		}
	}
}

// InvalidFields returns the fields with an error.
func (f PostForm) InvalidFields() []FormField {
	var invalid []FormField
	for _, field := range f.Fields {
		if field.Error != "" {
			invalid = append(invalid, field)
		}
	}
	return invalid
}

// Invalid reports whether the form has errors.
func (f PostForm) Invalid() bool { return f.Error != "" || len(f.InvalidFields()) > 0 }

// Filters is a GET form for the filters of a list.
type Filters struct {
	Action string
	Fields []FormField
	Clear  string // address of the list without filters; empty if no filter is set
}

// Invalid reports whether a filter has an error.
func (f Filters) Invalid() bool {
	return slices.ContainsFunc(f.Fields, func(field FormField) bool { return field.Error != "" })
}

// Collapses reports whether a phone hides the form behind its name. A form with a single field is not hidden,
// because it takes no more room than the name.
func (f Filters) Collapses() bool {
	visible := 0
	for _, field := range f.Fields {
		if field.Kind != Hidden {
			visible++
		}
	}
	return visible > 1
}
