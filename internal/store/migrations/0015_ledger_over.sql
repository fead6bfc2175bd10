-- +goose Up
-- What usage exceeded holds by, over all time: written with the receipt that
-- says so, under the lock of its account, and kept when receipts go.
CREATE TABLE ledger_over (
    account   TEXT   NOT NULL,
    key       TEXT   NOT NULL,
    line      TEXT   NOT NULL,
    over_nano BIGINT NOT NULL,
    PRIMARY KEY (account, key, line)
);
CREATE INDEX ledger_over_line ON ledger_over (line, over_nano);

INSERT INTO ledger_over (account, key, line, over_nano)
SELECT account, key, line, CAST(SUM(over_nano) AS BIGINT) FROM ledger_receipt WHERE over_nano > 0 GROUP BY account, key, line;
