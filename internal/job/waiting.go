package job

import (
	"fmt"

	"tollgate/internal/store"
)

// manyJobs is where counts of jobs end.
const manyJobs = 1001

// Load is how many jobs wait and run on all nodes, counted up to 1001.
type Load struct {
	Waiting, Running int64
	OldestMS         int64 // since when the one waits that has waited longest; 0: none waits
}

// LoadTx counts the jobs that have not ended.
func LoadTx(tx *store.Tx) (Load, error) {
	var l Load
	err := tx.QueryRow(`SELECT
		(SELECT COUNT(*) FROM (SELECT 1 FROM job_run WHERE state = 0 AND queued_ms > 0 LIMIT $1) w),
		(SELECT COUNT(*) FROM (SELECT 1 FROM job_run WHERE state > 0 LIMIT $1) r),
		COALESCE((SELECT MIN(queued_ms) FROM job_run WHERE state = 0 AND queued_ms > 0), 0)`, manyJobs).
		Scan(&l.Waiting, &l.Running, &l.OldestMS)
	if err != nil {
		return l, fmt.Errorf("count the jobs: %w", err)
	}
	return l, nil
}
