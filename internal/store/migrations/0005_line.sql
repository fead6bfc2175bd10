-- +goose Up
-- How many calls at a time each living node may have on a capped line. The sum
-- over a line never exceeds its max_concurrent; rows of nodes that are no
-- longer known, or dead, grant nothing.
CREATE TABLE line_slot (
    line    TEXT   NOT NULL,
    epoch   TEXT   NOT NULL, -- of the node
    granted BIGINT NOT NULL,
    wanted  BIGINT NOT NULL, -- what the node asked for in vain, so that others give back what they do not use
    PRIMARY KEY (line, epoch)
);

-- What the operator decided about a line, on all nodes. No row: nothing.
CREATE TABLE line_control (
    line       TEXT   NOT NULL PRIMARY KEY,
    drained    BIGINT NOT NULL,
    generation BIGINT NOT NULL -- grows with each resume, which clears the line's health on every node
);

-- How each node saw its lines last.
CREATE TABLE line_report (
    epoch  TEXT   NOT NULL PRIMARY KEY,
    at_ms  BIGINT NOT NULL,
    states TEXT   NOT NULL -- JSON
);
