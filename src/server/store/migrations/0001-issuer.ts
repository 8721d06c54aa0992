/** What the issuer keeps: its payloads, users, clients, keys, guess counters and the audit. Times are epoch milliseconds. */
import type { Migration } from '../migration.js';

export const issuerTables: Migration = {
  name: '0001-issuer',
  statements: (engine) => [...TABLES, ...AUDIT[engine], ...AUDIT_INDEXES],
};

const TABLES = [
  `CREATE TABLE oidc_payloads (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    payload TEXT NOT NULL,
    grant_id TEXT,
    user_code TEXT,
    uid TEXT,
    created_at BIGINT NOT NULL,
    consumed_at BIGINT,
    expires_at BIGINT,
    last_poll_at BIGINT,
    poll_gap_ms BIGINT,
    PRIMARY KEY (kind, id)
  )`,
  'CREATE INDEX oidc_payloads_by_grant ON oidc_payloads (grant_id) WHERE grant_id IS NOT NULL',
  `CREATE UNIQUE INDEX oidc_payloads_by_user_code ON oidc_payloads (kind, user_code)
    WHERE user_code IS NOT NULL`,
  'CREATE INDEX oidc_payloads_by_uid ON oidc_payloads (kind, uid) WHERE uid IS NOT NULL',
  'CREATE INDEX oidc_payloads_by_expiry ON oidc_payloads (expires_at) WHERE expires_at IS NOT NULL',

  `CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    password_hash TEXT,
    upstream_issuer TEXT,
    upstream_subject TEXT,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT,
    UNIQUE (tenant, name),
    UNIQUE (upstream_issuer, upstream_subject),
    CHECK ((upstream_issuer IS NULL) = (upstream_subject IS NULL))
  )`,

  `CREATE TABLE clients (
    client_id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('public', 'confidential')),
    secret_hash TEXT,
    jwks TEXT,
    redirect_uris TEXT NOT NULL,
    grants TEXT NOT NULL,
    allowed_scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT,
    CHECK (kind = 'confidential' OR (secret_hash IS NULL AND jwks IS NULL))
  )`,

  `CREATE TABLE workload_trust (
    id TEXT NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    audience TEXT NOT NULL,
    claims TEXT NOT NULL,
    client_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL
  )`,
  'CREATE INDEX workload_trust_by_issuer ON workload_trust (issuer)',

  `CREATE TABLE issuer_keys (
    kid TEXT NOT NULL PRIMARY KEY,
    purpose TEXT NOT NULL CHECK (purpose IN ('signing', 'cookie')),
    material TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    retired_at BIGINT
  )`,

  `CREATE TABLE attempts (
    bucket TEXT NOT NULL PRIMARY KEY,
    starts_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    count BIGINT NOT NULL
  )`,
  'CREATE INDEX attempts_by_end ON attempts (ends_at)',
];

const AUDIT_COLUMNS = `
    at BIGINT NOT NULL,
    event TEXT NOT NULL,
    tenant TEXT,
    subject TEXT,
    actor TEXT,
    client_id TEXT,
    request_id TEXT,
    jti TEXT,
    thread_id TEXT,
    session_id TEXT,
    sandbox_id TEXT,
    details TEXT NOT NULL`;

/** Rewriting is refused by the database itself, to the owner of the table too. */
const AUDIT = {
  sqlite: [
    `CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, ${AUDIT_COLUMNS})`,
    `CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
      BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END`,
    `CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
      BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END`,
    // REPLACE deletes without asking the trigger above.
    `CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
      WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
      BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END`,
  ],
  postgres: [
    `CREATE TABLE audit (
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ${AUDIT_COLUMNS})`,
    `CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$`,
    `CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()`,
    // ALWAYS: also in a session that plays replication.
    'ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_append_only',
  ],
} as const;

const AUDIT_INDEXES = [
  'CREATE INDEX audit_by_time ON audit (at)',
  'CREATE INDEX audit_by_subject ON audit (subject, id)',
  'CREATE INDEX audit_by_event ON audit (event, id)',
];
