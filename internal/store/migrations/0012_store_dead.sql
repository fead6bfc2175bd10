-- +goose Up
-- When an epoch was declared dead, 0 while it lives. Rows of the dead are kept
-- for a day, so that a node that was cut off can learn which batch of its former
-- life was its last.
ALTER TABLE node ADD COLUMN dead_ms BIGINT NOT NULL DEFAULT 0;
