-- +goose Up
CREATE TABLE node (
    epoch      TEXT   NOT NULL PRIMARY KEY,
    batch      BIGINT NOT NULL,
    beat       BIGINT NOT NULL,
    dead       BIGINT NOT NULL,
    started_ms BIGINT NOT NULL
);
