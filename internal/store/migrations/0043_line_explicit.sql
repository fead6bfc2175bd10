-- +goose Up
-- Whether the provider named the time of the pause: then accounts that have not met the
-- limit use the line only as a last resort.
ALTER TABLE line_finding ADD COLUMN explicit BIGINT NOT NULL DEFAULT 0;
