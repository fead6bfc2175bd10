-- +goose Up
-- When a model was first in a catalog. A row is never changed; those of revisions
-- that a former version applied are written by the next apply.
CREATE TABLE catalog_model (
    id         TEXT   NOT NULL PRIMARY KEY,
    created_ms BIGINT NOT NULL
);
