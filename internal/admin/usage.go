package admin

import (
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// usage answers GET /usage.
func (s *server) usage(c *call) (any, error) {
	var filters []string
	for _, grouping := range spending.Groupings() {
		if grouping != spending.ByDay {
			filters = append(filters, string(grouping))
		}
	}
	values, err := c.query(append(append(filters, spending.Params()...), "format")...)
	if err != nil {
		return nil, err
	}
	asCSV, err := c.wantsCSV(values.Get("format"))
	if err != nil {
		return nil, err
	}
	report, err := view(s, c, func(tx *store.Tx) (report spending.Breakdown, err error) {
		now, err := tx.NowMS()
		if err != nil {
			return report, err
		}
		q, err := spending.ParseQuery(values.Get, spending.Groupings(), now)
		if err != nil {
			return report, err
		}
		sandbox, err := catalog.SandboxTx(tx)
		if err != nil {
			return report, err
		}
		q.Except = spending.RequestSet(sandbox)
		if report, err = spending.TableTx(tx, q, true); err != nil {
			return report, err
		}
		return report, account.FillNamesTx(tx, &report)
	})
	if err != nil || !asCSV {
		return report, err
	}
	body, err := report.CSV()
	return text{csvType, body}, err
}

// wantsCSV reports whether the client asks for CSV in the parameter `format` or, if format is empty,
// in the header `Accept`.
func (c *call) wantsCSV(format string) (bool, error) {
	switch format {
	case "csv":
		return true, nil
	case "json":
		return false, nil
	case "":
		return strings.Contains(c.Request.Header.Get("Accept"), "text/csv"), nil
	}
	return false, fault.At(fault.InvalidRequest, "format", "format must be json or csv.")
}
