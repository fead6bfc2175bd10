-- +goose Up

-- The one row that says which revision is current. Applies lock it, so two of
-- them at once make two revisions; nodes poll it.
CREATE TABLE catalog_head (
    id       TEXT   NOT NULL PRIMARY KEY, -- always 'current'
    revision BIGINT NOT NULL              -- 0: no catalog yet
);

INSERT INTO catalog_head (id, revision) VALUES ('current', 0);

-- Every catalog that was ever applied. Rows are written once and never change:
-- requests and jobs are billed by the revision that they began with.
CREATE TABLE catalog_revision (
    revision   BIGINT NOT NULL PRIMARY KEY, -- 1, 2, 3 ...
    document   TEXT   NOT NULL,             -- canonical JSON, credentials as ${NAME}
    changes    TEXT   NOT NULL,             -- JSON list of lines for people
    applied_ms BIGINT NOT NULL
);
