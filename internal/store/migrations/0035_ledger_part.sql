-- +goose Up
-- In which parts of its account's log, of 128 numbers each, a key has receipts; and
-- up to which number of the log that is noted. What a former version has written is
-- noted by a step of the ledger.
CREATE TABLE ledger_key_part (
    key  TEXT   NOT NULL,
    part BIGINT NOT NULL,
    PRIMARY KEY (key, part)
);
ALTER TABLE ledger_account ADD COLUMN parted_seq BIGINT NOT NULL DEFAULT 0;
