-- +goose Up
-- Accounts that operators test with: they may use the sandbox models beside the lines of
-- real providers.
ALTER TABLE account ADD COLUMN test BIGINT NOT NULL DEFAULT 0;
