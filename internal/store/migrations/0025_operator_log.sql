-- +goose Up
-- What operators did: a row an act, written by the transaction of the act, kept
-- for good.
CREATE TABLE operator_log (
    id          TEXT   NOT NULL PRIMARY KEY,
    at_ms       BIGINT NOT NULL,
    way         TEXT   NOT NULL, -- console, token or shell
    name        TEXT   NOT NULL, -- who it was: the email of a user, else ''
    address     TEXT   NOT NULL, -- where it came from, '' in the shell
    act         TEXT   NOT NULL,
    object      TEXT   NOT NULL, -- what it was done to
    account     TEXT   NOT NULL, -- whose that is, else ''
    before_text TEXT   NOT NULL, -- JSON object of what changed, as it was
    after_text  TEXT   NOT NULL  -- and as it is
);
CREATE INDEX operator_log_act ON operator_log (act, id);
CREATE INDEX operator_log_account ON operator_log (account, id);
CREATE INDEX operator_log_object ON operator_log (object, id);

-- Audits that were run in the background.
CREATE TABLE operator_audit (
    id         TEXT   NOT NULL PRIMARY KEY,
    began_ms   BIGINT NOT NULL,
    ended_ms   BIGINT NOT NULL, -- 0: it has not ended
    name       TEXT   NOT NULL, -- who asked for it
    fault      TEXT   NOT NULL, -- why there are no findings, else ''
    findings   TEXT   NOT NULL  -- JSON, '' without any
);

-- What an operator looks things up by.
CREATE INDEX api_key_hint ON api_key (hint, id);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event);
