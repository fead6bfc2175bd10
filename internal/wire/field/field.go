// Package field owns what is known of the top-level fields of requests, and of
// the fields inside them that change a price: which form or vendor documents a
// field, and whether it can cost more than the price of the model. What is known
// stands in data/forms (a file for each form) and data/vendors (a file for each
// vendor or engine), one field a line with its source; see read.go.
//
// Invariants: a field in no file is Unknown; if vendors disagree about a field
// that the form does not document, the strictest class counts; the tables never
// change.
package field

import (
	"slices"
	"strings"
)

// Class says what a request with a field may do. Later classes are stricter.
type Class uint8

// The classes.
const (
	Unknown Class = iota // no reference that we have read documents the field
	Free                 // costs nothing beyond the price of the model
	Owned                // the gateway itself reads, checks or replaces the field
	Effort               // costs tokens only, unless the catalog prices the value
	Option               // every value but the defaults needs a price in the catalog
	Costs                // needs a line that passes the field, or a price
	Tool                 // asks for a hosted tool, which needs a price
	Later                // would make the answer later, and store it at the provider
	Stored               // refers to an object that is stored at the provider
)

// classes are the words of the classes in the files.
var classes = map[string]Class{
	"free": Free, "owned": Owned, "effort": Effort, "option": Option, "costs": Costs, "tool": Tool, "later": Later, "stored": Stored,
}

// String returns the word of a class in the files.
func (c Class) String() string {
	for word, class := range classes {
		if class == c {
			return word
		}
	}
	return "unknown"
}

// FieldRule is what is known of a field.
type FieldRule struct {
	Name   string // with dots for a field inside a top-level one
	Class  Class
	Tool   string       // the name by which the catalog prices the hosted tool of class Tool
	Frees  []string     // values that ask for nothing beyond the price
	Source string       // the address of the reference
	By     string       // the form or the vendor that documents the field
	Inner  []*FieldRule // fields inside this one that are more than Free
	// Documented reports whether the form of the table documents the field, and
	// not only a vendor.
	Documented bool
}

// IsFree reports whether a value asks for nothing beyond the price. value is the
// text of a string, or the JSON of any other value.
func (f *FieldRule) IsFree(value string) bool { return slices.Contains(f.Frees, value) }

// Table holds the fields that requests of a form may have.
type Table struct {
	fields map[string]*FieldRule
	folded map[string]string // names by their folded spelling
	// clients are the types of the tools that the client executes, and the members
	// that must say so.
	clients map[string]string
	members map[string]bool // of the tools that the client executes
}

// Find returns what is known of a top-level field; nil if nothing is.
func (t *Table) Find(name []byte) *FieldRule { return t.fields[string(name)] }

// Spelling returns the known field that name equals only without regard to case,
// or "".
func (t *Table) Spelling(name string) string {
	if known := t.folded[fold(name)]; known != name {
		return known
	}
	return ""
}

// Names returns the names of all fields of the table in their order.
func (t *Table) Names() []string {
	names := make([]string, 0, len(t.fields))
	for name := range t.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Vendor is what one vendor, or one engine, documents beyond the forms.
type Vendor struct {
	Name    string
	Domains []string // of its hosts; none for engines that run anywhere
	Fields  []*FieldRule
	names   map[string]bool
}

// Documents reports whether the vendor documents a field. Nil stands for a host
// that belongs to no known vendor, such as an engine in a private network: it may
// be any of them.
func (v *Vendor) Documents(name string) bool {
	if v == nil {
		return anyVendor[name]
	}
	return v.names[name]
}

// VendorOf returns the vendor of a host, or nil if none is known. within reports
// whether the host lies in a domain.
func VendorOf(within func(domain string) bool) *Vendor {
	for _, v := range vendors {
		if slices.ContainsFunc(v.Domains, within) {
			return v
		}
	}
	return nil
}

// Vendors returns all vendors in the order of their names.
func Vendors() []*Vendor { return vendors }

// Form returns the table of a form: chat, responses or messages.
func Form(form string) *Table { return forms[form] }

// Forms returns the names of the forms.
func Forms() []string { return []string{"chat", "responses", "messages"} }

// fold returns a spelling that all names share which differ only in case.
func fold(name string) string {
	return strings.ToLower(strings.ToUpper(name))
}
