-- +goose Up
-- The name of the machine that an epoch's process runs on; empty: not known.
ALTER TABLE node ADD COLUMN host TEXT NOT NULL DEFAULT '';
