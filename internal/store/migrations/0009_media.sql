-- +goose Up
-- One row a file, written before the file and deleted after it. A result goes
-- pending, stored, public, gone; a reference kept, adopted, gone. Only public
-- and adopted files can be fetched over links.
CREATE TABLE media_file (
    name  TEXT   NOT NULL PRIMARY KEY, -- random: the link is the permission
    job   TEXT   NOT NULL,
    state TEXT   NOT NULL,
    type  TEXT   NOT NULL, -- content type, empty while pending
    size  BIGINT NOT NULL, -- bytes, 0 while pending
    at_ms BIGINT NOT NULL  -- since when it is in this state; of a gone one: when to delete the file
);
CREATE INDEX media_file_due ON media_file (state, at_ms);
CREATE INDEX media_file_job ON media_file (job);
