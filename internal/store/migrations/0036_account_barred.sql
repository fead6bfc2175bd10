-- +goose Up
-- Users whom an operator has disabled, and operators alone enable. It says something while
-- the user is disabled.
ALTER TABLE account_user ADD COLUMN barred BIGINT NOT NULL DEFAULT 0;
