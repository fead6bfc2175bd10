-- +goose Up
-- Redeem codes. A code's text is known to who was given it alone.
CREATE TABLE account_code (
    hash        TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the text, hexadecimal
    id          TEXT NOT NULL,
    batch       TEXT NOT NULL, -- those that were made together
    hint        TEXT NOT NULL, -- the end of the text
    usd_nano    BIGINT NOT NULL,
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL, -- 0: never
    account     TEXT NOT NULL,   -- that redeemed it, '' for none
    redeemed_ms BIGINT NOT NULL, -- 0: not yet
    voided_ms   BIGINT NOT NULL  -- 0: it is good
);
CREATE UNIQUE INDEX account_code_id ON account_code (id);
