package admin

import (
	"net/url"
	"slices"
	"strconv"

	"tollgate/internal/fault"
)

// Page sizes.
const (
	defaultPage = 50
	maxPage     = 200
)

// list is a page of a list.
type list[T any] struct {
	Object  string `json:"object"`
	Data    []T    `json:"data"`
	HasMore bool   `json:"has_more"`
}

// newList converts each element of a page with show.
func newList[F, T any](items []F, more bool, show func(F) T) list[T] {
	out := list[T]{Object: "list", Data: make([]T, len(items)), HasMore: more}
	for i, f := range items {
		out.Data[i] = show(f)
	}
	return out
}

// query returns the query parameters. An unknown or repeated parameter is an error, because a list
// with a misspelt filter would have everything.
func (c *call) query(allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "The query of the address cannot be read. Escape its values.")
	}
	for name, v := range values {
		if !slices.Contains(allowed, name) {
			return nil, fault.At(fault.InvalidRequest, fault.Excerpt(name), "There is no query parameter %q here.", fault.Excerpt(name))
		}
		if len(v) != 1 || len(v[0]) > 256 || !isPlain(v[0]) {
			return nil, fault.At(fault.InvalidRequest, name, "Send %s once, as a plain text of at most 256 bytes.", name)
		}
	}
	return values, nil
}

// page returns the cursor, the limit and the allowed filters of a list request.
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

// seconds converts Unix milliseconds to Unix seconds.
func seconds(ms int64) int64 { return ms / 1000 }

// nilIfZero returns a pointer to v, or nil (in JSON null) for the zero value.
func nilIfZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// deletedAnswer is the answer to a DELETE request.
type deletedAnswer struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}
