-- +goose Up
-- Results that the media store did not take, in parts, until it takes them.
CREATE TABLE job_spool (
    job    TEXT   NOT NULL,
    number BIGINT NOT NULL, -- of the submission
    result BIGINT NOT NULL, -- from 0
    part   BIGINT NOT NULL, -- from 0
    data   BYTEA  NOT NULL,
    PRIMARY KEY (job, number, result, part)
);

-- When a node saw last that the media store was down. One row.
CREATE TABLE job_outage (
    id      BIGINT PRIMARY KEY,
    seen_ms BIGINT NOT NULL
);
