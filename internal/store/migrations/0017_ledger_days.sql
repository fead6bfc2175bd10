-- +goose Up
-- A key, a free quota and a model's usage have the figures of one day in their
-- rows. When their account's clock turns to another day, forward or back, they
-- are put here, and those of that day are taken from here: no day is ever both
-- here and there. They go with the receipts of their day.
CREATE TABLE ledger_key_day (
    key        TEXT   NOT NULL,
    day        BIGINT NOT NULL,
    spent_nano BIGINT NOT NULL,
    held_nano  BIGINT NOT NULL,
    PRIMARY KEY (key, day)
);

CREATE TABLE ledger_free_day (
    account TEXT   NOT NULL,
    model   TEXT   NOT NULL,
    day     BIGINT NOT NULL,
    used    BIGINT NOT NULL,
    PRIMARY KEY (account, model, day)
);

CREATE TABLE ledger_usage_day (
    account   TEXT   NOT NULL,
    model     TEXT   NOT NULL,
    day       BIGINT NOT NULL,
    cost_nano BIGINT NOT NULL,
    requests  BIGINT NOT NULL,
    billed    BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    PRIMARY KEY (account, model, day)
);

-- The day that the account's usage is on.
ALTER TABLE ledger_account ADD COLUMN day BIGINT NOT NULL DEFAULT 0;

-- One row: the steady time, by which things run out, for the next start.
CREATE TABLE ledger_clock (
    id        BIGINT NOT NULL PRIMARY KEY,
    steady_ms BIGINT NOT NULL
);
