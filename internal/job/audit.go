package job

import (
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// AuditTx checks that the open holds of jobs are those of running jobs, to the
// nano-dollar, and that each slot of a line belongs to a job that was submitted
// there. It is a ledger.AuditCheck.
func AuditTx(tx *store.Tx) ([]ledger.Difference, map[string]int64, error) {
	holds, err := ledger.JobHoldsTx(tx)
	if err != nil {
		return nil, nil, err
	}
	slots, err := line.SlotsTx(tx)
	if err != nil {
		return nil, nil, err
	}
	rows, err := tx.Query(`SELECT j.id, j.account, j.request, j.held_nano, r.state, r.line FROM job_run r JOIN job j ON j.id = r.id`)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	var found []ledger.Difference
	checked := map[string]int64{"running jobs": 0, "holds of jobs": int64(len(holds))}
	for rows.Next() {
		var id, account, request, onLine string
		var held money.Amount
		var state int64
		if err := rows.Scan(&id, &account, &request, (*int64)(&held), &state, &onLine); err != nil {
			return nil, nil, err
		}
		checked["running jobs"]++
		hold, ok := holds[id]
		switch {
		case !ok:
			found = append(found, ledger.Difference{Account: account, Request: request, What: "a running job has no hold: " + id, Recorded: held.String()})
		case hold.Amount != held || hold.Account != account || hold.Request != request:
			found = append(found, ledger.Difference{Account: account, Request: request, What: "the hold of a job is another one: " + id,
				Recorded: held.String(), Computed: hold.Amount.String()})
		}
		delete(holds, id)
		if state > stateQueued && slots[id] != onLine {
			found = append(found, ledger.Difference{Account: account, Request: request, What: "a submitted job has no slot of its line: " + id,
				Recorded: onLine, Computed: slots[id]})
		}
		if state > stateQueued {
			delete(slots, id)
		}
	}
	for id, hold := range holds {
		found = append(found, ledger.Difference{Account: hold.Account, Request: hold.Request, What: "a hold belongs to no running job: " + id, Recorded: hold.Amount.String()})
	}
	for id, onLine := range slots {
		found = append(found, ledger.Difference{Request: id, What: "a slot of a line belongs to no submitted job", Recorded: onLine})
	}
	return found, checked, rows.Err()
}
