package api

import (
	"net/url"
	"slices"
	"strconv"

	"tollgate/internal/fault"
)

// pageLimit returns the page length in a query's parameter, or usual without the parameter. A length
// below 1 or above most is an error.
func pageLimit(query url.Values, param string, usual, most int) (int, error) {
	text := query.Get(param)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fault.At(fault.InvalidRequest, param, "`{param}` must be an integer from 1 to %d.", most)
	}
	return n, nil
}

// noModel is the message for an unknown model in the parameter of a page.
const noModel = "There is no model %q to page from in `{param}`."

// cursor returns the index of the element with the id in a query's parameter, and whether the parameter is
// given. missing is the message if there is no such element; %q stands for the id.
func cursor[T any](query url.Values, param string, all []T, id func(T) string, missing string) (at int, given bool, err error) {
	text := query.Get(param)
	if text == "" {
		return 0, false, nil
	}
	at = slices.IndexFunc(all, func(element T) bool { return id(element) == text })
	if at < 0 {
		return 0, false, fault.At(fault.InvalidRequest, param, missing, fault.Excerpt(text))
	}
	return at, true, nil
}
