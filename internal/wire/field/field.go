// Package field owns the knowledge about request fields: which form or vendor documents a field, and whether
// it can cost more than the price of the model. The data is in data/forms (a file for each form) and
// data/vendors (a file for each vendor or engine), with one field and its source per line; see read.go.
//
// Invariants: a field in no file is Unknown; if vendors disagree about a field not documented by
// the form, the strictest class applies; the tables never change.
package field

import (
	"maps"
	"slices"
	"strings"
)

// Class is the effect of a field on a request. Later classes are stricter.
type Class uint8

// The classes.
const (
	Unknown Class = iota // documented by no reference in data
	Free                 // costs nothing beyond the price of the model
	Owned                // read, checked or replaced by the gateway
	Effort               // costs only tokens, unless the catalog prices the value
	Option               // every value but the defaults needs a price in the catalog
	Costs                // needs a price, or a line with the field in `pass`
	Tool                 // requests a hosted tool, and needs a price
	Later                // would delay the answer, and store it at the provider
	Stored               // refers to an object stored at the provider
)

// classes are the names of the classes in the files.
var classes = map[string]Class{
	"free": Free, "owned": Owned, "effort": Effort, "option": Option, "costs": Costs, "tool": Tool, "later": Later, "stored": Stored,
}

// String returns the name of a class in the files.
func (c Class) String() string {
	for word, class := range classes {
		if class == c {
			return word
		}
	}
	return "unknown"
}

// FieldRule describes one field.
type FieldRule struct {
	Name       string // with dots for a field inside a top-level one
	Class      Class
	Tool       string       // the catalog's name of the hosted tool, for class Tool
	FreeValues []string     // values without an effect on the price; MEMBER=TEXT is an object with the member
	Source     string       // URL of the reference
	File       string       // the form or vendor documenting the field
	Inner      []*FieldRule // fields inside this one of a class above Free
	// Documented is set if the table's form documents the field.
	Documented bool
}

// Table holds the possible fields of requests of a form.
type Table struct {
	fields map[string]*FieldRule
	folded map[string]string // names by their folded spelling
	// clients maps the types of client tools to a condition (PATH=VALUE), or to "".
	clients map[string]string
	members map[string]bool // of client tools
}

// Find returns the rule of a top-level field, or nil.
func (t *Table) Find(name []byte) *FieldRule { return t.fields[string(name)] }

// Spelling returns the field equal to name except for case, or "".
func (t *Table) Spelling(name string) string {
	if known := t.folded[fold(name)]; known != name {
		return known
	}
	return ""
}

// InnerSpelling returns the field inside a top-level one equal to name when case is ignored.
func InnerSpelling(name string) (known string, ok bool) {
	known, ok = nested[fold(name)]
	return known, ok
}

// Names returns the sorted names of all fields of the table.
func (t *Table) Names() []string {
	return slices.Sorted(maps.Keys(t.fields))
}

// Vendor holds the fields documented by one vendor or engine beyond the forms.
type Vendor struct {
	Name    string
	Domains []string // of the vendor's hosts; none for an engine
	Fields  []*FieldRule
	names   map[string]bool
}

// Documents reports whether the vendor documents a field. A nil Vendor stands for an unknown host,
// such as an engine in a private network: any vendor may document the field.
func (v *Vendor) Documents(name string) bool {
	if v == nil {
		return anyVendor[name]
	}
	return v.names[name]
}

// VendorOf returns the vendor of a host, or nil. within reports whether the host is in a domain.
func VendorOf(within func(domain string) bool) *Vendor {
	for _, v := range vendors {
		if slices.ContainsFunc(v.Domains, within) {
			return v
		}
	}
	return nil
}

// Vendors returns all vendors, sorted by name.
func Vendors() []*Vendor { return vendors }

// Form returns the table of a form: chat, responses or messages.
func Form(form string) *Table { return forms[form] }

// Forms returns the names of the forms.
func Forms() []string { return []string{"chat", "responses", "messages"} }

// fold returns the common spelling of all names equal except for case.
func fold(name string) string {
	return strings.ToLower(strings.ToUpper(name))
}
