package admin

import (
	"net/url"
	"slices"
	"strconv"

	"tollgate/internal/fault"
)

// Sizes of a page.
const (
	defaultPage = 50
	maxPage     = 200
)

// list is one page of things.
type list[T any] struct {
	Object  string `json:"object"`
	Data    []T    `json:"data"`
	HasMore bool   `json:"has_more"`
}

// newList shows each element of a page with show.
func newList[F, T any](found []F, more bool, show func(F) T) list[T] {
	out := list[T]{Object: "list", Data: make([]T, len(found)), HasMore: more}
	for i, f := range found {
		out.Data[i] = show(f)
	}
	return out
}

// query returns the request's query parameters, each at most once and none but
// the allowed: a misspelt filter must not look like one that matches all.
func (c *call) query(allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "The query of the address cannot be read. Escape its values.")
	}
	for name, v := range values {
		if !slices.Contains(allowed, name) {
			return nil, fault.At(fault.InvalidRequest, fault.Shown(name), "There is no query parameter %q here.", fault.Shown(name))
		}
		if len(v) != 1 || len(v[0]) > 256 || !plain(v[0]) {
			return nil, fault.At(fault.InvalidRequest, name, "Send %s once, as a plain text of at most 256 bytes.", name)
		}
	}
	return values, nil
}

// page returns where a list goes on and how long it may be, with the other
// parameters that the list allows.
func (c *call) page(filters ...string) (values url.Values, after string, limit int, err error) {
	values, err = c.query(append(filters, "limit", "after")...)
	if err != nil {
		return nil, "", 0, err
	}
	limit = defaultPage
	if values.Has("limit") {
		limit, err = strconv.Atoi(values.Get("limit"))
		if err != nil || limit < 1 || limit > maxPage {
			return nil, "", 0, fault.At(fault.InvalidRequest, "limit", "limit must be a whole number from 1 to %d.", maxPage)
		}
	}
	return values, values.Get("after"), limit, nil
}

// seconds turns Unix milliseconds into the Unix seconds that answers show.
func seconds(ms int64) int64 { return ms / 1000 }

// orNil shows a text that is not there as null.
func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// gone is the answer of a DELETE.
type gone struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}
