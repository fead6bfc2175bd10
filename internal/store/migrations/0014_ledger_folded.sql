-- +goose Up
-- What the receipts that have been deleted were in their account's running
-- balance: how many, and the sums of the marks of where each began and ended.
CREATE TABLE ledger_folded_chain (
    account  TEXT   NOT NULL PRIMARY KEY,
    receipts BIGINT NOT NULL,
    begun    BIGINT NOT NULL,
    ended    BIGINT NOT NULL
);

-- Whether a request took a place of a free quota; -1: written before this was.
ALTER TABLE ledger_receipt ADD COLUMN free BIGINT NOT NULL DEFAULT -1;

-- A stream that was ended with its node is a broken stream like any other: its
-- client saw 200.
UPDATE ledger_receipt SET status = 200 WHERE outcome = 1 AND status = 503 AND code = 'service_unavailable';
