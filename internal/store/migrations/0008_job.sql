-- +goose Up
-- A row for each job, kept for job_retention after its end.
CREATE TABLE job (
    id          TEXT   NOT NULL PRIMARY KEY,
    request     TEXT   NOT NULL, -- the submission's id, which is that of hold and receipt
    account     TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    kind        TEXT   NOT NULL, -- image, video
    model       TEXT   NOT NULL,
    endpoint    TEXT   NOT NULL,
    revision    BIGINT NOT NULL, -- of the catalog that prices it
    plan        TEXT   NOT NULL, -- JSON
    prompt      TEXT   NOT NULL,
    params      TEXT   NOT NULL, -- JSON object, '' for none
    materials   TEXT   NOT NULL, -- JSON: reference files and the mask
    callback    TEXT   NOT NULL, -- '' for none
    once_key    TEXT   NOT NULL, -- its Idempotency-Key, '' for none
    fingerprint TEXT   NOT NULL,
    free        BIGINT NOT NULL, -- it took a place of a free quota
    held_nano   BIGINT NOT NULL, -- what was held when it was admitted
    cost_nano   BIGINT NOT NULL,
    status      TEXT   NOT NULL, -- queued (or processing, while it runs), succeeded, failed
    code        TEXT   NOT NULL, -- error.code of a failed one
    line        TEXT   NOT NULL, -- that did it, once it has ended
    trace       TEXT   NOT NULL, -- JSON: steps and attempts, once it has ended
    body        TEXT   NOT NULL, -- the public body, once it has ended
    created_ms  BIGINT NOT NULL,
    started_ms  BIGINT NOT NULL, -- 0: never
    ended_ms    BIGINT NOT NULL  -- 0: not yet
);
CREATE INDEX job_account ON job (account, id);
CREATE INDEX job_once ON job (account, once_key) WHERE once_key <> '';
CREATE INDEX job_ended ON job (ended_ms) WHERE ended_ms > 0;
CREATE INDEX job_recent ON job (model, ended_ms) WHERE status = 'succeeded';

-- A row for each job that has not ended: where it stands, and who looks after
-- it.
CREATE TABLE job_run (
    id           TEXT   NOT NULL PRIMARY KEY,
    model        TEXT   NOT NULL,
    account      TEXT   NOT NULL,
    state        BIGINT NOT NULL, -- 0 queued, 1 sending, 2 rendering, 3 rendered, 4 stored
    turn         BIGINT NOT NULL, -- its place in the model's queue: each account has one job a turn
    queued_ms    BIGINT NOT NULL, -- since when it waits for a line
    wake_ms      BIGINT NOT NULL, -- queued: not before
    started_ms   BIGINT NOT NULL, -- when it became processing; 0: it is queued for its user
    epoch        TEXT   NOT NULL, -- of the node that looks after it, '' for none
    fence        BIGINT NOT NULL, -- grows with each take-over and each step back
    line         TEXT   NOT NULL, -- of the submission
    revision     BIGINT NOT NULL, -- of the catalog that the line is of
    number       BIGINT NOT NULL, -- of the submission, from 1
    ticket       TEXT   NOT NULL, -- the provider's name of it, '' until it has given one
    submitted_ms BIGINT NOT NULL,
    results      TEXT   NOT NULL, -- JSON: where the results are at the provider
    files        TEXT   NOT NULL, -- JSON: the stored results
    trace        TEXT   NOT NULL  -- JSON: steps and attempts so far
);

-- Each index has a condition of its own, which the statements that are meant for
-- it repeat: PostgreSQL can then take no other one, also as long as it takes the
-- table for empty and all of them for the same.
CREATE INDEX job_run_queue ON job_run (model, turn, id) WHERE state = 0;
CREATE INDEX job_run_turn ON job_run (model, account, turn) WHERE state = 0 AND turn > 0;
CREATE INDEX job_run_wait ON job_run (queued_ms) WHERE state = 0 AND queued_ms > 0;
CREATE INDEX job_run_epoch ON job_run (epoch, id) WHERE state > 0 AND epoch <> '';
CREATE INDEX job_run_busy ON job_run (model) WHERE state > 0;
