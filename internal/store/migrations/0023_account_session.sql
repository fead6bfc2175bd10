-- +goose Up
-- Who is signed in to the console. A session's value is in its cookie alone.
CREATE TABLE account_session (
    hash       TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the value, hexadecimal
    id         TEXT NOT NULL, -- what lists show
    kind       TEXT NOT NULL, -- user or operator
    member     TEXT NOT NULL, -- the user, '' for who came by the operator's token
    token      TEXT NOT NULL, -- of the latter: SHA-256 of the token, else ''
    address    TEXT NOT NULL,
    agent      TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    seen_ms    BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_session_id ON account_session (id);
CREATE INDEX account_session_member ON account_session (member, id);
CREATE INDEX account_session_seen ON account_session (seen_ms);

-- Attempts to sign in that failed, or are being judged, by who made them.
CREATE TABLE account_attempt (
    id      TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL, -- SHA-256 of an email or a network, hexadecimal
    at_ms   BIGINT NOT NULL
);
CREATE INDEX account_attempt_subject ON account_attempt (subject, at_ms);
CREATE INDEX account_attempt_at ON account_attempt (at_ms);

CREATE INDEX account_user_operator ON account_user (id) WHERE operator = 1;
