-- +goose Up
-- The log of what has failed, of all accounts and of one: little is in these.
CREATE INDEX webhook_delivery_failed ON webhook_delivery (id) WHERE state = 2;
CREATE INDEX webhook_delivery_account_failed ON webhook_delivery (account, id) WHERE state = 2;
