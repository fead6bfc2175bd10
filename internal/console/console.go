// Package console owns the web console below /console, and selects the sections that a listen address serves:
// the users' pages, the operators' pages, or both.
//
// Package userpages has the pages for accounts' users, and package operatorpages the pages for operators. Both
// use package page for sessions, forms and responses, package ui for components, and package show for the
// content that both sections share. Package static has the immutable files.
//
// Invariant: an address for one section serves no page of the other section. All addresses serve the immutable
// files, and the forms to choose a theme or a language.
package console

import (
	"log/slog"
	"net/http"

	"tollgate/internal/console/operatorpages"
	"tollgate/internal/console/page"
	"tollgate/internal/console/userpages"
)

// Base is the path of the console.
const Base = page.Base

// Sections selects the sections that a listen address serves.
type Sections int

const (
	AllSections     Sections = iota // the users' pages and the operators' pages
	UserSection                     // only the users' pages
	OperatorSection                 // only the operators' pages
)

// Options configures New.
type Options struct {
	page.Options          // New sets OwnAddress
	Sections     Sections // all sections if zero
}

// New returns the handler of /console. Request paths include Base. New returns an error if an
// embedded file or an address in the settings is invalid.
func New(o Options) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.OwnAddress = o.Sections == OperatorSection
	return page.New(o.Options, o.sections()...)
}

// sections returns the selected sections.
func (o Options) sections() (all []page.Section) {
	if o.Sections != OperatorSection {
		all = append(all, userpages.Section(o.Options))
	}
	if o.Sections != UserSection {
		all = append(all, operatorpages.Section(o.Options))
	}
	return all
}

// Routes returns the routes of the console as `METHOD /path`, with {id} in place of an id. It is for tests.
func Routes() []string { return page.Patterns(Options{}.sections()...) }
