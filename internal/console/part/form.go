package part

import (
	"cmp"
	"slices"
	"strings"
)

// Kinds of fields, beside those of HTML's input: text, password, email, number.
const (
	Area    = "area"   // several lines
	Choice  = "choice" // one of Options
	Checks  = "checks" // any of Options
	Check   = "check"  // yes or no
	Unshown = "hidden"
)

// FormField is one field of a form: its label above, a hint, and what is wrong with
// it beside it.
type FormField struct {
	Name, Label string
	Kind        string // empty: text
	Value       string
	Options     []Option // of a choice; a text proposes them
	On          bool     // of a check
	Hint, Wrong string
	Before      string // what stands before the value, as a $
	After       string // what stands behind it
	Complete    string // autocomplete; empty: off
	Numeric     bool   // a keyboard of digits
	Code        bool   // an area of code, as high as it may be
	Required    bool
	ReadOnly    bool
	Fragment    bool   // takes what follows the # of the page's address, and sends the form
	Prefix      string // makes the id unique where several forms have the name
}

// Option is one of a choice.
type Option struct {
	Value, Label string
	On           bool
	Off          bool // cannot be chosen: it says something about the others
}

// ID is the field's on the page.
func (f FormField) ID() string { return f.Prefix + "f-" + f.Name }

// Type is that of the input.
func (f FormField) Type() string {
	if f.Kind == "" {
		return "text"
	}
	return f.Kind
}

// Described names what describes the field.
func (f FormField) Described() string {
	var by []string
	if f.Hint != "" {
		by = append(by, f.ID()+"-hint")
	}
	if f.Wrong != "" {
		by = append(by, f.ID()+"-wrong")
	}
	return strings.Join(by, " ")
}

// Autocomplete is the attribute of the name.
func (f FormField) Autocomplete() string {
	if f.Complete == "" {
		return "off"
	}
	return f.Complete
}

// Inputs is a form that is sent by POST. What is wrong with it stands above it,
// each with a link to its field, and beside the fields.
type Inputs struct {
	Action string
	Submit string
	Cancel string // where to go instead; empty: nowhere
	Danger bool
	Fields []FormField
	Whole  string // what is wrong with all of it
}

// Field returns the field of a name; nil: there is none.
func (f *Inputs) Field(name string) *FormField {
	i := slices.IndexFunc(f.Fields, func(field FormField) bool { return field.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Fields[i]
}

// Refuse says what is wrong with a field, or with the whole form where it has
// no such field. What was said of it first stands.
func (f *Inputs) Refuse(name, message string) {
	name, _, _ = strings.Cut(name, "[") // of a list, it is one field here
	field := f.Field(name)
	if field == nil || field.Kind == Unshown {
		f.Whole = cmp.Or(f.Whole, message)
		return
	}
	if field.Wrong != "" {
		return
	}
	// The rooms name a field as the APIs do; here it has a label.
	if strings.Contains(name, "_") {
		message = strings.ReplaceAll(message, name, field.Label)
	} else if rest, ok := strings.CutPrefix(message, name+" "); ok {
		message = field.Label + " " + rest
	}
	field.Wrong = message
}

// Forget takes what was typed into password fields out of the form.
func (f *Inputs) Forget() {
	for i := range f.Fields {
		if f.Fields[i].Kind == "password" {
			f.Fields[i].Value = ""
		}
	}
}

// Faulty are the fields with something wrong.
func (f Inputs) Faulty() []FormField {
	var faulty []FormField
	for _, field := range f.Fields {
		if field.Wrong != "" {
			faulty = append(faulty, field)
		}
	}
	return faulty
}

// Wrong tells whether anything is.
func (f Inputs) Wrong() bool { return f.Whole != "" || len(f.Faulty()) > 0 }

// Filters are a form that chooses what a list shows, by GET.
type Filters struct {
	Action string
	Fields []FormField
	Clear  string // where nothing is chosen; empty: nothing is
}

// Wrong tells whether anything is wrong with what was chosen.
func (f Filters) Wrong() bool {
	return slices.ContainsFunc(f.Fields, func(field FormField) bool { return field.Wrong != "" })
}

// Folds tells whether a phone hides the form behind its name: one field takes no
// more room than that.
func (f Filters) Folds() bool {
	shown := 0
	for _, field := range f.Fields {
		if field.Kind != Unshown {
			shown++
		}
	}
	return shown > 1
}
