/** The example documents of the seeds, verbatim, each against its shape and against the published JSON Schema of it. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { componentName, type ShapeName, shape } from '../../src/protocol/components.js';
import { buildOpenApi } from '../../src/protocol/openapi.js';
import { parseAnswer } from '../../src/protocol/parse.js';
import { parseBootstrap } from '../../src/protocol/shapes/bootstrap.js';
import { faceOf, negotiateRequest } from '../../src/protocol/shapes/sessions.js';
import { proves } from '../requirements.js';

interface Example {
  readonly seed: string;
  readonly shape: ShapeName;
  readonly text: string;
}

const EXAMPLES: readonly Example[] = [
  {
    seed: '001, device-code flow, answer',
    shape: 'deviceCodeAnswer',
    text: `{
  "device_code":               "T4Sx...long opaque...",
  "user_code":                 "ABCD-EFGH",
  "verification_uri":          "https://auth.latere.ai/device",
  "verification_uri_complete": "https://auth.latere.ai/device?user_code=ABCD-EFGH",
  "expires_in":                600,
  "interval":                  5
}`,
  },
  {
    seed: '001, device-code flow, while pending',
    shape: 'oauthError',
    text: '{ "error": "authorization_pending" }',
  },
  {
    seed: '002, MVP, create or get session, request',
    shape: 'negotiateRequest',
    text: `{
  "thread_id": "thr_123",
  "mode": "get"
}`,
  },
  {
    seed: '002, MVP, create or get session, answer',
    shape: 'sessionAnswer',
    text: `{
  "session_id": "ssn_123",
  "thread_id": "thr_123",
  "sandbox": {
    "id": "sb_123",
    "provider": "langsmith",
    "http_base_url": "https://dp.example.com/v1",
    "ws_base_url": "wss://dp.example.com/v1"
  },
  "token": "opaque_or_jwt_token",
  "expires_at": "2026-02-27T20:20:00Z"
}`,
  },
  { seed: '002, MVP, refresh, request', shape: 'refreshRequest', text: '{}' },
  {
    seed: '002, MVP, refresh, answer',
    shape: 'refreshAnswer',
    text: `{
  "token": "new_token",
  "expires_at": "2026-02-27T20:50:00Z"
}`,
  },
  {
    seed: '002, bootstrap',
    shape: 'runConfig',
    text: `{
  "config": {
    "configurable": {
      "sandbox": {
        "session_id": "ssn_local_1",
        "thread_id": "thr_123",
        "sandbox": {
          "id": "sb_123",
          "provider": "langsmith",
          "http_base_url": "https://dp.example.com/v1",
          "ws_base_url": "wss://dp.example.com/v1"
        },
        "token": "provider_token",
        "expires_at": "2026-02-27T20:20:00Z"
      }
    }
  }
}`,
  },
  {
    seed: '002, full, negotiate, request',
    shape: 'negotiateRequest',
    text: `{
  "scope": { "type": "thread", "id": "thr_123" },
  "mode": "ensure",
  "actor": { "type": "human", "id": "usr_1" },
  "requested_capabilities": ["fs_read", "fs_write", "shell", "exec"],
  "sandbox_hint": "optional-existing-sandbox",
  "provider_preference": "auto"
}`,
  },
  {
    seed: '002, full, negotiate, answer',
    shape: 'negotiateAnswer',
    text: `{
  "binding": {
    "id": "bind_789",
    "scope": { "type": "thread", "id": "thr_123" },
    "sandbox_id": "sb_123",
    "provider": "langsmith",
    "state": "active",
    "lease_expires_at": "2026-02-27T21:00:00Z"
  },
  "dataplane": {
    "http_base_url": "https://dp.example.com/v1",
    "ws_base_url": "wss://dp.example.com/v1"
  },
  "credentials": {
    "token_type": "Bearer",
    "access_token": "short_lived_token",
    "expires_at": "2026-02-27T20:20:00Z",
    "granted_capabilities": ["fs_read", "fs_write", "shell"]
  },
  "policy": {
    "idle_timeout_seconds": 900,
    "hard_ttl_seconds": 28800
  }
}`,
  },
  {
    seed: '002, full, error envelope',
    shape: 'errorEnvelope',
    text: `{
  "error": {
    "code": "CAPABILITY_DENIED",
    "message": "shell not granted",
    "retryable": false,
    "request_id": "req_123"
  }
}`,
  },
  {
    seed: '003, negotiation, request (its comments left out)',
    shape: 'threadSandboxRequest',
    text: `{
  "sandbox_id": "sbx_abc123",
  "scopes": ["fs:rw", "shell"],
  "ttl": 900
}`,
  },
  {
    seed: '003, negotiation, answer',
    shape: 'threadSandboxAnswer',
    text: `{
  "sandbox_id": "sbx_abc123",
  "endpoints": {
    "http": "https://sbx-abc123.sandboxes.example.com",
    "ws":   "wss://sbx-abc123.sandboxes.example.com/ws"
  },
  "token": "<signed-capability-token>",
  "expires_at": "2026-02-26T12:15:00Z",
  "scopes": ["fs:rw", "shell"],
  "refresh_before": "2026-02-26T12:10:00Z"
}`,
  },
  {
    seed: '003, refresh, request (its comment left out)',
    shape: 'threadRefreshRequest',
    text: `{
  "sandbox_id": "sbx_abc123",
  "current_token": "<old-token>"
}`,
  },
  {
    seed: '003, refresh, answer',
    shape: 'threadRefreshAnswer',
    text: `{
  "token": "<new-signed-capability-token>",
  "expires_at": "2026-02-26T12:30:00Z",
  "refresh_before": "2026-02-26T12:25:00Z"
}`,
  },
  {
    seed: '004, what the agent sees',
    shape: 'codeAnswer',
    text: '{ "ok": true, "stdout": "...", "stderr": "...", "exit_status": "ok", "duration_ms": 1842}',
  },
];

const { components } = JSON.parse(
  JSON.stringify(buildOpenApi()).replaceAll('#/components/schemas/', '#/$defs/'),
);

/** The schema as a foreign tool would read it from the OpenAPI document. */
function published(name: ShapeName): z.ZodType {
  const $defs = components.schemas;
  return z.fromJSONSchema({ $ref: `#/$defs/${componentName(name)}`, $defs });
}

describe('the examples of the seeds', () => {
  for (const { seed, shape: name, text } of EXAMPLES) {
    it(proves(`seed ${seed}: passes as ${name}, whole`, 'PR-06'), () => {
      const document: unknown = JSON.parse(text);
      expect(parseAnswer(shape(name), document)).toEqual({ ok: true, value: document });
      expect(published(name).safeParse(document).success).toBe(true);
    });

    it(`seed ${seed}: still passes with fields of a later version`, () => {
      const document: object = JSON.parse(text);
      const later = { ...document, later_version: [{}] };
      expect(parseAnswer(shape(name), later)).toEqual({ ok: true, value: document });
    });
  }

  it('the published schema refuses what the shape refuses', () => {
    expect(published('negotiateRequest').safeParse({ thread_id: 'thr_1' }).success).toBe(false);
    expect(published('sessionAnswer').safeParse({}).success).toBe(false);
    expect(published('codeAnswer').safeParse({ ok: 'yes' }).success).toBe(false);
  });

  it('the MVP request speaks the MVP face and the full one the full face', () => {
    const faces = EXAMPLES.filter(({ shape: name }) => name === 'negotiateRequest').map(
      ({ text }) => faceOf(z.parse(negotiateRequest, JSON.parse(text))),
    );
    expect(faces).toEqual(['mvp', 'full']);
  });

  it(
    proves('seed 002: the bootstrap document is taken bare and inside a run config', 'PR-06'),
    () => {
      const example = EXAMPLES.find(({ shape: name }) => name === 'runConfig');
      const wrapped = JSON.parse(example?.text ?? '');
      const bare: unknown = wrapped.config.configurable.sandbox;
      expect(parseBootstrap(wrapped)).toEqual({ ok: true, value: bare });
      expect(parseBootstrap(bare)).toEqual({ ok: true, value: bare });
    },
  );
});
