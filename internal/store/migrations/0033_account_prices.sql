-- +goose Up
-- What an account pays in place of the catalog's prices: so many millionths of them,
-- and of those of single models as a JSON object by id ('': of none).
ALTER TABLE account ADD COLUMN price_factor BIGINT NOT NULL DEFAULT 1000000;
ALTER TABLE account ADD COLUMN prices TEXT NOT NULL DEFAULT '';

-- The factor, in millionths, by which a request is billed, as it was at its admission.
-- 0: none.
ALTER TABLE ledger_hold ADD COLUMN price_factor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_receipt ADD COLUMN price_factor BIGINT NOT NULL DEFAULT 0;
