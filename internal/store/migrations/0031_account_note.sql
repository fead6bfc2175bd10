-- +goose Up
-- What operators note about an account, for themselves alone.
ALTER TABLE account ADD COLUMN note TEXT NOT NULL DEFAULT '';
