-- +goose Up
-- Links with which users set their password, one a user: a new one takes the place
-- of the one before.
CREATE TABLE account_link (
    member     TEXT NOT NULL PRIMARY KEY, -- the user
    hash       TEXT NOT NULL, -- SHA-256 of the token, hexadecimal
    expires_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_link_hash ON account_link (hash);
CREATE INDEX account_link_expires ON account_link (expires_ms);
