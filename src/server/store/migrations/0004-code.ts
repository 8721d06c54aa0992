/** Code execution: caps and their counters, calls under way, and one row for every call, which the database keeps until its time is over. */
import { NOW_SQL } from '../engine-clock.js';
import type { Migration } from '../migration.js';

export const codeTables: Migration = {
  name: '0004-code',
  statements: (engine) => [
    ...TABLES,
    outputTable(engine),
    ...INDEXES,
    ...KEPT_TABLES.flatMap((table) => APPEND_ONLY[engine](table)),
  ],
};

const TABLES = [
  // The tenant '' stands for all that have no caps of their own.
  `CREATE TABLE quotas (
    tenant TEXT NOT NULL PRIMARY KEY,
    tenant_daily BIGINT CHECK (tenant_daily >= 0),
    agent_hourly BIGINT CHECK (agent_hourly >= 0),
    updated_at BIGINT NOT NULL
  )`,
  `CREATE TABLE sandbox_tenant_daily_counters (
    tenant TEXT NOT NULL,
    starts_at BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (tenant, starts_at)
  )`,
  `CREATE TABLE sandbox_agent_hourly_counters (
    tenant TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    starts_at BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent_id, starts_at)
  )`,
  `CREATE TABLE code_calls (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    client_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    turn_id TEXT,
    via TEXT NOT NULL,
    language TEXT,
    request_id TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    holder TEXT NOT NULL,
    held_until BIGINT NOT NULL,
    session_id TEXT,
    sandbox_id TEXT,
    is_of_turn BIGINT NOT NULL CHECK (is_of_turn IN (0, 1))
  )`,
  `CREATE TABLE code_turns (
    session_id TEXT NOT NULL PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    turn_id TEXT,
    open_calls BIGINT NOT NULL CHECK (open_calls >= 0),
    last_call_at BIGINT NOT NULL,
    ended_at BIGINT
  )`,
  // Sandbox tokens that were made for calls: whoever else has one is in the session too.
  `CREATE TABLE code_tokens (
    session_id TEXT NOT NULL,
    jti TEXT NOT NULL,
    PRIMARY KEY (session_id, jti)
  )`,
  `CREATE TABLE sandbox_invocations (
    id TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    tenant_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    client_id TEXT NOT NULL,
    session_id TEXT,
    sandbox_id TEXT,
    thread_id TEXT NOT NULL,
    turn_id TEXT,
    via TEXT NOT NULL CHECK (via IN ('code', 'execute', 'computer')),
    language TEXT,
    request_id TEXT NOT NULL,
    executed_code_hash TEXT NOT NULL,
    exit_status TEXT NOT NULL
      CHECK (exit_status IN ('ok', 'error', 'timeout', 'oom', 'cap_exceeded', 'provisioning')),
    exit_code BIGINT,
    failure_reason TEXT,
    duration_ms BIGINT NOT NULL,
    stdout_bytes BIGINT NOT NULL,
    stderr_bytes BIGINT NOT NULL,
    stdout_truncated BIGINT NOT NULL CHECK (stdout_truncated IN (0, 1)),
    stderr_truncated BIGINT NOT NULL CHECK (stderr_truncated IN (0, 1)),
    retention_days BIGINT NOT NULL CHECK (retention_days BETWEEN 1 AND 180),
    expires_at BIGINT NOT NULL,
    CHECK (expires_at = created_at + retention_days * 86400000)
  )`,
];

/** What a call wrote, without secrets, in pieces. */
function outputTable(engine: 'sqlite' | 'postgres'): string {
  return `CREATE TABLE sandbox_invocation_outputs (
    invocation_id TEXT NOT NULL,
    stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    position BIGINT NOT NULL,
    data ${engine === 'sqlite' ? 'BLOB' : 'BYTEA'} NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (invocation_id, stream, position)
  )`;
}

const INDEXES = [
  'CREATE INDEX code_calls_by_hold ON code_calls (held_until)',
  'CREATE INDEX code_calls_by_holder ON code_calls (holder)',
  'CREATE INDEX code_turns_open ON code_turns (last_call_at) WHERE ended_at IS NULL',
  'CREATE INDEX code_turns_ended ON code_turns (ended_at) WHERE ended_at IS NOT NULL',
  'CREATE INDEX daily_counters_by_start ON sandbox_tenant_daily_counters (starts_at)',
  'CREATE INDEX hourly_counters_by_start ON sandbox_agent_hourly_counters (starts_at)',
  'CREATE INDEX invocations_by_owner ON sandbox_invocations (tenant_id, owner, id)',
  'CREATE INDEX invocations_by_expiry ON sandbox_invocations (expires_at)',
  'CREATE INDEX invocation_outputs_by_expiry ON sandbox_invocation_outputs (expires_at)',
];

const KEPT_TABLES = ['sandbox_invocations', 'sandbox_invocation_outputs'] as const;

type KeptTable = (typeof KEPT_TABLES)[number];

const SAME_KEY: Readonly<Record<KeptTable, string>> = {
  sandbox_invocations: 'id = NEW.id',
  sandbox_invocation_outputs:
    'invocation_id = NEW.invocation_id AND stream = NEW.stream AND position = NEW.position',
};

/** Refused by the database itself, to the owner of the table too: any rewriting, and removing what has time left. */
const APPEND_ONLY = {
  sqlite: (table: KeptTable) => [
    `CREATE TRIGGER ${table}_no_update BEFORE UPDATE ON ${table}
      BEGIN SELECT RAISE(ABORT, '${table} is append-only'); END`,
    `CREATE TRIGGER ${table}_kept BEFORE DELETE ON ${table} WHEN OLD.expires_at > ${NOW_SQL.sqlite}
      BEGIN SELECT RAISE(ABORT, '${table} is kept until it expires'); END`,
    // REPLACE deletes without asking the trigger above.
    `CREATE TRIGGER ${table}_no_replace BEFORE INSERT ON ${table}
      WHEN EXISTS (SELECT 1 FROM ${table} WHERE ${SAME_KEY[table]})
      BEGIN SELECT RAISE(ABORT, '${table} is append-only'); END`,
  ],
  postgres: (table: KeptTable) => [
    `CREATE FUNCTION refuse_${table}_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION '${table} is append-only'; END $$`,
    `CREATE FUNCTION keep_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF OLD.expires_at > ${NOW_SQL.postgres} THEN
          RAISE EXCEPTION '${table} is kept until it expires';
        END IF;
        RETURN OLD;
      END $$`,
    `CREATE TRIGGER ${table}_append_only BEFORE UPDATE OR TRUNCATE ON ${table}
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_${table}_change()`,
    `CREATE TRIGGER ${table}_kept BEFORE DELETE ON ${table}
      FOR EACH ROW EXECUTE FUNCTION keep_${table}()`,
    // ALWAYS: also in a session that plays replication.
    `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_append_only`,
    `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_kept`,
  ],
} as const;
