-- +goose Up
--
-- The whole database. Both engines run this text. A line that begins with "-- PostgreSQL: " or
-- "-- SQLite: " is a comment to the other engine.
--
-- Conventions of all tables:
--   * Money is in nano-dollars (_nano), times are Unix milliseconds (_ms), and days are whole UTC
--     days since 1970. Flags are 0 or 1.
--   * Columns are never NULL. Texts are '' and times are 0 if there is no value.
--   * An account, key, model, line, endpoint or job is named by its public id.
--   * A table belongs to the room in the heading above it. No other room has SQL on it.

--------------------------------------------------------------- internal/store

-- Which binaries can serve the database, in one row (ADR 6).
CREATE TABLE store_schema (
    id               TEXT   NOT NULL PRIMARY KEY, -- always 'current'
    compatible_since BIGINT NOT NULL              -- number of the newest migration of the oldest such binary
);
INSERT INTO store_schema (id, compatible_since) VALUES ('current', 1);

-- The progress of changes of old rows, which run in steps while nodes serve (ADR 6).
CREATE TABLE store_backfill (
    name     TEXT   NOT NULL PRIMARY KEY,
    position TEXT   NOT NULL, -- the key of the last changed row; '' before the first and after the last
    changed  BIGINT NOT NULL, -- rows so far
    done     BIGINT NOT NULL  -- 1 if complete
);

---------------------------------------------------------------- internal/node

-- The running and recently dead nodes. Each start of a process has its own epoch.
CREATE TABLE node (
    epoch      TEXT   NOT NULL PRIMARY KEY, -- random
    host       TEXT   NOT NULL DEFAULT '',  -- host name and process id, for people
    started_ms BIGINT NOT NULL,
    beat       BIGINT NOT NULL,             -- grows while the node lives
    dead       BIGINT NOT NULL,             -- 1 if another node declared this one dead
    dead_ms    BIGINT NOT NULL DEFAULT 0,   -- the time of that; a dead node's row is kept for a day
    schema     BIGINT NOT NULL DEFAULT 0    -- number of the newest migration of its binary
);

-- The numbers of the last batches committed by each of a node's workers (ADR 3). Older rows are
-- deleted.
CREATE TABLE node_batch (
    epoch  TEXT   NOT NULL,
    worker BIGINT NOT NULL, -- commits one batch at a time
    batch  BIGINT NOT NULL,
    PRIMARY KEY (epoch, worker, batch)
)
-- SQLite: WITHOUT ROWID
;

-- The settings of the nodes on PostgreSQL, to find differences.
CREATE TABLE node_settings (
    epoch   TEXT NOT NULL PRIMARY KEY,
    digests TEXT NOT NULL -- JSON object: short digests by setting; those of secrets need a key that is not in the database
);

------------------------------------------------------------- internal/account

-- The accounts. Their money, limits and disabled flags are in ledger_account.
CREATE TABLE account (
    id           TEXT   NOT NULL PRIMARY KEY,
    name         TEXT   NOT NULL,
    email        TEXT   NOT NULL,                 -- contact address
    note         TEXT   NOT NULL DEFAULT '',      -- the operator's
    price_factor BIGINT NOT NULL DEFAULT 1000000, -- millionths of the catalog's prices
    prices       TEXT   NOT NULL DEFAULT '',      -- JSON object: factors of single models
    test         BIGINT NOT NULL DEFAULT 0,       -- 1 if the account may always use sandbox models
    created_ms   BIGINT NOT NULL
);

-- The API keys, including deleted ones. Their limits and sums are in ledger_key.
CREATE TABLE api_key (
    id             TEXT   NOT NULL PRIMARY KEY,
    account        TEXT   NOT NULL,
    hash           TEXT   NOT NULL, -- SHA-256 of the secret, hexadecimal
    name           TEXT   NOT NULL,
    hint           TEXT   NOT NULL, -- the end of the secret
    allowed_models TEXT   NOT NULL, -- JSON list, '' for all
    allowed_ips    TEXT   NOT NULL, -- JSON list of addresses and CIDRs, '' for all
    created_ms     BIGINT NOT NULL,
    deleted        BIGINT NOT NULL,
    wait_pictures  BIGINT NOT NULL DEFAULT 0 -- 1 if submissions of images wait for their result
);
CREATE UNIQUE INDEX api_key_hash ON api_key (hash);
CREATE INDEX api_key_account ON api_key (account, id);
CREATE INDEX api_key_hint ON api_key (hint, id);

-- The users of the console.
CREATE TABLE account_user (
    id            TEXT   NOT NULL PRIMARY KEY,
    account       TEXT   NOT NULL,
    email         TEXT   NOT NULL,            -- in canonical spelling
    password      TEXT   NOT NULL,            -- argon2id, in PHC string format
    disabled      BIGINT NOT NULL,
    role          TEXT   NOT NULL DEFAULT '', -- of an operator: account.OperatorRole; '' for customers
    barred        BIGINT NOT NULL DEFAULT 0,  -- 1 if the operator disabled the user
    totp_secret   TEXT   NOT NULL DEFAULT '', -- of the second factor
    totp_since_ms BIGINT NOT NULL DEFAULT 0,  -- the time of its confirmation
    totp_step     BIGINT NOT NULL DEFAULT 0,  -- the newest step used, so that a code works once
    locale         TEXT  NOT NULL DEFAULT '', -- language of mails and of the console: mail.Locale; '' for the browser's
    browser_locale TEXT  NOT NULL DEFAULT '', -- language of the browser of the last sign-in; '' before the first
    declined_mails TEXT  NOT NULL DEFAULT '', -- mail.Topics, separated by spaces
    mark_key      TEXT   NOT NULL DEFAULT '', -- signs the marks of the user's browsers; a new password replaces it
    created_ms    BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_user_email ON account_user (email);
CREATE INDEX account_user_account ON account_user (account, id);
CREATE INDEX account_user_operator ON account_user (id) WHERE role <> '';

-- The links with which a user sets a password, at most one for each user.
CREATE TABLE account_link (
    member     TEXT   NOT NULL PRIMARY KEY, -- the user
    hash       TEXT   NOT NULL,             -- SHA-256 of the token, hexadecimal
    expires_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_link_hash ON account_link (hash);
CREATE INDEX account_link_expires ON account_link (expires_ms);

-- The new addresses of users that are not verified yet, at most one for each user.
CREATE TABLE account_address (
    member     TEXT   NOT NULL PRIMARY KEY, -- the user
    hash       TEXT   NOT NULL,             -- SHA-256 of the token in the mail, hexadecimal
    email      TEXT   NOT NULL,             -- in canonical spelling
    expires_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_address_hash ON account_address (hash);
CREATE INDEX account_address_expires ON account_address (expires_ms);

-- The sign-ups whose address is not verified yet. An account begins with the verification.
CREATE TABLE account_signup (
    hash       TEXT   NOT NULL PRIMARY KEY, -- SHA-256 of the token in the mail, hexadecimal
    email      TEXT   NOT NULL,             -- in canonical spelling; several people may sign up with it
    password   TEXT   NOT NULL,             -- argon2id, in PHC string format
    browser    TEXT   NOT NULL,             -- SHA-256 of the cookie of the browser that signed up, hexadecimal
    terms      TEXT   NOT NULL,             -- the accepted version of the terms; '' for none
    expires_ms BIGINT NOT NULL
);
CREATE INDEX account_signup_email ON account_signup (email);
CREATE INDEX account_signup_expires ON account_signup (expires_ms);

-- The versions of the shop's terms that users have accepted.
CREATE TABLE account_acceptance (
    member  TEXT   NOT NULL, -- the user
    version TEXT   NOT NULL, -- the setting terms_version at that time
    address TEXT   NOT NULL, -- of the user's browser
    at_ms   BIGINT NOT NULL, -- the time of the first acceptance; after a sign-up, of its verification
    PRIMARY KEY (member, version)
)
-- SQLite: WITHOUT ROWID
;

-- The trial credits. Kept for ever, so that an identity gets one credit.
CREATE TABLE account_trial (
    identity   TEXT   NOT NULL PRIMARY KEY, -- SHA-256 of the folded address, hexadecimal
    account    TEXT   NOT NULL,
    usd_nano   BIGINT NOT NULL,
    day        BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE INDEX account_trial_day ON account_trial (day);
CREATE INDEX account_trial_account ON account_trial (account);

-- The recovery codes of second factors. A used code is deleted.
CREATE TABLE account_recovery (
    hash   TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the code, hexadecimal
    member TEXT NOT NULL              -- the user
);
CREATE INDEX account_recovery_member ON account_recovery (member);

-- The sessions of the console. The secret is only in the browser's cookie.
CREATE TABLE account_session (
    hash       TEXT   NOT NULL PRIMARY KEY, -- SHA-256 of the secret, hexadecimal
    id         TEXT   NOT NULL,             -- the name in lists
    kind       TEXT   NOT NULL,             -- user, or operator
    member     TEXT   NOT NULL,             -- the user; '' after a sign-in with an operator's token
    token      TEXT   NOT NULL,             -- SHA-256 of that token, hexadecimal
    address    TEXT   NOT NULL,             -- of the newest request
    agent      TEXT   NOT NULL,             -- User-Agent of the newest request
    created_ms BIGINT NOT NULL,
    seen_ms    BIGINT NOT NULL,             -- the time of the newest request
    confirmed_ms BIGINT NOT NULL DEFAULT 0  -- the time of the newest password, code or sign-in anew at a provider; 0: none
);
CREATE UNIQUE INDEX account_session_id ON account_session (id);
CREATE INDEX account_session_member ON account_session (member, id);
CREATE INDEX account_session_seen ON account_session (seen_ms);

-- The people at identity providers as which users sign in.
CREATE TABLE account_identity (
    issuer     TEXT   NOT NULL, -- of the provider: an issuer's URL, or the address of GitHub
    subject    TEXT   NOT NULL, -- the provider's id of the person
    id         TEXT   NOT NULL, -- the name in forms
    member     TEXT   NOT NULL, -- the user
    email      TEXT   NOT NULL, -- at the provider, for people only; '' if the provider names none
    role       TEXT   NOT NULL, -- of an operator, by the provider's claim at the newest sign-in; '' for none
    created_ms BIGINT NOT NULL,
    used_ms    BIGINT NOT NULL, -- the time of the newest sign-in
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX account_identity_member ON account_identity (member, id);

-- The visits to identity providers that have not ended, and the sign-ups that follow from them.
CREATE TABLE account_flow (
    hash       TEXT   NOT NULL PRIMARY KEY, -- SHA-256 of the browser's cookie, hexadecimal
    state      TEXT   NOT NULL,             -- SHA-256 of the parameter state, hexadecimal
    nonce      TEXT   NOT NULL,
    verifier   TEXT   NOT NULL,             -- of PKCE
    provider   TEXT   NOT NULL,             -- the name in the settings
    purpose    TEXT   NOT NULL,
    kind       TEXT   NOT NULL,             -- of the session: user, or operator
    session    TEXT   NOT NULL,             -- the id of the visitor's session; '' if nobody is signed in
    link       TEXT   NOT NULL,             -- SHA-256 of an invitation's token, hexadecimal; '' without an invitation
    next       TEXT   NOT NULL,             -- the page to show afterwards
    issuer     TEXT   NOT NULL,             -- issuer, subject and email of a person who may sign up; '' before
    subject    TEXT   NOT NULL,
    email      TEXT   NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL
);
CREATE INDEX account_flow_expires ON account_flow (expires_ms);

-- The failed and running attempts to sign in.
CREATE TABLE account_attempt (
    id      TEXT   NOT NULL PRIMARY KEY,
    subject TEXT   NOT NULL, -- SHA-256 of an email or a network, hexadecimal
    at_ms   BIGINT NOT NULL
);
CREATE INDEX account_attempt_at ON account_attempt (at_ms);
CREATE INDEX account_attempt_subject ON account_attempt (subject, at_ms);

-- The top-up codes.
CREATE TABLE account_code (
    hash        TEXT   NOT NULL PRIMARY KEY, -- SHA-256 of the code, hexadecimal
    id          TEXT   NOT NULL,
    batch       TEXT   NOT NULL,             -- codes created together have the same batch
    hint        TEXT   NOT NULL,             -- the end of the code
    usd_nano    BIGINT NOT NULL,
    account     TEXT   NOT NULL,             -- which redeemed the code
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL,             -- 0: never
    redeemed_ms BIGINT NOT NULL,
    voided_ms   BIGINT NOT NULL
);
CREATE UNIQUE INDEX account_code_id ON account_code (id);

------------------------------------------------------------- internal/catalog

-- The current revision, in one row. Applying a catalog locks the row; nodes poll it.
CREATE TABLE catalog_head (
    id       TEXT   NOT NULL PRIMARY KEY, -- always 'current'
    revision BIGINT NOT NULL,             -- 0: no catalog yet
    secrets  BIGINT NOT NULL,             -- rises with each change of catalog_secret
    changes  BIGINT NOT NULL              -- rises with each change of catalog_change
);
INSERT INTO catalog_head (id, revision, secrets, changes) VALUES ('current', 0, 0, 0);

-- Secrets of lines, encrypted with a key of the installation that is not in the database.
CREATE TABLE catalog_secret (
    name       TEXT   NOT NULL PRIMARY KEY,
    sealed     TEXT   NOT NULL, -- MARK:BASE64, AES-256-GCM; the mark identifies the key
    changed_ms BIGINT NOT NULL
);

-- Every applied catalog. Rows never change: requests and jobs are billed by the revision of their
-- admission.
CREATE TABLE catalog_revision (
    revision   BIGINT NOT NULL PRIMARY KEY, -- 1, 2, 3, ...
    document   TEXT   NOT NULL,             -- canonical JSON, credentials as references
    changes    TEXT   NOT NULL,             -- JSON list of sentences
    applied_ms BIGINT NOT NULL
);

-- Changes of the catalog at a time in the future. Ended changes stay as a history.
CREATE TABLE catalog_change (
    id         TEXT   NOT NULL PRIMARY KEY, -- chg_...
    base       BIGINT NOT NULL, -- the revision that the document changes
    document   TEXT   NOT NULL, -- canonical JSON
    changes    TEXT   NOT NULL, -- JSON list of sentences, from the base
    note       TEXT   NOT NULL, -- of the operator
    at_ms      BIGINT NOT NULL,
    state      BIGINT NOT NULL, -- 0 pending, 1 applied, 2 failed, 3 cancelled
    revision   BIGINT NOT NULL, -- the current one after the apply; 0 before
    reason     TEXT   NOT NULL, -- why it failed
    announced  BIGINT NOT NULL, -- 1 if customers see the new prices before
    mailed_to  TEXT   NOT NULL, -- the last account with mails about the new prices
    mailed     BIGINT NOT NULL, -- 1 if no mails remain to be written
    created_ms BIGINT NOT NULL,
    ended_ms   BIGINT NOT NULL  -- 0 while pending
);
CREATE INDEX catalog_change_due ON catalog_change (state, at_ms);

-- The accounts whose users have mails about the new prices of a change that is pending, or is cancelled and
-- whose prices are to be withdrawn by mail.
CREATE TABLE catalog_price_mail (
    change  TEXT NOT NULL,
    account TEXT NOT NULL,
    PRIMARY KEY (change, account)
);

-- The models of all catalogs.
CREATE TABLE catalog_model (
    id         TEXT   NOT NULL PRIMARY KEY,
    created_ms BIGINT NOT NULL -- the time of the first catalog with the model
);

-- The lines that were enabled in any catalog.
CREATE TABLE catalog_line (
    id      TEXT   NOT NULL PRIMARY KEY,
    sandbox BIGINT NOT NULL -- 1 if the line has always been on the sandbox
);

-------------------------------------------------------------- internal/ledger

-- The money of each account. The lock of a row covers all rows of the account in the other tables of
-- the ledger.
CREATE TABLE ledger_account (
    id           TEXT   NOT NULL PRIMARY KEY,
    balance_nano BIGINT NOT NULL,           -- credits minus charges
    floor_nano   BIGINT NOT NULL,           -- the lowest balance allowed: zero or negative
    disabled     BIGINT NOT NULL,
    seq          BIGINT NOT NULL,           -- number of the newest entry or receipt
    low_set      BIGINT NOT NULL DEFAULT 0, -- 1 if a balance below low_nano is announced
    low_nano     BIGINT NOT NULL DEFAULT 0,
    low_armed    BIGINT NOT NULL DEFAULT 0  -- 1 if the next drop below low_nano is announced
);

-- The limits and sums of each key. A limit of -1 means none.
CREATE TABLE ledger_key (
    id                TEXT   NOT NULL PRIMARY KEY,
    account           TEXT   NOT NULL,
    version           BIGINT NOT NULL, -- grows with each change of the key
    disabled          BIGINT NOT NULL,
    closed            BIGINT NOT NULL, -- 1 if the key was deleted
    rpm               BIGINT NOT NULL, -- requests in 60 seconds
    daily_budget_nano BIGINT NOT NULL, -- charges and holds of a day
    total_limit_nano  BIGINT NOT NULL, -- charges and holds of all time
    spent_nano        BIGINT NOT NULL, -- charges of all time
    last_used_ms      BIGINT NOT NULL
);
CREATE INDEX ledger_key_account ON ledger_key (account);
CREATE INDEX ledger_key_budget ON ledger_key (id) WHERE daily_budget_nano > 0;
CREATE INDEX ledger_key_limit ON ledger_key (id) WHERE total_limit_nano > 0;

-- The accounts whose balance was at or above its level at the last comparison. A warning follows when
-- it is below.
CREATE TABLE ledger_armed (
    account TEXT NOT NULL PRIMARY KEY
)
-- SQLite: WITHOUT ROWID
;

-- The last warning about a budget of each key.
CREATE TABLE ledger_budget_warning (
    key        TEXT   NOT NULL,
    daily      BIGINT NOT NULL, -- 1: about the daily budget, 0: about the total limit
    stage      BIGINT NOT NULL, -- 1: much of it is spent, 2: it is used up
    day        BIGINT NOT NULL,
    limit_nano BIGINT NOT NULL, -- the budget then
    PRIMARY KEY (key, daily)
)
-- SQLite: WITHOUT ROWID
;

-- The admitted requests in the rate window of a key.
CREATE TABLE ledger_hit (
    key   TEXT   NOT NULL,
    n     BIGINT NOT NULL, -- 1, 2, 3, ...
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (key, n)
);

-- The sums of a subject on a day, by which limits are decided. A subject is the id of a key with a
-- daily budget, or ACCOUNT/MODEL for an account's free quota of a model. Rows are deleted after
-- the first receipts of their day.
CREATE TABLE ledger_limit (
    subject    TEXT   NOT NULL,
    day        BIGINT NOT NULL,
    spent_nano BIGINT NOT NULL, -- the charges of a key
    used       BIGINT NOT NULL, -- the requests of a free quota
    PRIMARY KEY (subject, day)
);

-- The holds of running requests and jobs. What an account, a key or a day holds is the sum of these
-- rows. If a node dies, the progress of its streams is charged.
CREATE TABLE ledger_hold (
    id                TEXT   NOT NULL PRIMARY KEY, -- of the request
    epoch             TEXT   NOT NULL,             -- of the node; 'job' if the hold survives its node
    account           TEXT   NOT NULL,
    key               TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    endpoint          TEXT   NOT NULL,
    job               TEXT   NOT NULL DEFAULT '',
    day               BIGINT NOT NULL,             -- of the admission
    revision          BIGINT NOT NULL,             -- of the catalog
    price_factor      BIGINT NOT NULL DEFAULT 0,   -- of the account, in millionths
    free              BIGINT NOT NULL,             -- 1 if the request counts against a free quota
    amount_nano       BIGINT NOT NULL,
    created_ms        BIGINT NOT NULL,
    cost_nano         BIGINT NOT NULL,             -- progress: the cost so far
    prompt_tokens     BIGINT NOT NULL,             -- progress
    cached_tokens     BIGINT NOT NULL,             -- progress
    completion_tokens BIGINT NOT NULL,             -- progress
    unit              TEXT   NOT NULL DEFAULT '',  -- progress: of quantity: measure.Unit; '': only tokens are counted
    quantity          BIGINT NOT NULL DEFAULT 0,   -- progress
    line              TEXT   NOT NULL              -- progress: the line of the stream
);
CREATE INDEX ledger_hold_account ON ledger_hold (account);
CREATE INDEX ledger_hold_job ON ledger_hold (account, model, day) WHERE job <> '';

-- Holds removed because they could not be ended. A row stays until the operator removes it.
CREATE TABLE ledger_quarantine (
    id          TEXT   NOT NULL PRIMARY KEY, -- of the request
    epoch       TEXT   NOT NULL,
    account     TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    model       TEXT   NOT NULL,
    endpoint    TEXT   NOT NULL,
    job         TEXT   NOT NULL,
    day         BIGINT NOT NULL,
    amount_nano BIGINT NOT NULL,             -- of the hold
    cost_nano   BIGINT NOT NULL,             -- the progress of its stream
    created_ms  BIGINT NOT NULL,
    cause       TEXT   NOT NULL,             -- why the hold could not be ended
    at_ms       BIGINT NOT NULL
);

-- The request log: the receipts of ended and refused requests, kept for request_retention.
CREATE TABLE ledger_receipt (
    id                TEXT   NOT NULL PRIMARY KEY,
    account           TEXT   NOT NULL,
    seq               BIGINT NOT NULL, -- the request's number in its account
    key               TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    endpoint          TEXT   NOT NULL,
    job               TEXT   NOT NULL DEFAULT '',
    day               BIGINT NOT NULL, -- of the admission
    revision          BIGINT NOT NULL, -- of the catalog
    price_factor      BIGINT NOT NULL DEFAULT 0, -- of the account, in millionths
    free              BIGINT NOT NULL DEFAULT 0, -- 1 if the request counts against a free quota
    outcome           BIGINT NOT NULL, -- 1 billed, 2 failed, 3 the client disconnected, 4 refused
    status            BIGINT NOT NULL, -- HTTP status of the answer
    code              TEXT   NOT NULL, -- error code of the answer
    line              TEXT   NOT NULL, -- which answered
    attempts          TEXT   NOT NULL, -- JSON list
    prompt_tokens     BIGINT NOT NULL,
    cached_tokens     BIGINT NOT NULL, -- part of prompt_tokens
    completion_tokens BIGINT NOT NULL,
    unit              TEXT   NOT NULL DEFAULT '', -- of quantity: measure.Unit; '': only tokens are counted
    quantity          BIGINT NOT NULL DEFAULT 0,
    source            BIGINT NOT NULL DEFAULT 0, -- who counted the tokens: books.UsageSource
    cost_nano         BIGINT NOT NULL, -- the charge
    line_cost_nano    BIGINT NOT NULL DEFAULT -1, -- the provider's price; -1: unknown
    over_nano         BIGINT NOT NULL, -- usage above the hold, not charged
    held_nano         BIGINT NOT NULL, -- the hold
    balance_nano      BIGINT NOT NULL, -- of the account after the charge
    first_byte_ms     BIGINT NOT NULL,
    duration_ms       BIGINT NOT NULL,
    created_ms        BIGINT NOT NULL,
    ended_ms          BIGINT NOT NULL,
    stands_for        BIGINT NOT NULL  -- number of equal refusals that this row represents
)
-- PostgreSQL: PARTITION BY RANGE (id)
;
CREATE INDEX ledger_receipt_log ON ledger_receipt (account, seq, id);
CREATE INDEX ledger_receipt_account_code ON ledger_receipt (account, code, seq, id) WHERE code <> '';
CREATE INDEX ledger_receipt_account_failed ON ledger_receipt (account, status, seq, id) WHERE status >= 400;
CREATE INDEX ledger_receipt_code ON ledger_receipt (code, id) WHERE code <> '';
CREATE INDEX ledger_receipt_failed ON ledger_receipt (status, id) WHERE status >= 400;
CREATE INDEX ledger_receipt_slow ON ledger_receipt (id) WHERE duration_ms >= 10000;
-- PostgreSQL: CREATE TABLE ledger_receipt_rest PARTITION OF ledger_receipt DEFAULT;

-- A partition of ledger_receipt past request_retention, until its charges are kept. The ledger moves
-- whole partitions here and inserts no rows. Always empty on SQLite, which has no partitions.
CREATE TABLE ledger_receipt_old
-- PostgreSQL: (LIKE ledger_receipt INCLUDING DEFAULTS) PARTITION BY RANGE (id)
-- SQLite: AS SELECT * FROM ledger_receipt
;
CREATE UNIQUE INDEX ledger_receipt_old_id ON ledger_receipt_old (id);
CREATE INDEX ledger_receipt_old_log ON ledger_receipt_old (account, seq, id);

-- The last receipt of ledger_receipt_old whose charge is kept, in one row. The receipts up to it, in
-- the order of account, seq and id, count as deleted.
CREATE TABLE ledger_folding (
    name          TEXT   NOT NULL PRIMARY KEY, -- always 'current'
    after_account TEXT   NOT NULL,
    after_seq     BIGINT NOT NULL,
    after_id      TEXT   NOT NULL
);
INSERT INTO ledger_folding (name, after_account, after_seq, after_id) VALUES ('current', '', 0, '');

-- The segments of 128 numbers of an account's log in which a key has receipts.
CREATE TABLE ledger_key_part (
    key  TEXT   NOT NULL,
    part BIGINT NOT NULL,
    PRIMARY KEY (key, part)
);

-- The credits and take-backs. Kept for ever.
CREATE TABLE ledger_entry (
    id           TEXT   NOT NULL PRIMARY KEY,
    account      TEXT   NOT NULL,
    seq          BIGINT NOT NULL, -- the entry's number in its account
    kind         TEXT   NOT NULL, -- credit, take_back, or trial
    amount_nano  BIGINT NOT NULL,
    balance_nano BIGINT NOT NULL, -- of the account after the entry
    note         TEXT   NOT NULL,
    reference    TEXT   NOT NULL DEFAULT '', -- id of the payment
    created_ms   BIGINT NOT NULL,
    paid         BIGINT NOT NULL DEFAULT 0   -- 1: the customer has paid it; the only column that changes
);
CREATE UNIQUE INDEX ledger_entry_reference ON ledger_entry (reference) WHERE reference <> '';
CREATE INDEX ledger_entry_account ON ledger_entry (account, seq);

-- The charges of deleted receipts, one row for each. Kept for ever, therefore small: accounts and
-- models are numbers of ledger_word, ids are packed (id.Pack).
CREATE TABLE ledger_charge (
    account      INTEGER NOT NULL, -- ledger_word
    seq          BIGINT  NOT NULL,
    model        INTEGER NOT NULL, -- ledger_word
    amount_nano  BIGINT  NOT NULL,
    balance_nano BIGINT  NOT NULL, -- of the account after the charge
    ended_ms     BIGINT  NOT NULL,
    request      BYTEA   NOT NULL,
    job          BYTEA   NOT NULL, -- empty for other requests
    PRIMARY KEY (account, seq)
);
CREATE UNIQUE INDEX ledger_charge_request ON ledger_charge (request);

-- The texts of ledger_charge, each once.
CREATE TABLE ledger_word (
    id   INTEGER NOT NULL PRIMARY KEY,
    word TEXT    NOT NULL
);
CREATE UNIQUE INDEX ledger_word_word ON ledger_word (word);

-- The groups that requests are summed in. The id is a digest of the names (books.SeriesID).
CREATE TABLE ledger_series (
    id       BIGINT NOT NULL PRIMARY KEY,
    account  TEXT   NOT NULL,
    key      TEXT   NOT NULL,
    model    TEXT   NOT NULL,
    line     TEXT   NOT NULL,
    endpoint TEXT   NOT NULL,
    folded   BIGINT NOT NULL -- checksum of the deleted receipts
);
CREATE UNIQUE INDEX ledger_series_names ON ledger_series (account, key, model, line, endpoint);
CREATE INDEX ledger_series_key ON ledger_series (key);

-- The sums of a series' requests by the day of their admission and their unit. Kept for ever.
CREATE TABLE ledger_day (
    day               BIGINT NOT NULL,
    series            BIGINT NOT NULL,
    unit              TEXT   NOT NULL DEFAULT '', -- of quantity: measure.Unit; '': only tokens are counted
    requests          BIGINT NOT NULL,
    billed            BIGINT NOT NULL,
    failed            BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    cached_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    quantity          BIGINT NOT NULL,
    cost_nano         BIGINT NOT NULL,
    line_cost_nano    BIGINT NOT NULL,           -- the providers' known cost
    line_costs        BIGINT NOT NULL,           -- number of requests with a known cost
    known_cost_nano   BIGINT NOT NULL DEFAULT 0, -- the charges of those requests
    PRIMARY KEY (day, series, unit)
);
CREATE INDEX ledger_day_series ON ledger_day (series, day);

-- The usage above holds over all time, which is not charged.
CREATE TABLE ledger_over (
    account   TEXT   NOT NULL,
    key       TEXT   NOT NULL,
    line      TEXT   NOT NULL,
    over_nano BIGINT NOT NULL,
    PRIMARY KEY (account, key, line)
);
CREATE INDEX ledger_over_line ON ledger_over (line, over_nano);

-- The checksums of an account's deleted receipts, for the audit.
CREATE TABLE ledger_folded_chain (
    account   TEXT   NOT NULL PRIMARY KEY,
    receipts  BIGINT NOT NULL,           -- number of deleted receipts
    begun     BIGINT NOT NULL,           -- checksum of the balances before them
    ended     BIGINT NOT NULL,           -- checksum of the balances after them
    kept      BIGINT NOT NULL DEFAULT 0, -- number of their rows in ledger_charge
    kept_mark BIGINT NOT NULL DEFAULT 0  -- checksum of those rows
);

-- The first results of requests with an Idempotency-Key, kept for a day.
CREATE TABLE ledger_once (
    scope       TEXT   NOT NULL, -- an account, or the operator API
    key         TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL, -- of the request
    answer      TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX ledger_once_created ON ledger_once (created_ms);

-- The steady time (store.DB.Steady) for the next start, in one row.
CREATE TABLE ledger_clock (
    id        BIGINT NOT NULL PRIMARY KEY,
    steady_ms BIGINT NOT NULL
);

---------------------------------------------------------------- internal/line

-- The operator's decisions about lines.
CREATE TABLE line_control (
    line       TEXT   NOT NULL PRIMARY KEY,
    drained    BIGINT NOT NULL,
    generation BIGINT NOT NULL -- grows with each resume, which clears the line's health on every node
);

-- The faults that nodes have found in lines, for all nodes. Deleting a row means recovery.
CREATE TABLE line_finding (
    line     TEXT   NOT NULL,
    target   TEXT   NOT NULL,           -- digest of address and credentials; nodes with others ignore the row
    model    TEXT   NOT NULL,           -- '': the whole line
    form     TEXT   NOT NULL,
    tools    BIGINT NOT NULL,           -- 1: only requests with tools
    key_mark TEXT   NOT NULL,           -- digest of the credential at fault; '': none
    state    TEXT   NOT NULL,
    cause    TEXT   NOT NULL,
    since_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,           -- the time of the next probe
    wait_ms  BIGINT NOT NULL,           -- between probes
    accounts TEXT   NOT NULL,           -- JSON list of accounts; '' for all
    epoch    TEXT   NOT NULL,           -- of the node that found it
    version  BIGINT NOT NULL,           -- grows with each change
    explicit BIGINT NOT NULL DEFAULT 0, -- 1 if the provider named the time of until_ms
    PRIMARY KEY (line, target, model, form, tools, key_mark)
);

-- The running probes. A row of a dead node, or after until_ms, has no effect.
CREATE TABLE line_probe (
    line     TEXT   NOT NULL,
    target   TEXT   NOT NULL,
    epoch    TEXT   NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (line, target)
);

-- The health of the lines as each node sees it.
CREATE TABLE line_report (
    epoch  TEXT   NOT NULL PRIMARY KEY,
    at_ms  BIGINT NOT NULL,
    states TEXT   NOT NULL -- JSON
);

---------------------------------------------------------------- internal/slot

-- The concurrent calls granted to each node on a line with max_concurrent. The sum of a line never
-- exceeds its max_concurrent. Rows of unknown or dead nodes grant nothing.
CREATE TABLE line_slot (
    line    TEXT   NOT NULL,
    epoch   TEXT   NOT NULL, -- of the node
    granted BIGINT NOT NULL,
    wanted  BIGINT NOT NULL, -- calls the node could not get, so that others return free slots
    PRIMARY KEY (line, epoch)
);

-- The jobs that take one of a line's slots.
CREATE TABLE line_job (
    job  TEXT NOT NULL PRIMARY KEY,
    line TEXT NOT NULL
);
CREATE INDEX line_job_line ON line_job (line);

----------------------------------------------------------------- internal/job

-- The jobs, kept for job_retention after their end. Each index on job and job_run has a condition of
-- its own that its statements repeat, so that PostgreSQL uses it even while it takes the table for
-- empty.
CREATE TABLE job (
    id          TEXT   NOT NULL PRIMARY KEY,
    request     TEXT   NOT NULL, -- id of the submission, of its hold and of its receipt
    account     TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    kind        TEXT   NOT NULL, -- image, or video
    model       TEXT   NOT NULL,
    endpoint    TEXT   NOT NULL,
    revision    BIGINT NOT NULL, -- of the catalog
    plan        TEXT   NOT NULL, -- JSON: parameters and prices
    prompt      TEXT   NOT NULL,
    params      TEXT   NOT NULL, -- JSON object
    materials   TEXT   NOT NULL, -- JSON: reference files and the mask
    callback    TEXT   NOT NULL, -- address
    once_key    TEXT   NOT NULL, -- Idempotency-Key
    fingerprint TEXT   NOT NULL, -- of the submission
    held_nano   BIGINT NOT NULL,
    cost_nano   BIGINT NOT NULL,
    status      TEXT   NOT NULL, -- queued (also while it runs), succeeded, or failed
    code        TEXT   NOT NULL, -- error code of a failed job
    line        TEXT   NOT NULL, -- of an ended job
    trace       TEXT   NOT NULL, -- JSON of an ended job: steps and attempts
    body        TEXT   NOT NULL, -- public JSON of an ended job
    created_ms  BIGINT NOT NULL,
    started_ms  BIGINT NOT NULL,
    ended_ms    BIGINT NOT NULL,
    fetched_ms  BIGINT NOT NULL DEFAULT 0 -- when the end was first handed to the account
);
CREATE INDEX job_account ON job (account, id);
CREATE INDEX job_ended ON job (ended_ms) WHERE ended_ms > 0;
CREATE INDEX job_line ON job (line, id) WHERE line <> '';
CREATE INDEX job_model ON job (model, id) WHERE ended_ms >= 0;
CREATE INDEX job_once ON job (account, once_key) WHERE once_key <> '';
CREATE INDEX job_own ON job (account, status, kind, id) WHERE ended_ms > 0 AND account <> '';
CREATE INDEX job_recent ON job (model, ended_ms) WHERE status = 'succeeded';
CREATE INDEX job_status ON job (status, id) WHERE ended_ms > 0;
CREATE INDEX job_unfetched ON job (account, id) WHERE status = 'succeeded' AND fetched_ms = 0;

-- The progress of each job that has not ended.
CREATE TABLE job_run (
    id           TEXT   NOT NULL PRIMARY KEY, -- of the job
    model        TEXT   NOT NULL,
    account      TEXT   NOT NULL,
    state        BIGINT NOT NULL,             -- 0 queued, 1 sending, 2 rendering, 3 rendered, 4 stored
    turn         BIGINT NOT NULL,             -- the round of the model's queue; an account has one job in each round
    queued_ms    BIGINT NOT NULL,             -- the start of waiting for a line
    wake_ms      BIGINT NOT NULL,             -- a queued job does not start before this time
    started_ms   BIGINT NOT NULL,             -- the time of status processing; 0: the user sees queued
    epoch        TEXT   NOT NULL,             -- of the node that works on the job
    fence        BIGINT NOT NULL,             -- grows with each change of the node
    line         TEXT   NOT NULL,             -- of the submission
    revision     BIGINT NOT NULL,             -- of the line's catalog
    number       BIGINT NOT NULL,             -- of the submission to a provider, from 1
    ticket       TEXT   NOT NULL,             -- the provider's id of the job
    submitted_ms BIGINT NOT NULL,
    results      TEXT   NOT NULL,             -- JSON: addresses of the results at the provider
    files        TEXT   NOT NULL,             -- JSON: the stored results
    trace        TEXT   NOT NULL              -- JSON: steps and attempts so far
);
CREATE INDEX job_run_busy ON job_run (model) WHERE state > 0;
CREATE INDEX job_run_epoch ON job_run (epoch, id) WHERE state > 0 AND epoch <> '';
CREATE INDEX job_run_line ON job_run (line, id) WHERE line <> '';
CREATE INDEX job_run_own ON job_run (account, id) WHERE account <> '';
CREATE INDEX job_run_queue ON job_run (model, turn, id) WHERE state = 0;
CREATE INDEX job_run_started ON job_run (id) WHERE started_ms > 0;
CREATE INDEX job_run_turn ON job_run (model, account, turn) WHERE state = 0 AND turn > 0;
CREATE INDEX job_run_wait ON job_run (queued_ms) WHERE state = 0 AND queued_ms > 0;

-- Results that the media store could not take yet, in parts.
CREATE TABLE job_spool (
    job    TEXT   NOT NULL,
    number BIGINT NOT NULL, -- of the submission
    result BIGINT NOT NULL, -- from 0
    part   BIGINT NOT NULL, -- from 0
    data   BYTEA  NOT NULL,
    PRIMARY KEY (job, number, result, part)
);

-- The last outage of the media store, in one row.
CREATE TABLE job_outage (
    id      BIGINT NOT NULL PRIMARY KEY,
    seen_ms BIGINT NOT NULL
);

--------------------------------------------------------------- internal/media

-- The stored files.
CREATE TABLE media_file (
    name  TEXT   NOT NULL PRIMARY KEY, -- random: whoever knows the address may read the file
    job   TEXT   NOT NULL,
    state TEXT   NOT NULL,
    type  TEXT   NOT NULL,             -- content type; '' while pending
    size  BIGINT NOT NULL,             -- bytes; 0 while pending
    at_ms BIGINT NOT NULL              -- the start of the state; of a gone file: when to delete it
);
CREATE INDEX media_file_due ON media_file (state, at_ms);
CREATE INDEX media_file_job ON media_file (job);

------------------------------------------------------------ internal/response

-- The size of each account's stored responses. The lock of a row covers all responses of the account.
CREATE TABLE response_account (
    account TEXT   NOT NULL PRIMARY KEY,
    bytes   BIGINT NOT NULL
);

-- The stored responses. The responses that continue a first one, directly or not, are its chain. A
-- row has the items of its own turn, and the rows before it have the others (ADR 21).
CREATE TABLE response (
    id         TEXT   NOT NULL PRIMARY KEY, -- resp_ and the end of the request's id
    account    TEXT   NOT NULL,
    chain      TEXT   NOT NULL,             -- the first response
    previous   TEXT   NOT NULL,             -- the continued response; '' in the first one
    created_ms BIGINT NOT NULL,
    used_ms    BIGINT NOT NULL,             -- of a first response: the creation of its chain's newest one; else 0
    deleted    BIGINT NOT NULL,             -- 1 if only responses that continue this one need it
    bytes      BIGINT NOT NULL,             -- in response_account
    context    BIGINT NOT NULL,             -- bytes of the items of this turn and of all before it
    input      BYTEA  NOT NULL,             -- JSON: the request's own items, without brackets
    output     BYTEA  NOT NULL,             -- JSON: the answer's items, without brackets
    object     BYTEA  NOT NULL              -- JSON: the answer without its items; empty if deleted
);
CREATE INDEX response_chain ON response (chain, previous);
CREATE INDEX response_own ON response (account, used_ms) WHERE used_ms > 0;
CREATE INDEX response_used ON response (used_ms) WHERE used_ms > 0;

-------------------------------------------------------- internal/availability

-- The availability of each model on each day, for 90 days. A node adds its minutes once a minute.
CREATE TABLE availability_day (
    day       BIGINT NOT NULL,
    model     TEXT   NOT NULL,
    minutes   BIGINT NOT NULL, -- with requests, over all nodes
    up        BIGINT NOT NULL, -- of these, the minutes in which at most half of the requests failed
    newest_ms BIGINT NOT NULL, -- the end of the newest minute
    newest_up BIGINT NOT NULL, -- 1 if it is in up
    PRIMARY KEY (day, model)
)
-- SQLite: WITHOUT ROWID
;

-------------------------------------------------------- internal/announcement

-- The operators' announcements to customers, as plain text.
CREATE TABLE announcement (
    id         TEXT   NOT NULL PRIMARY KEY,
    title      TEXT   NOT NULL,
    text       TEXT   NOT NULL,
    level      TEXT   NOT NULL, -- info or warning
    from_ms    BIGINT NOT NULL,
    until_ms   BIGINT NOT NULL, -- 0 for no end
    created_ms BIGINT NOT NULL
);

-- The announcements that a user does not want to see any more.
CREATE TABLE announcement_dismissal (
    member       TEXT NOT NULL, -- the user
    announcement TEXT NOT NULL,
    PRIMARY KEY (member, announcement)
)
-- SQLite: WITHOUT ROWID
;

------------------------------------------------------------- internal/webhook

-- An account's webhook. The secret also signs callbacks of single requests, so the row may have no
-- address.
CREATE TABLE webhook_endpoint (
    account  TEXT NOT NULL PRIMARY KEY,
    secret   TEXT NOT NULL, -- whsec_ and base64
    url      TEXT NOT NULL, -- '': no webhook
    receiver TEXT NOT NULL, -- of url
    events   TEXT NOT NULL  -- the chosen types, each between spaces
);

-- The log of deliveries. Only state changes.
CREATE TABLE webhook_delivery (
    id         TEXT   NOT NULL PRIMARY KEY,
    account    TEXT   NOT NULL,
    event      TEXT   NOT NULL, -- id of the event, the header webhook-id
    type       TEXT   NOT NULL,
    url        TEXT   NOT NULL,
    receiver   TEXT   NOT NULL, -- account, scheme, host and port
    body       TEXT   NOT NULL,
    state      BIGINT NOT NULL, -- 0 pending, 1 delivered, 2 failed
    created_ms BIGINT NOT NULL
);
CREATE INDEX webhook_delivery_account ON webhook_delivery (account, id);
CREATE INDEX webhook_delivery_account_failed ON webhook_delivery (account, id) WHERE state = 2;
CREATE INDEX webhook_delivery_created ON webhook_delivery (created_ms);
CREATE INDEX webhook_delivery_event ON webhook_delivery (event);
CREATE INDEX webhook_delivery_failed ON webhook_delivery (id) WHERE state = 2;

-- The attempts of deliveries.
CREATE TABLE webhook_attempt (
    delivery TEXT   NOT NULL,
    id       TEXT   NOT NULL, -- of the attempt's lease
    at_ms    BIGINT NOT NULL,
    status   BIGINT NOT NULL, -- 0: no answer
    took_ms  BIGINT NOT NULL,
    error    TEXT   NOT NULL,
    PRIMARY KEY (delivery, id)
);

-- The pending deliveries with attempts left.
CREATE TABLE webhook_queue (
    delivery TEXT   NOT NULL PRIMARY KEY,
    account  TEXT   NOT NULL,
    receiver TEXT   NOT NULL,
    due_ms   BIGINT NOT NULL,
    tries    BIGINT NOT NULL, -- attempts so far
    fresh    BIGINT NOT NULL, -- 1 if webhook_receiver does not include the delivery yet
    lease    TEXT   NOT NULL, -- of the running attempt
    epoch    TEXT   NOT NULL, -- of its node
    until_ms BIGINT NOT NULL  -- the end of the lease
);
CREATE INDEX webhook_queue_due ON webhook_queue (receiver, due_ms, delivery) WHERE lease = '';
CREATE INDEX webhook_queue_fresh ON webhook_queue (delivery) WHERE fresh = 1;
CREATE INDEX webhook_queue_running ON webhook_queue (receiver) WHERE lease <> '';

-- The receivers with rows in webhook_queue, so that a receiver with a long queue is skipped in one
-- step.
CREATE TABLE webhook_receiver (
    id       TEXT   NOT NULL PRIMARY KEY,
    account  TEXT   NOT NULL,
    failing  BIGINT NOT NULL, -- 1 if the last attempt failed
    ready_ms BIGINT NOT NULL  -- the earliest time of the next attempt
);
CREATE INDEX webhook_receiver_ready ON webhook_receiver (failing, ready_ms, id);

-- The receivers whose failure was reported since their last success.
CREATE TABLE webhook_report (
    receiver TEXT NOT NULL PRIMARY KEY
);

---------------------------------------------------------------- internal/mail

-- The outbox: the mails that wait, and those of the last 30 days.
CREATE TABLE mail_outbox (
    id         TEXT   NOT NULL PRIMARY KEY, -- the Message-ID is made of it
    cause      TEXT   NOT NULL, -- kind, subject and event: what the mail reports
    kind       TEXT   NOT NULL,
    account    TEXT   NOT NULL, -- of the reader; '' for an operator
    recipient  TEXT   NOT NULL, -- an address
    subject    TEXT   NOT NULL,
    body_text  TEXT   NOT NULL, -- '' after the end of a mail with a link that works once
    body_html  TEXT   NOT NULL,
    once       BIGINT NOT NULL, -- 1 if the text has a link that works once
    state      BIGINT NOT NULL, -- 0 waiting, 1 failed and repeated, 2 sent, 3 given up
    attempts   BIGINT NOT NULL,
    resends    BIGINT NOT NULL, -- by operators
    error      TEXT   NOT NULL, -- of the last attempt
    created_ms BIGINT NOT NULL,
    due_ms     BIGINT NOT NULL, -- of the next attempt
    ended_ms   BIGINT NOT NULL, -- when it was sent or given up
    expires_ms BIGINT NOT NULL, -- of the link that works once; 0 without one
    lease      TEXT   NOT NULL, -- of the running attempt
    epoch      TEXT   NOT NULL, -- of its node; '' for a command
    until_ms   BIGINT NOT NULL  -- the end of the lease
);
CREATE UNIQUE INDEX mail_outbox_cause ON mail_outbox (cause);
CREATE INDEX mail_outbox_due ON mail_outbox (due_ms, id) WHERE state < 2;
CREATE INDEX mail_outbox_lease ON mail_outbox (lease) WHERE lease <> '';
CREATE INDEX mail_outbox_created ON mail_outbox (created_ms);

-------------------------------------------------------------- internal/topup

-- The top-ups: payments of customers at a payment provider, and the credit that they buy. Kept for ever.
-- Amounts of payments (minor) are in the smallest unit of their currency.
CREATE TABLE topup (
    id               TEXT   NOT NULL PRIMARY KEY, -- also names the payment at the provider
    account          TEXT   NOT NULL,
    provider         TEXT   NOT NULL, -- stripe, or epay
    method           TEXT   NOT NULL, -- the way to pay, if chosen before the provider's page
    live             BIGINT NOT NULL, -- 0: the provider was in test mode
    state            TEXT   NOT NULL, -- created, pending, paid, partly_refunded, refunded, disputed, failed, or expired
    currency         TEXT   NOT NULL, -- ISO 4217, lower case
    decimals         BIGINT NOT NULL, -- of the currency's smallest unit
    minor            BIGINT NOT NULL, -- to pay, without tax
    rate_nano        BIGINT NOT NULL, -- nano-dollars of one unit of the currency
    bonus_millionths BIGINT NOT NULL,
    credit_nano      BIGINT NOT NULL, -- with the bonus
    session          TEXT   NOT NULL, -- the provider's id of its page for the payment
    address          TEXT   NOT NULL, -- of that page, while it can be paid
    payment          TEXT   NOT NULL, -- the provider's id of the payment; '' until paid
    total_minor      BIGINT NOT NULL, -- paid, with tax
    created_ms       BIGINT NOT NULL,
    expires_ms       BIGINT NOT NULL,
    paid_ms          BIGINT NOT NULL,
    version          BIGINT NOT NULL, -- number of changes of the row
    check_ms         BIGINT NOT NULL, -- the next question to the provider; 0: never
    saves_card       BIGINT NOT NULL, -- 1: the customer wants the card saved for automatic top-ups
    customer         TEXT   NOT NULL, -- the provider's id of the customer with the saved card, or ''
    card             TEXT   NOT NULL  -- the provider's id of the saved card of an automatic top-up; '' for other top-ups
);
CREATE INDEX topup_account ON topup (account, id);
CREATE INDEX topup_state ON topup (state, id);
CREATE UNIQUE INDEX topup_payment ON topup (provider, payment) WHERE payment <> '';
CREATE INDEX topup_check ON topup (provider, live, check_ms) WHERE check_ms > 0;

-- The saved cards of accounts, with the customers' settings for automatic top-ups.
CREATE TABLE topup_automatic (
    account       TEXT   NOT NULL PRIMARY KEY,
    provider      TEXT   NOT NULL,
    live          BIGINT NOT NULL,
    customer      TEXT   NOT NULL, -- the provider's id of the customer
    card          TEXT   NOT NULL, -- the provider's id of the card
    brand         TEXT   NOT NULL,
    last_digits   TEXT   NOT NULL,
    switched_on   BIGINT NOT NULL,
    level_nano    BIGINT NOT NULL, -- a balance below it begins a top-up
    currency      TEXT   NOT NULL, -- of minor and monthly_minor
    minor         BIGINT NOT NULL, -- the amount of a top-up
    monthly_minor BIGINT NOT NULL, -- the largest sum of a calendar month (UTC)
    pause         TEXT   NOT NULL  -- why no top-up begins, or ''
);

-- The refunds and disputes of paid top-ups. Kept for ever.
CREATE TABLE topup_reversal (
    id         TEXT   NOT NULL PRIMARY KEY,
    topup      TEXT   NOT NULL,
    account    TEXT   NOT NULL,
    kind       TEXT   NOT NULL, -- refund, or dispute
    object     TEXT   NOT NULL, -- the provider's id; '' if not known
    minor      BIGINT NOT NULL,
    active     BIGINT NOT NULL, -- 1: its credit is taken back
    moves      BIGINT NOT NULL, -- movements of credit that it has caused
    taken_nano BIGINT NOT NULL, -- taken and not given back
    requested  BIGINT NOT NULL, -- not confirmed by the provider yet: 1 before, 2 after it was asked
    reason     TEXT   NOT NULL, -- by the operator
    created_ms BIGINT NOT NULL
);
CREATE INDEX topup_reversal_topup ON topup_reversal (topup, created_ms);
CREATE INDEX topup_reversal_account ON topup_reversal (account);
CREATE UNIQUE INDEX topup_reversal_object ON topup_reversal (topup, kind, object) WHERE object <> '';

-- What a person has to look at. A repetition counts on the same row.
CREATE TABLE topup_problem (
    id        TEXT   NOT NULL PRIMARY KEY,
    provider  TEXT   NOT NULL,
    kind      TEXT   NOT NULL,
    object    TEXT   NOT NULL, -- the provider's id
    topup     TEXT   NOT NULL,
    account   TEXT   NOT NULL, -- '' if no top-up is known
    detail    TEXT   NOT NULL,
    seen      BIGINT NOT NULL,
    first_ms  BIGINT NOT NULL,
    last_ms   BIGINT NOT NULL,
    closed_ms BIGINT NOT NULL,
    due_ms    BIGINT NOT NULL, -- when the provider needs an answer to a dispute; 0 if it needs none
    mailed    BIGINT NOT NULL  -- 1 after the mail to the operators
);
CREATE UNIQUE INDEX topup_problem_object ON topup_problem (provider, kind, object);
CREATE INDEX topup_problem_open ON topup_problem (last_ms) WHERE closed_ms = 0;

-------------------------------------------------------------- internal/invoice

-- The customers' names and addresses for their documents.
CREATE TABLE invoice_customer (
    account TEXT NOT NULL PRIMARY KEY,
    name    TEXT NOT NULL,
    address TEXT NOT NULL, -- lines
    country TEXT NOT NULL, -- ISO 3166, two letters
    tax_id  TEXT NOT NULL
);

-- The newest number of each series. The lock of a row is the right to issue the next number.
CREATE TABLE invoice_series (
    name      TEXT   NOT NULL PRIMARY KEY, -- begins the numbers, such as INVOICE
    year      BIGINT NOT NULL,
    number    BIGINT NOT NULL,             -- in the year
    issued_ms BIGINT NOT NULL
);

-- The invoices and credit notes. Rows never change. Kept for ever. The amounts of credit notes are negative.
CREATE TABLE invoice_document (
    id          TEXT   NOT NULL PRIMARY KEY,
    series      TEXT   NOT NULL,
    year        BIGINT NOT NULL,
    number      BIGINT NOT NULL, -- in the series and year, without gaps
    name        TEXT   NOT NULL, -- series, year and number
    kind        TEXT   NOT NULL, -- invoice, or credit_note
    account     TEXT   NOT NULL,
    topup       TEXT   NOT NULL, -- '' for a credit by an operator
    reversal    TEXT   NOT NULL, -- the refund or dispute; '' for the payment
    cause       TEXT   NOT NULL, -- topup.PaymentSettlement, or the id of the credit by an operator
    corrects    TEXT   NOT NULL, -- name of the corrected document, or ''
    live        BIGINT NOT NULL, -- 0: the provider was in test mode
    currency    TEXT   NOT NULL, -- ISO 4217, lower case
    decimals    BIGINT NOT NULL, -- of the currency's smallest unit
    net_minor   BIGINT NOT NULL,
    tax_minor   BIGINT NOT NULL,
    total_minor BIGINT NOT NULL,
    rate_nano   BIGINT NOT NULL, -- nano-dollars of one unit of the currency
    credit_nano BIGINT NOT NULL,
    issued_ms   BIGINT NOT NULL,
    content     TEXT   NOT NULL, -- JSON: seller, customer and texts
    digest      TEXT   NOT NULL  -- SHA-256 of the other columns, hexadecimal
);
CREATE UNIQUE INDEX invoice_document_number ON invoice_document (series, year, number);
CREATE UNIQUE INDEX invoice_document_name ON invoice_document (name);
CREATE UNIQUE INDEX invoice_document_cause ON invoice_document (cause);
CREATE INDEX invoice_document_account ON invoice_document (account, id);
CREATE INDEX invoice_document_topup ON invoice_document (topup, id);

------------------------------------------------------------ internal/operator

-- The log of the operators' actions.
CREATE TABLE operator_log (
    id          TEXT   NOT NULL PRIMARY KEY,
    at_ms       BIGINT NOT NULL,
    way         TEXT   NOT NULL, -- console, token, shell, or sign_up
    name        TEXT   NOT NULL, -- the operator's email, if known
    address     TEXT   NOT NULL, -- network address; '' in the shell
    act         TEXT   NOT NULL,
    object      TEXT   NOT NULL, -- id of the changed object
    account     TEXT   NOT NULL, -- of the object
    before_text TEXT   NOT NULL, -- JSON object: the changed fields before
    after_text  TEXT   NOT NULL  -- JSON object: the changed fields after
);
CREATE INDEX operator_log_account ON operator_log (account, id);
CREATE INDEX operator_log_act ON operator_log (act, id);
CREATE INDEX operator_log_object ON operator_log (object, id);

-- The audits started by operators.
CREATE TABLE operator_audit (
    id       TEXT   NOT NULL PRIMARY KEY,
    epoch    TEXT   NOT NULL, -- of the node that runs the audit
    began_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL,
    name     TEXT   NOT NULL, -- who started the audit
    fault    TEXT   NOT NULL, -- why there are no findings
    findings TEXT   NOT NULL  -- JSON; while the audit runs, with its progress
);

------------------------------------------------------------ internal/importer

-- The entries of other databases that were imported.
CREATE TABLE importer_item (
    source     TEXT   NOT NULL, -- the operator's name of the other database
    kind       TEXT   NOT NULL, -- account, or key
    source_id  TEXT   NOT NULL, -- the entry's id there
    mark       TEXT   NOT NULL, -- a name or hash that shows that it is still the same entry
    object     TEXT   NOT NULL, -- the id here
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (source, kind, source_id)
);
