CREATE TABLE public.channels (
    id bigint NOT NULL,
    type bigint DEFAULT 0,
    key text,
    status bigint DEFAULT 1,
    name text,
    weight bigint DEFAULT 0,
    created_time bigint,
    test_time bigint,
    response_time bigint,
    base_url text DEFAULT ''::text,
    other text,
    balance numeric,
    balance_updated_time bigint,
    models text,
    "group" character varying(32) DEFAULT 'default'::character varying,
    used_quota bigint DEFAULT 0,
    model_mapping character varying(1024) DEFAULT ''::character varying,
    priority bigint DEFAULT 0,
    config text,
    system_prompt text
);
CREATE SEQUENCE public.channels_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.channels_id_seq OWNED BY public.channels.id;
CREATE TABLE public.options (
    key text NOT NULL,
    value text
);
CREATE TABLE public.redemptions (
    id bigint NOT NULL,
    user_id bigint,
    key character(32),
    status bigint DEFAULT 1,
    name text,
    quota bigint DEFAULT 100,
    created_time bigint,
    redeemed_time bigint
);
CREATE SEQUENCE public.redemptions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.redemptions_id_seq OWNED BY public.redemptions.id;
CREATE TABLE public.tokens (
    id bigint NOT NULL,
    user_id bigint,
    key character(48),
    status bigint DEFAULT 1,
    name text,
    created_time bigint,
    accessed_time bigint,
    expired_time bigint DEFAULT '-1'::integer,
    remain_quota bigint DEFAULT 0,
    unlimited_quota boolean DEFAULT false,
    used_quota bigint DEFAULT 0,
    models text,
    subnet text DEFAULT ''::text
);
CREATE SEQUENCE public.tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tokens_id_seq OWNED BY public.tokens.id;
CREATE TABLE public.users (
    id bigint NOT NULL,
    username text,
    password text NOT NULL,
    display_name text,
    role bigint DEFAULT 1,
    status bigint DEFAULT 1,
    email text,
    github_id text,
    wechat_id text,
    lark_id text,
    oidc_id text,
    access_token character(32),
    quota bigint DEFAULT 0,
    used_quota bigint DEFAULT 0,
    request_count bigint DEFAULT 0,
    "group" character varying(32) DEFAULT 'default'::character varying,
    aff_code character varying(32),
    inviter_id bigint
);
CREATE SEQUENCE public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;
ALTER TABLE ONLY public.channels ALTER COLUMN id SET DEFAULT nextval('public.channels_id_seq'::regclass);
ALTER TABLE ONLY public.redemptions ALTER COLUMN id SET DEFAULT nextval('public.redemptions_id_seq'::regclass);
ALTER TABLE ONLY public.tokens ALTER COLUMN id SET DEFAULT nextval('public.tokens_id_seq'::regclass);
ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);
INSERT INTO public.channels VALUES (2, 1, 'sk-upstream-backup-91aa', 1, 'OpenAI backup', 0, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'gpt-4o,smart', 'default', 0, '{"smart": "gpt-4o-2024-11-20"}', 0, '', NULL);
INSERT INTO public.channels VALUES (3, 14, 'sk-ant-upstream-3c', 1, 'Anthropic', 0, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'claude-3-5-sonnet', 'vip', 0, '', 0, '', NULL);
INSERT INTO public.channels VALUES (4, 36, 'sk-deepseek-5e', 1, '深度求索', 0, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'deepseek-chat', 'default,vip', 0, '', 5, '', NULL);
INSERT INTO public.channels VALUES (5, 15, 'abc|def', 1, 'Baidu', 0, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'ERNIE-4.0-8K', 'default,vip', 0, '', 0, '', NULL);
INSERT INTO public.channels VALUES (6, 1, 'sk-upstream-images', 1, 'images', 0, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'dall-e-3', 'default,vip', 0, '', 0, '', NULL);
INSERT INTO public.channels VALUES (7, 1, 'sk-upstream-off', 2, 'switched off', 0, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'o1', 'default,vip', 0, '', 0, '', NULL);
INSERT INTO public.channels VALUES (1, 1, 'sk-upstream-main-7d2f', 1, 'OpenAI main', 3, 1795495283, 0, 0, 'http://upstream.example', '', 0, 0, 'gpt-4o,gpt-4o-mini,odd model,text-embedding-3-small', 'default,vip', 94, '', 10, '', NULL);
INSERT INTO public.options VALUES ('CompletionRatio', '{"deepseek-chat": 4.074074074, "gpt-4o": 4}');
INSERT INTO public.options VALUES ('GroupRatio', '{"default": 1, "vip": 0.8, "svip": 0.5}');
INSERT INTO public.options VALUES ('ModelRatio', '{"gpt-4o": 1.25, "gpt-4o-mini": 0.075, "claude-3-5-sonnet": 1.5, "deepseek-chat": 0.135, "o1": 7.5, "text-embedding-3-small": 0.01, "dall-e-3": 20, "odd model": 1, "smart": 1.25}');
INSERT INTO public.redemptions VALUES (1, 1, '43b0e524e17046e494ab919490fc5d81', 1, 'gift', 500000, 1795495283, 0);
INSERT INTO public.redemptions VALUES (2, 1, '79d2890305934982948c83c9d9665955', 1, 'gift', 500000, 1795495283, 0);
INSERT INTO public.tokens VALUES (1, 2, 'esuBsMRFHaaC4mch2bD28010662b4116Aa3e3bE92001C6Da', 1, 'default', 1795495283, 1795495283, -1, -1, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (2, 3, 'd3h48MK69bXgJHmQ03E70a77368e487fBfC976739cAf2a04', 1, 'default', 1795495283, 1795495283, -1, -1, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (3, 4, 'lQ87Rir6zcaUBkgp266d015b764a429eA6Fd09A253Ff6009', 1, 'default', 1795495283, 1795495283, -1, -1, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (4, 5, '7wreqFJVpRjRvWeoE7B99640471944Cc9802D2B8DaCd8940', 1, 'default', 1795495283, 1795495283, -1, -1, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (5, 6, '51lPgcYC97bdjVa05d09Fa1bCd064b8eB04cFf1cCc316e54', 1, 'default', 1795495283, 1795495283, -1, -1, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (6, 2, 'FWnOGUmqSuWOMrvoD903D09e73344620AeB225877fA5B01a', 1, 'laptop', 1795495283, 1795495283, -1, 0, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (8, 2, '8B6ffLla57kRvO4kC4A9F680Fb324954A50d0a9aEeC2BfE9', 1, 'old', 1795495283, 1795495283, 1795495285, 0, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (9, 2, 'TZx4D3rLIS2YDtLb0c489e8450F544A19dFc1057EbE33f04', 1, 'later', 1795495283, 1795495283, 1893456000, 0, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (10, 3, 'X9HW5nnJvWxxGOYk6a61832f3e5348Bf85E1Cc3c25Df3f60', 1, 'office', 1795495283, 1795495283, -1, 0, true, 0, NULL, '192.0.2.0/24');
INSERT INTO public.tokens VALUES (11, 3, 'P641TktxHrSMj3yE3a98F0718dA947Bf9c07D078602aF063', 1, 'spent', 1795495283, 1795495283, -1, 0, false, 0, NULL, '');
INSERT INTO public.tokens VALUES (13, 4, 'KiUj2ZrQTAUc5FgQB530E5BfB1C34eFa844423Fc3762B4F3', 1, 'carols', 1795495283, 1795495283, -1, 0, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (12, 3, '5aU3Ej8QqgwCeO1i7a5cDd0bBe81464680461bF76c2520B2', 2, 'paused', 1795495283, 1795495283, -1, 0, true, 0, NULL, '');
INSERT INTO public.tokens VALUES (7, 2, 'lUS3NSgWXcLT26Hl4eB6709581B54662A1E47323A32476Ef', 1, 'ci', 1795495283, 1795495283, -1, 999953, false, 47, 'gpt-4o,gpt-4o-mini', '');
INSERT INTO public.users VALUES (1, 'root', '$2a$10$kV8bkQjEHIwFsPOLU3yAIeWpOsRLEH55ooNapNV/.3g3TQ0Wr3Gj2', 'Root User', 100, 1, '', '', '', '', '', '6913d1f1ad8045059064b7927d9bc600', 500000000000000, 0, 0, 'default', '', 0);
INSERT INTO public.users VALUES (3, 'bob', '$2a$10$MF5/r6kqwb5YLMgC9H3b.uoKyEzQgAXd3ZtBDDbjvnZRAi2BlW1QO', 'Bob', 1, 1, '', '', '', '', '', 'ca830e1f0a0b46c98d1e1c18dd94d605', 12345678, 0, 0, 'vip', 'fTqw', 0);
INSERT INTO public.users VALUES (5, 'dave', '$2a$10$KG8QrZdOmzZBmUm2GxW19.YOSFm3tK7jNsoO7VIWCfyUaKi1ILBjq', 'Dave', 1, 1, '', '', '', '', '', '02b2e7664db34c16976d7b16da835cd9', 0, 0, 0, 'svip', 'uK9i', 0);
INSERT INTO public.users VALUES (4, 'carol', '$2a$10$sFXjiTnTJ1uAzxkmB/vfe.rP06a/NZj7xRidClSjjdVd/XW5lSlWq', 'Carol', 1, 2, 'carol@example.com', '', '', '', '', 'dea51d03130d44b5bfa6dfceecc7c565', 250000, 0, 0, 'default', 'kZ5R', 0);
INSERT INTO public.users VALUES (6, 'deleted_957270535fc841cc876faa9747fff222', '$2a$10$F83H9k/eUmPEcEE9u6YzXu./qHWODSknJ0OFi4b8CEOEi4YL884Ii', 'Erin', 1, 3, '', '', '', '', '', 'f0d2289746284cdfbd2d5462d5b7e62f', 0, 0, 0, 'default', 'TrEX', 0);
INSERT INTO public.users VALUES (2, 'alice', '$2a$10$V7OZw/g6gH2ZKnb6vSk4ZOdzVj10sPOwrvJ9tUmfJwuv19HDuNYzu', 'Alice', 1, 1, 'alice@example.com', '', '', '', '', 'cf04dd0509f04e07bffcb8bfe5ecec85', 4999909, 94, 2, 'default', 'KW9g', 0);
