-- +goose Up
-- What nodes have found out about lines, for all nodes. A row is there as long as
-- something is held against the line or a part of it; a deleted row brings it back.
CREATE TABLE line_finding (
    line     TEXT   NOT NULL,
    target   TEXT   NOT NULL, -- digest of address and credentials: nodes that have others do not care
    model    TEXT   NOT NULL, -- empty: the line as a whole
    form     TEXT   NOT NULL,
    tools    BIGINT NOT NULL,
    key_mark TEXT   NOT NULL, -- of one of the line's keys; empty: it is about no key
    state    TEXT   NOT NULL,
    cause    TEXT   NOT NULL,
    since_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    wait_ms  BIGINT NOT NULL, -- between probes
    accounts TEXT   NOT NULL, -- JSON: for which accounts it holds; empty: for all
    epoch    TEXT   NOT NULL, -- of the node that found it
    version  BIGINT NOT NULL, -- grows with each change
    PRIMARY KEY (line, target, model, form, tools, key_mark)
);

-- Which node probes a line now. A row of a dead node, or one whose time is over, is
-- void.
CREATE TABLE line_probe (
    line     TEXT   NOT NULL,
    target   TEXT   NOT NULL,
    epoch    TEXT   NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (line, target)
);
