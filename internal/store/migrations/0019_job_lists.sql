-- +goose Up
-- The operator's lists, newest first. Each has a condition of its own, which
-- its statements repeat, so that no other statement takes it.
CREATE INDEX job_model ON job (model, id) WHERE ended_ms >= 0;
CREATE INDEX job_status ON job (status, id) WHERE ended_ms > 0;
CREATE INDEX job_line ON job (line, id) WHERE line <> '';
CREATE INDEX job_run_started ON job_run (id) WHERE started_ms > 0;
CREATE INDEX job_run_line ON job_run (line, id) WHERE line <> '';
