/** What the broker keeps: sandboxes and the sessions that hold them, who may use them, and what must happen once. Times are epoch milliseconds. */
import type { Migration } from '../migration.js';

export const brokerTables: Migration = {
  name: '0003-broker',
  statements: () => [...TABLES, DEFAULT_TENANT_ROW],
};

const TABLES = [
  `CREATE TABLE sandboxes (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    client_id TEXT NOT NULL,
    name TEXT,
    provider TEXT NOT NULL,
    template TEXT,
    environment TEXT NOT NULL CHECK (environment IN ('default-public', 'internal-only')),
    state TEXT NOT NULL CHECK (state IN ('provisioning', 'active', 'idle', 'suspended', 'terminated', 'failed')),
    http_url TEXT,
    ws_url TEXT,
    idle_timeout_ms BIGINT NOT NULL,
    key_generation BIGINT NOT NULL,
    access_generation BIGINT NOT NULL,
    access_delivered BIGINT NOT NULL,
    work_holder TEXT,
    work_until BIGINT,
    created_at BIGINT NOT NULL,
    last_active_at BIGINT NOT NULL,
    lease_expires_at BIGINT NOT NULL,
    hard_expires_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_reason TEXT,
    destroyed_at BIGINT
  )`,
  'CREATE INDEX sandboxes_by_owner ON sandboxes (tenant, owner, id) WHERE ended_at IS NULL',
  "CREATE INDEX sandboxes_by_lease ON sandboxes (lease_expires_at) WHERE state = 'active'",
  'CREATE INDEX sandboxes_by_hard_ttl ON sandboxes (hard_expires_at) WHERE ended_at IS NULL',
  'CREATE INDEX sandboxes_by_work ON sandboxes (work_until) WHERE work_until IS NOT NULL',
  'CREATE INDEX sandboxes_to_destroy ON sandboxes (ended_at) WHERE ended_at IS NOT NULL AND destroyed_at IS NULL',
  `CREATE INDEX sandboxes_to_deliver ON sandboxes (id)
    WHERE ended_at IS NULL AND access_delivered < access_generation`,

  `CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    scope_type TEXT NOT NULL,
    owner TEXT NOT NULL,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id),
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_reason TEXT CHECK (end_reason IS NULL OR end_reason IN ('released', 'expired', 'failed', 'killed'))
  )`,
  'CREATE UNIQUE INDEX sessions_open ON sessions (tenant, scope_type, thread_id) WHERE ended_at IS NULL',
  'CREATE INDEX sessions_by_owner ON sessions (tenant, owner, id) WHERE ended_at IS NULL',
  'CREATE INDEX sessions_by_sandbox ON sessions (sandbox_id)',

  `CREATE TABLE issued_tokens (
    jti TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    act TEXT,
    client_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    key_generation BIGINT NOT NULL,
    grant_id TEXT,
    parent TEXT,
    not_after BIGINT,
    hash TEXT,
    issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    replaced_by TEXT,
    ends_at BIGINT
  )`,
  'CREATE INDEX issued_tokens_by_sandbox ON issued_tokens (sandbox_id, expires_at)',
  'CREATE INDEX issued_tokens_by_expiry ON issued_tokens (expires_at)',
  'CREATE INDEX issued_tokens_by_parent ON issued_tokens (parent) WHERE parent IS NOT NULL',
  'CREATE INDEX issued_tokens_by_session ON issued_tokens (session_id, subject, expires_at)',
  'CREATE INDEX issued_tokens_by_grant ON issued_tokens (grant_id) WHERE grant_id IS NOT NULL',
  'CREATE UNIQUE INDEX issued_tokens_by_hash ON issued_tokens (hash) WHERE hash IS NOT NULL',

  `CREATE TABLE grants (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    tenant TEXT NOT NULL,
    grantee_type TEXT NOT NULL CHECK (grantee_type IN ('user', 'agent')),
    grantee_id TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    deleted_at BIGINT
  )`,
  'CREATE UNIQUE INDEX grants_in_force ON grants (session_id, grantee_type, grantee_id) WHERE deleted_at IS NULL',
  'CREATE INDEX grants_by_session ON grants (session_id, id) WHERE deleted_at IS NULL',
  'CREATE INDEX grants_by_grantee ON grants (tenant, grantee_id) WHERE deleted_at IS NULL',

  `CREATE TABLE idempotency (
    caller TEXT NOT NULL,
    route TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    session_id TEXT,
    status BIGINT,
    answer TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (caller, route, idempotency_key)
  )`,
  'CREATE INDEX idempotency_by_expiry ON idempotency (expires_at)',

  `CREATE TABLE tenants (
    id TEXT NOT NULL PRIMARY KEY,
    sandbox_enabled BIGINT NOT NULL CHECK (sandbox_enabled IN (0, 1)),
    environment TEXT NOT NULL CHECK (environment IN ('default-public', 'internal-only')),
    token_mode TEXT NOT NULL CHECK (token_mode IN ('jwt', 'opaque')),
    audit_retention_days BIGINT NOT NULL CHECK (audit_retention_days BETWEEN 1 AND 180),
    updated_at BIGINT NOT NULL
  )`,

  `CREATE TABLE sandbox_client_config (
    client_id TEXT NOT NULL PRIMARY KEY,
    sidecar TEXT,
    environment TEXT NOT NULL,
    capability_ceiling TEXT,
    updated_at BIGINT NOT NULL
  )`,

  `CREATE TABLE invites (
    hash TEXT NOT NULL PRIMARY KEY,
    tenant TEXT,
    session_id TEXT,
    issued_to TEXT,
    actor TEXT,
    client_id TEXT,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
  )`,
  'CREATE INDEX invites_by_expiry ON invites (expires_at)',

  `CREATE TABLE job_leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    until BIGINT NOT NULL
  )`,

  `CREATE TABLE server_secrets (
    name TEXT NOT NULL PRIMARY KEY,
    material TEXT NOT NULL,
    created_at BIGINT NOT NULL
  )`,

  `CREATE TABLE snapshots (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    name TEXT,
    size_bytes BIGINT,
    state TEXT NOT NULL CHECK (state IN ('making', 'kept', 'removed')),
    created_at BIGINT NOT NULL
  )`,
  'CREATE INDEX snapshots_by_session ON snapshots (session_id, id)',
  'CREATE INDEX audit_by_sandbox ON audit (sandbox_id, id) WHERE sandbox_id IS NOT NULL',
  "CREATE INDEX snapshots_there ON snapshots (id) WHERE state <> 'removed'",
];

/** Whoever names no tenant is in this one; every other needs an administrator to let it in. */
const DEFAULT_TENANT_ROW = `INSERT INTO tenants VALUES ('default', 1, 'default-public', 'jwt', 30, 0)`;
