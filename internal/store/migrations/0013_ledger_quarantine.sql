-- +goose Up
-- Open holds that could not be ended because the rows around them are damaged.
-- They hold nothing any more; a row stays until somebody has looked at it.
CREATE TABLE ledger_quarantine (
    id          TEXT   NOT NULL PRIMARY KEY, -- of the request
    epoch       TEXT   NOT NULL,
    account     TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    model       TEXT   NOT NULL,
    endpoint    TEXT   NOT NULL,
    job         TEXT   NOT NULL,
    day         BIGINT NOT NULL,
    amount_nano BIGINT NOT NULL, -- what it held
    cost_nano   BIGINT NOT NULL, -- what its stream had produced
    created_ms  BIGINT NOT NULL,
    cause       TEXT   NOT NULL,
    at_ms       BIGINT NOT NULL
);
