-- +goose Up
-- Money is nano-dollars (_nano), times are Unix milliseconds (_ms), days are
-- whole UTC days since 1970, limits of -1 are no limit.
CREATE TABLE ledger_account (
    id           TEXT   NOT NULL PRIMARY KEY,
    balance_nano BIGINT NOT NULL,
    held_nano    BIGINT NOT NULL,
    floor_nano   BIGINT NOT NULL,
    disabled     BIGINT NOT NULL,
    seq          BIGINT NOT NULL -- the newest movement's or request's number
);

-- What a key has spent on its newest day stands beside its totals: an older
-- day can admit nothing any more.
CREATE TABLE ledger_key (
    id                TEXT   NOT NULL PRIMARY KEY,
    account           TEXT   NOT NULL,
    version           BIGINT NOT NULL,
    disabled          BIGINT NOT NULL,
    closed            BIGINT NOT NULL,
    rpm               BIGINT NOT NULL,
    daily_budget_nano BIGINT NOT NULL,
    total_limit_nano  BIGINT NOT NULL,
    spent_nano        BIGINT NOT NULL,
    held_nano         BIGINT NOT NULL,
    day               BIGINT NOT NULL,
    day_spent_nano    BIGINT NOT NULL,
    day_held_nano     BIGINT NOT NULL,
    hits              BIGINT NOT NULL,
    last_used_ms      BIGINT NOT NULL
);
CREATE INDEX ledger_key_account ON ledger_key (account);

-- The admitted requests of a key's rate window, numbered.
CREATE TABLE ledger_hit (
    key   TEXT   NOT NULL,
    n     BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (key, n)
);

-- Places used of a free model's daily quota, on the newest day.
CREATE TABLE ledger_free (
    account TEXT   NOT NULL,
    model   TEXT   NOT NULL,
    day     BIGINT NOT NULL,
    used    BIGINT NOT NULL,
    PRIMARY KEY (account, model)
);

-- A row for each running request; what it has produced so far is charged when
-- its node dies.
CREATE TABLE ledger_hold (
    id                TEXT   NOT NULL PRIMARY KEY,
    epoch             TEXT   NOT NULL,
    account           TEXT   NOT NULL,
    key               TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    endpoint          TEXT   NOT NULL,
    day               BIGINT NOT NULL,
    revision          BIGINT NOT NULL,
    free              BIGINT NOT NULL,
    amount_nano       BIGINT NOT NULL,
    created_ms        BIGINT NOT NULL,
    cost_nano         BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    cached_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    line              TEXT   NOT NULL
);

-- A row for each ended or refused request: the request log and the charges.
CREATE TABLE ledger_receipt (
    id                TEXT   NOT NULL PRIMARY KEY,
    account           TEXT   NOT NULL,
    seq               BIGINT NOT NULL,
    key               TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    endpoint          TEXT   NOT NULL,
    day               BIGINT NOT NULL,
    revision          BIGINT NOT NULL,
    outcome           BIGINT NOT NULL, -- 1 billed, 2 failed, 3 client left, 4 refused
    status            BIGINT NOT NULL,
    code              TEXT   NOT NULL,
    line              TEXT   NOT NULL,
    attempts          TEXT   NOT NULL, -- JSON
    prompt_tokens     BIGINT NOT NULL,
    cached_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    images            BIGINT NOT NULL,
    cost_nano         BIGINT NOT NULL,
    over_nano         BIGINT NOT NULL, -- what usage exceeded the hold by
    held_nano         BIGINT NOT NULL,
    balance_nano      BIGINT NOT NULL, -- after the charge
    first_byte_ms     BIGINT NOT NULL,
    duration_ms       BIGINT NOT NULL,
    created_ms        BIGINT NOT NULL,
    ended_ms          BIGINT NOT NULL,
    stands_for        BIGINT NOT NULL
);
CREATE INDEX ledger_receipt_account ON ledger_receipt (account, seq);

-- Credits and take-backs; of charges the months whose receipts are gone.
CREATE TABLE ledger_entry (
    id           TEXT   NOT NULL PRIMARY KEY,
    account      TEXT   NOT NULL,
    seq          BIGINT NOT NULL,
    kind         TEXT   NOT NULL, -- credit, take_back, charges
    month        BIGINT NOT NULL, -- of charges: months since year 0, else 0
    amount_nano  BIGINT NOT NULL,
    balance_nano BIGINT NOT NULL,
    note         TEXT   NOT NULL,
    created_ms   BIGINT NOT NULL
);
CREATE INDEX ledger_entry_account ON ledger_entry (account, seq);

-- Totals over all time, and those of the newest day beside them.
CREATE TABLE ledger_usage (
    account           TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    cost_nano         BIGINT NOT NULL,
    requests          BIGINT NOT NULL,
    billed            BIGINT NOT NULL,
    failed            BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    images            BIGINT NOT NULL,
    day               BIGINT NOT NULL,
    day_cost_nano     BIGINT NOT NULL,
    day_requests      BIGINT NOT NULL,
    day_billed        BIGINT NOT NULL,
    day_failed        BIGINT NOT NULL,
    PRIMARY KEY (account, model)
);

-- The sums of receipts that have been deleted, so that the books can be
-- proved without them.
CREATE TABLE ledger_folded (
    account           TEXT   NOT NULL,
    key               TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    cost_nano         BIGINT NOT NULL,
    requests          BIGINT NOT NULL,
    billed            BIGINT NOT NULL,
    failed            BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    images            BIGINT NOT NULL,
    PRIMARY KEY (account, key, model)
);

-- Answers of requests that carried an Idempotency-Key.
CREATE TABLE ledger_once (
    scope       TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL,
    answer      TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX ledger_once_created ON ledger_once (created_ms);
