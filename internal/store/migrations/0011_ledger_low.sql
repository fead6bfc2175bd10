-- +goose Up
-- The level below which an account wants to hear of its balance, and whether it
-- has not heard since the balance was last above it.
ALTER TABLE ledger_account ADD COLUMN low_set BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_account ADD COLUMN low_nano BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_account ADD COLUMN low_armed BIGINT NOT NULL DEFAULT 0;
