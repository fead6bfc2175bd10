-- +goose Up
-- The request log by account, in the order of what the account's balance went
-- through. Each request is in it, so it takes the place of the former one.
CREATE INDEX ledger_receipt_log ON ledger_receipt (account, seq, id);
DROP INDEX ledger_receipt_account;

-- The log of what went wrong: nothing that succeeds is in these.
CREATE INDEX ledger_receipt_failed ON ledger_receipt (status, id) WHERE status >= 400;
CREATE INDEX ledger_receipt_account_failed ON ledger_receipt (account, status, seq, id) WHERE status >= 400;
