package job

import (
	"fmt"

	"tollgate/internal/store"
)

const maxCount = 1001

// Load is the number of queued and running jobs on all nodes. Counts end at 1001.
type Load struct {
	Waiting, Running int64
	OldestMS         int64 // when the oldest queued job was queued; 0 if none is queued
}

// LoadTx counts the unfinished jobs.
func LoadTx(tx *store.Tx) (Load, error) {
	var l Load
	err := tx.QueryRow(`SELECT
		(SELECT COUNT(*) FROM (SELECT 1 FROM job_run WHERE state = 0 AND queued_ms > 0 LIMIT $1) w),
		(SELECT COUNT(*) FROM (SELECT 1 FROM job_run WHERE state > 0 LIMIT $1) r),
		COALESCE((SELECT MIN(queued_ms) FROM job_run WHERE state = 0 AND queued_ms > 0), 0)`, maxCount).
		Scan(&l.Waiting, &l.Running, &l.OldestMS)
	if err != nil {
		return l, fmt.Errorf("count the jobs: %w", err)
	}
	return l, nil
}
