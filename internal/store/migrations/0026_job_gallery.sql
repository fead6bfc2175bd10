-- +goose Up
-- The jobs of an account by how they stand, newest first.
CREATE INDEX job_own ON job (account, status, kind, id) WHERE ended_ms > 0 AND account <> '';
CREATE INDEX job_run_own ON job_run (account, id) WHERE account <> '';
