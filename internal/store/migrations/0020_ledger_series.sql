-- +goose Up
-- What requests are summed by, once each: its id follows from its names
-- (books.SeriesID). folded is the mark of its receipts that have been deleted.
CREATE TABLE ledger_series (
    id       BIGINT NOT NULL PRIMARY KEY,
    account  TEXT   NOT NULL,
    key      TEXT   NOT NULL,
    model    TEXT   NOT NULL,
    line     TEXT   NOT NULL,
    endpoint TEXT   NOT NULL,
    folded   BIGINT NOT NULL
);
CREATE UNIQUE INDEX ledger_series_names ON ledger_series (account, key, model, line, endpoint);
CREATE INDEX ledger_series_key ON ledger_series (key);

-- The sums of the requests of a series that were admitted on a day, kept for
-- good: written by the transaction that ends them.
CREATE TABLE ledger_day (
    day               BIGINT NOT NULL,
    series            BIGINT NOT NULL,
    requests          BIGINT NOT NULL,
    billed            BIGINT NOT NULL,
    failed            BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    cached_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    images            BIGINT NOT NULL,
    clips             BIGINT NOT NULL,
    video_ms          BIGINT NOT NULL,
    cost_nano         BIGINT NOT NULL,
    line_cost_nano    BIGINT NOT NULL, -- what providers take, where it is known
    line_costs        BIGINT NOT NULL, -- the requests of which it is known
    PRIMARY KEY (day, series)
);
CREATE INDEX ledger_day_series ON ledger_day (series, day);

-- Of a receipt: clips and their length, what its attempts' providers take (-1:
-- not known), whose counts it was charged by (books.Source; 0: not written), and
-- whether it is in a day: what a former version writes is not, until a step of
-- the ledger has added it.
ALTER TABLE ledger_receipt ADD COLUMN clips BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_receipt ADD COLUMN video_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_receipt ADD COLUMN line_cost_nano BIGINT NOT NULL DEFAULT -1;
ALTER TABLE ledger_receipt ADD COLUMN source BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_receipt ADD COLUMN dated BIGINT NOT NULL DEFAULT 0;
CREATE INDEX ledger_receipt_undated ON ledger_receipt (account, seq) WHERE dated = 0;

-- The log of requests by what went wrong with them, and of slow ones: nothing
-- that succeeds soon is in these.
CREATE INDEX ledger_receipt_code ON ledger_receipt (code, id) WHERE code <> '';
CREATE INDEX ledger_receipt_account_code ON ledger_receipt (account, code, seq, id) WHERE code <> '';
CREATE INDEX ledger_receipt_slow ON ledger_receipt (id) WHERE duration_ms >= 10000;
