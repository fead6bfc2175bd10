-- +goose Up
-- The job that a hold or a receipt belongs to; '' for chat. The hold of a job
-- belongs to no node: its epoch is 'job'.
ALTER TABLE ledger_hold ADD COLUMN job TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger_receipt ADD COLUMN job TEXT NOT NULL DEFAULT '';
CREATE INDEX ledger_hold_job ON ledger_hold (account, model, day) WHERE job <> '';
