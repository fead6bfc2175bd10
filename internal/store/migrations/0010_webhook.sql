-- +goose Up
-- An account's receiver and signing secret. The secret signs callbacks of
-- single requests too, so it is there without an address.
CREATE TABLE webhook_endpoint (
    account  TEXT NOT NULL PRIMARY KEY,
    secret   TEXT NOT NULL, -- whsec_ and base64
    url      TEXT NOT NULL, -- '': switched off
    receiver TEXT NOT NULL, -- of url
    events   TEXT NOT NULL  -- chosen types, each with a space on both sides
);

-- The log: a row for each event, with what is sent, to where. Written once with
-- what it tells; state is the only column that changes.
CREATE TABLE webhook_delivery (
    id         TEXT   NOT NULL PRIMARY KEY,
    account    TEXT   NOT NULL,
    event      TEXT   NOT NULL, -- id of the event, the webhook-id header
    type       TEXT   NOT NULL,
    url        TEXT   NOT NULL,
    receiver   TEXT   NOT NULL, -- account, scheme, host and port
    body       TEXT   NOT NULL,
    state      BIGINT NOT NULL, -- 0 pending, 1 delivered, 2 failed
    created_ms BIGINT NOT NULL
);
CREATE INDEX webhook_delivery_account ON webhook_delivery (account, id);
CREATE INDEX webhook_delivery_created ON webhook_delivery (created_ms);

-- What came of each attempt.
CREATE TABLE webhook_attempt (
    delivery TEXT   NOT NULL,
    id       TEXT   NOT NULL, -- of the lease that it was made under
    at_ms    BIGINT NOT NULL,
    status   BIGINT NOT NULL, -- 0: no answer
    took_ms  BIGINT NOT NULL,
    error    TEXT   NOT NULL,
    PRIMARY KEY (delivery, id)
);

-- A row for each pending delivery that has attempts to come.
CREATE TABLE webhook_queue (
    delivery TEXT   NOT NULL PRIMARY KEY,
    account  TEXT   NOT NULL,
    receiver TEXT   NOT NULL,
    due_ms   BIGINT NOT NULL,
    tries    BIGINT NOT NULL, -- attempts so far
    fresh    BIGINT NOT NULL, -- 1: the receiver's row may not know of it
    lease    TEXT   NOT NULL, -- of the attempt that runs, '' for none
    epoch    TEXT   NOT NULL, -- of the node that makes it
    until_ms BIGINT NOT NULL  -- and when it is given up
);
CREATE INDEX webhook_queue_fresh ON webhook_queue (delivery) WHERE fresh = 1;
CREATE INDEX webhook_queue_due ON webhook_queue (receiver, due_ms, delivery) WHERE lease = '';
CREATE INDEX webhook_queue_running ON webhook_queue (receiver) WHERE lease <> '';

-- A row for each receiver with something in the queue, so that finding what is
-- due passes over a receiver with a long queue in one step.
CREATE TABLE webhook_receiver (
    id       TEXT   NOT NULL PRIMARY KEY,
    account  TEXT   NOT NULL,
    failing  BIGINT NOT NULL, -- 1: its last attempt failed
    ready_ms BIGINT NOT NULL  -- when an attempt may begin; never while all that may run do
);
CREATE INDEX webhook_receiver_ready ON webhook_receiver (failing, ready_ms, id);
