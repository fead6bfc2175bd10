-- +goose Up
-- What was charged for the requests of which it is known what their provider took: the
-- margin is of these alone. Of days that had both kinds of requests the share is estimated.
ALTER TABLE ledger_day ADD COLUMN known_cost_nano BIGINT NOT NULL DEFAULT 0;
UPDATE ledger_day SET known_cost_nano = CASE WHEN line_costs >= requests THEN cost_nano ELSE cost_nano / requests * line_costs END
WHERE line_costs > 0;
