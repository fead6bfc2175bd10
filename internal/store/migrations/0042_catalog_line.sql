-- +goose Up
-- The lines that were ever enabled in a catalog. sandbox is 1 if every one of these catalogs
-- gave the line the provider sandbox. Rows of lines that a former version applied are
-- written by the next apply.
CREATE TABLE catalog_line (
    id      TEXT   NOT NULL PRIMARY KEY,
    sandbox BIGINT NOT NULL
);
