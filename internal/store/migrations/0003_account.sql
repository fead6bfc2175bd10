-- +goose Up
-- Who uses the gateway. Money, limits, the disabled flag and the version of an
-- account or key stand in the ledger's tables.
CREATE TABLE account (
    id         TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    email      TEXT NOT NULL, -- contact address, '' for none
    created_ms BIGINT NOT NULL
);

CREATE TABLE api_key (
    id             TEXT NOT NULL PRIMARY KEY,
    account        TEXT NOT NULL,
    hash           TEXT NOT NULL, -- SHA-256 of the secret, hexadecimal
    name           TEXT NOT NULL,
    hint           TEXT NOT NULL,
    allowed_models TEXT NOT NULL, -- JSON list, '' for all
    allowed_ips    TEXT NOT NULL, -- JSON list of addresses and CIDRs, '' for all
    created_ms     BIGINT NOT NULL,
    deleted        BIGINT NOT NULL
);
CREATE UNIQUE INDEX api_key_hash ON api_key (hash);
CREATE INDEX api_key_account ON api_key (account, id);

CREATE TABLE account_user (
    id         TEXT NOT NULL PRIMARY KEY,
    account    TEXT NOT NULL,
    email      TEXT NOT NULL, -- canonical
    password   TEXT NOT NULL, -- argon2id, PHC string format
    disabled   BIGINT NOT NULL,
    operator   BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_user_email ON account_user (email);
CREATE INDEX account_user_account ON account_user (account, id);
