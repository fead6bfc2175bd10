-- +goose Up
-- What was imported from other programs: an entry of theirs and what it became, so
-- that a repetition makes nothing twice.
CREATE TABLE importer_item (
    source     TEXT   NOT NULL, -- the operator's name for the other database
    kind       TEXT   NOT NULL, -- account or key
    source_id  TEXT   NOT NULL, -- what identifies the entry there
    mark       TEXT   NOT NULL, -- what shows that it is the same entry: a name or a hash
    object     TEXT   NOT NULL, -- what it became
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (source, kind, source_id)
);
