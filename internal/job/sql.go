package job

// Statements for many rows. sql_test.go checks on both databases that each statement uses an index.
const (
	// insertRun appends a job to its queue. Accounts take turns: each account has one job per turn,
	// after the turn of its last job and not before the current turn. ORDER BY with LIMIT 1 makes
	// PostgreSQL use the index even if its statistics say that the table is empty. With MAX and MIN,
	// PostgreSQL would read the whole table.
	insertRun = `INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, revision, number,
		ticket,
		submitted_ms, results, files, trace)
		SELECT $1, $2, $3, 0, 1 + CASE WHEN own > head THEN own ELSE head END, CAST($4 AS BIGINT), 0, 0, '', 0, '', 0, 0, '', 0, '', '', $5
		FROM (SELECT COALESCE((SELECT turn FROM job_run WHERE model = $2 AND account = $3 AND state = 0 AND turn > 0
			ORDER BY turn DESC LIMIT 1), 0) AS own,
			COALESCE((SELECT turn FROM job_run WHERE model = $2 AND state = 0 ORDER BY turn, id LIMIT 1), 1) - 1 AS head) AS places`

	nextQueuedModel = `SELECT COALESCE((SELECT model FROM job_run WHERE state = 0 AND model > $1 ORDER BY model LIMIT 1), '')`

	modelQueue = `SELECT id FROM job_run WHERE model = $1 AND state = 0 ORDER BY turn, id LIMIT $2`

	nextEpoch = `SELECT COALESCE((SELECT epoch FROM job_run WHERE state > 0 AND epoch <> '' AND epoch > $1 ORDER BY epoch LIMIT 1), '')`

	jobsOfEpoch = `SELECT id FROM job_run WHERE epoch = $1 AND epoch <> '' AND state > 0 ORDER BY id LIMIT $2`

	overdueJobs = `SELECT id FROM job_run WHERE state = 0 AND queued_ms > 0 AND queued_ms <= $1 ORDER BY queued_ms LIMIT $2`

	nextQueuedAccount = `SELECT COALESCE((SELECT account FROM job_run WHERE state = 0 AND turn > 0 AND model = $1 AND account > $2
		ORDER BY account LIMIT 1), '')`

	accountQueue = `SELECT id FROM job_run WHERE model = $1 AND account = $2 AND state = 0 AND turn > 0 ORDER BY turn LIMIT $3`

	pastRecords = `SELECT id FROM job WHERE ended_ms > 0 AND ended_ms <= $1 ORDER BY ended_ms LIMIT $2`

	queuePositions = `SELECT turn, id FROM job_run WHERE model = $1 AND state = 0 ORDER BY turn, id`

	countRunning = `SELECT COUNT(*) FROM job_run WHERE model = $1 AND state > 0`

	countAhead = `SELECT COUNT(*) FROM job_run WHERE model = $1 AND state = 0 AND (turn, id) < ($2, $3)`

	recentTimes = `SELECT ended_ms - started_ms FROM job WHERE model = $1 AND status = 'succeeded' ORDER BY ended_ms DESC LIMIT $2`

	// selectQueue reads the jobs of a queue that may start now, after a position.
	selectQueue = `SELECT id, account, turn, fence, trace FROM job_run
		WHERE model = $1 AND state = 0 AND wake_ms <= $2 AND (turn, id) > ($3, $4)
	ORDER BY turn, id LIMIT $5`

	// insertSpool inserts a part. It is a no-op if the spool already has $6 parts.
	insertSpool = `INSERT INTO job_spool (job, number, result, part, data) SELECT $1, $2, $3, $4, $5
		WHERE (SELECT COUNT(*) FROM job_spool) < $6
		ON CONFLICT (job, number, result, part) DO UPDATE SET data = excluded.data`

	selectSpool = `SELECT data FROM job_spool WHERE job = $1 AND number = $2 AND result = $3 AND part = $4`

	deleteSpoolOf = `DELETE FROM job_spool WHERE job = $1`

	// unneededSpool and deleteSpool read the whole spool. Without an outage the spool is empty.
	unneededSpool = `SELECT EXISTS (SELECT 1 FROM job_spool WHERE ` + noRun + `)`

	deleteSpool = `DELETE FROM job_spool WHERE ` + noRun

	noRun = `NOT EXISTS (SELECT 1 FROM job_run r WHERE r.id = job_spool.job AND r.number = job_spool.number)`

	upsertOutage = `INSERT INTO job_outage (id, seen_ms) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms`

	selectOutage = `SELECT COALESCE((SELECT seen_ms FROM job_outage WHERE id = 1), 0)`

	// selectOnce finds the newest job with an Idempotency-Key.
	selectOnce = `SELECT id, kind, model, fingerprint, ended_ms FROM job WHERE account = $1 AND once_key = $2 AND once_key <> ''
		ORDER BY id DESC LIMIT 1`
)
