-- +goose Up
-- Words that kept charges name: accounts and models, once each.
CREATE TABLE ledger_word (
    id   INTEGER NOT NULL PRIMARY KEY,
    word TEXT    NOT NULL
);
CREATE UNIQUE INDEX ledger_word_word ON ledger_word (word);

-- A row for each charge whose receipt has been deleted, kept for good. The ids of
-- request and job are packed (id.Pack); of a chat request the job's is empty.
CREATE TABLE ledger_charge (
    account      INTEGER NOT NULL, -- ledger_word
    model        INTEGER NOT NULL, -- ledger_word
    seq          BIGINT  NOT NULL,
    amount_nano  BIGINT  NOT NULL,
    balance_nano BIGINT  NOT NULL, -- after it
    ended_ms     BIGINT  NOT NULL,
    request      BYTEA   NOT NULL,
    job          BYTEA   NOT NULL,
    PRIMARY KEY (account, seq)
);
CREATE UNIQUE INDEX ledger_charge_request ON ledger_charge (request);

-- Of a month's charges, those that are kept one by one.
ALTER TABLE ledger_entry ADD COLUMN kept_nano BIGINT NOT NULL DEFAULT 0;

-- Of an account's deleted receipts, the charges that are kept: how many, and the
-- sum of the marks of their rows.
ALTER TABLE ledger_folded_chain ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_folded_chain ADD COLUMN kept_mark BIGINT NOT NULL DEFAULT 0;
