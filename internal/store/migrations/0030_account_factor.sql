-- +goose Up
-- The second factor of a user: codes by time (RFC 6238).
ALTER TABLE account_user ADD COLUMN totp_secret TEXT NOT NULL DEFAULT ''; -- base32, as it is: codes are computed from it
ALTER TABLE account_user ADD COLUMN totp_since_ms BIGINT NOT NULL DEFAULT 0; -- 0: sign-ins ask for no code
ALTER TABLE account_user ADD COLUMN totp_step BIGINT NOT NULL DEFAULT 0; -- of the newest code that was used

-- Recovery codes that are not used yet.
CREATE TABLE account_recovery (
    hash   TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the text, hexadecimal
    member TEXT NOT NULL -- the user
);
CREATE INDEX account_recovery_member ON account_recovery (member);
