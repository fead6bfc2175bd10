-- +goose Up
-- The jobs that providers work on, or may work on: each takes a slot of its
-- line until its attempt has ended, whichever node looks after it.
CREATE TABLE line_job (
    job  TEXT NOT NULL PRIMARY KEY,
    line TEXT NOT NULL
);
CREATE INDEX line_job_line ON line_job (line);
