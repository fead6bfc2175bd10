package slot

import (
	"slices"

	"tollgate/internal/store"
)

// LockTx locks the slots of lines until the transaction ends, so that the result of FreeTx stays
// true.
func LockTx(tx *store.Tx, lines ...string) error {
	for _, line := range slices.Sorted(slices.Values(lines)) { // locks are taken in one order
		if err := tx.Serialize(lockName + line); err != nil {
			return err
		}
	}
	return nil
}

// FreeTx returns the number of further jobs for a line with the given max_concurrent, more than 0:
// the slots without a job or a grant of a living node. Call LockTx before taking some.
func FreeTx(tx *store.Tx, line string, limit int) (int, error) {
	r, err := readTx(tx, line, "")
	if err != nil {
		return 0, err
	}
	return max(limit-r.jobs-r.others, 0), nil
}

// TakeTx gives a job a slot of a line. GiveTx and Give return the slot. A job has at most one slot, and
// a second TakeTx for the same line is a no-op.
func TakeTx(tx *store.Tx, line, job string) error {
	_, err := tx.Exec(`INSERT INTO line_job (job, line) VALUES ($1, $2) ON CONFLICT (job) DO UPDATE SET line = excluded.line`, job, line)
	return err
}

// GiveTx returns the slot of a job, if any.
func GiveTx(tx *store.Tx, job string) error {
	_, err := tx.Exec(`DELETE FROM line_job WHERE job = $1`, job)
	return err
}

// Give adds the statement of GiveTx to a batch.
func Give(q *store.Batch, job string) { q.Exec(nil, `DELETE FROM line_job WHERE job = $1`, job) }

// JobsTx returns the line of each job with a slot, by the job's id, for the audit.
func JobsTx(tx *store.Tx) (map[string]string, error) {
	slots := map[string]string{}
	return slots, tx.Each(func(row store.Row) error {
		var job, line string
		err := row.Scan(&job, &line)
		slots[job] = line
		return err
	}, `SELECT job, line FROM line_job`)
}
