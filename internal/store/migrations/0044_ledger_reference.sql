-- +goose Up
-- The payment's id of a credit or a take-back; empty if there is none. No two movements have the same.
ALTER TABLE ledger_entry ADD COLUMN reference TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX ledger_entry_reference ON ledger_entry (reference) WHERE reference <> '';
