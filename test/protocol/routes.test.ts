import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allows, type Capability } from '../../src/protocol/capabilities.js';
import { AilsdError } from '../../src/protocol/errors.js';
import { DATAPLANE_ROUTES } from '../../src/protocol/routes/dataplane.js';
import type { Route } from '../../src/protocol/routes/route.js';
import {
  buildPath,
  matchRoute,
  ROUTES,
  routeNames,
  underBaseUrl,
} from '../../src/protocol/routes.js';
import { holdsAnyScope, type Scope } from '../../src/protocol/scopes.js';
import { CONTRACT_PATHS, withoutNames } from '../fixtures/contract-paths.js';
import { proves } from '../requirements.js';

const routes: readonly Route[] = routeNames().map((name) => ROUTES[name]);
const spelled = routes.map(({ method, path }) => `${method} ${withoutNames(path)}`);

describe('the table of routes', () => {
  for (const [section, paths] of Object.entries(CONTRACT_PATHS)) {
    it(proves(`section ${section}: every path is a route`, 'PR-10'), () => {
      expect(spelled).toEqual(expect.arrayContaining(paths.map(withoutNames)));
    });
  }

  it('holds nothing else but what managing these needs', () => {
    const named = new Set(Object.values(CONTRACT_PATHS).flat().map(withoutNames));
    expect(spelled.filter((one) => !named.has(one) && !one.includes(' /relay/'))).toEqual([
      'GET /v1/sandbox/sessions',
      'GET /v1/whoami',
      'GET /v1/logins',
      'DELETE /v1/logins',
      'DELETE /v1/logins/{}',
      'GET /v1/sandboxes/{}/why',
      'GET /v1/sandboxes/{}/commands',
      'GET /v1/code/invocations',
      'GET /v1/code/invocations/{}',
      'GET /v1/code/invocations/{}/output',
      'GET /admin/clients/{}',
      'DELETE /admin/clients/{}',
      'DELETE /admin/workload-trust/{}',
      'GET /openapi.json',
      'GET /v1/commands',
      'GET /v1/commands/{}',
      'GET /v1/commands/{}/logs',
      'DELETE /v1/commands/{}',
      'GET /v1/shells',
      'DELETE /v1/shells/{}',
      'GET /v1/shells/{}/log',
    ]);
  });

  it('names no method and path twice', () => {
    expect(new Set(spelled).size).toBe(spelled.length);
  });

  it(
    proves('every route says what it takes: a scope, a capability, or why neither', 'PR-10'),
    () => {
      for (const route of routes) {
        const told = `${route.method} ${route.path}`;
        // Whoever has a token may ask whose it is, and end it.
        const anyScope = route.family === 'identity';
        const isBroker = route.auth === 'access-token' && route.family !== 'issuer' && !anyScope;
        expect(route.scopes !== undefined, told).toBe(isBroker);
        if (route.auth === 'sandbox-token')
          expect(route.capability ?? route.capabilities, told).toBeDefined();
        if (route.auth === 'none') expect(['issuer', 'operations'], told).toContain(route.family);
        if (route.path.startsWith('/admin/')) expect(route.scopes, told).toEqual(['admin:sandbox']);
        expect(route.summary, told).toMatch(/^[A-Z].*[^.]$/);
        expect(route.errors.length, told).toBeGreaterThan(0);
        expect(new Set(route.errors).size, told).toBe(route.errors.length);
      }
    },
  );

  it('the methods that HTTP calls idempotent are', () => {
    for (const route of routes) {
      if (route.method === 'WS' || route.method === 'POST' || route.method === 'PATCH') continue;
      expect(route.idempotent, `${route.method} ${route.path}`).toBe(true);
    }
  });
});

describe('who may do what', () => {
  it(proves('capability by operation, as section 4 and 5 say', 'PR-10'), () => {
    const dataplane = routes.filter(
      ({ auth, family }) => auth === 'sandbox-token' && family !== 'relay',
    );
    const allowedBy = (held: Capability) =>
      dataplane
        .filter(({ capability }) => capability !== undefined && allows([held], capability))
        .map(({ method, path }) => `${method} ${path}`);
    const reading = [
      'GET /v1/files/download',
      'GET /files/{path}',
      'HEAD /files/{path}',
      'WS /v1/sync/ws',
    ];
    const writing = ['POST /v1/files/upload', 'PUT /files/{path}', 'DELETE /files/{path}'];
    expect(allowedBy('fs:ro')).toEqual(reading);
    expect(allowedBy('fs:rw').sort()).toEqual([...reading, ...writing].sort());
    const watching = [
      'GET /v1/shells',
      'GET /v1/shells/{shell_id}/log',
      'WS /v1/shell/ws',
      'WS /ws',
    ];
    expect(allowedBy('shell').sort()).toEqual(['DELETE /v1/shells/{shell_id}', ...watching]);
    expect(allowedBy('shell:ro')).toEqual(watching);
    expect(allowedBy('process')).toEqual([
      'POST /v1/exec',
      'DELETE /v1/commands/{command_id}',
      'WS /v1/exec/ws',
    ]);
    expect(allowedBy('tunnel')).toEqual(['WS /v1/tunnel/ws']);
    expect(allowedBy('snapshot')).toEqual([]);
  });

  it('watching opens the shell, typing takes more; scanning opens sync, changing takes more', () => {
    const writes = routes.flatMap((route) =>
      route.method === 'WS' && route.writes && route.family !== 'relay'
        ? [`${route.path} ${route.writes}`]
        : [],
    );
    expect(writes).toEqual([
      '/v1/sandboxes/{sandbox_id}/sessions/{shell_id} shell',
      '/v1/shell/ws shell',
      '/ws shell',
      '/v1/sync/ws fs:rw',
    ]);
  });

  it('through the relay everything takes what it takes at the sandbox', () => {
    const relayed = routes.filter(({ family }) => family === 'relay');
    const same = relayed.map(({ path, family, ...rest }) => ({
      ...rest,
      path: path.slice('/relay/{sandbox_id}'.length),
    }));
    const dataplane = Object.values(DATAPLANE_ROUTES).map(({ family, ...rest }) => rest);
    expect(same).toEqual(dataplane);
  });

  it(proves('scope by relay operation: exec opens no PTY, attach runs no command', 'PR-10'), () => {
    const relay = routes.filter(({ path }) => path.startsWith('/v1/sandboxes'));
    const allowedBy = (held: Scope) =>
      relay
        .filter(({ scopes }) => holdsAnyScope([held], scopes ?? []))
        .map(({ method, path }) => `${method} ${withoutNames(path).slice('/v1/sandboxes'.length)}`);
    expect(allowedBy('read:sandbox')).toEqual([
      'GET ',
      'GET /{}',
      'GET /{}/why',
      'GET /{}/logs',
      'GET /{}/commands',
      'GET /{}/commands/{}',
      'GET /{}/commands/{}/logs',
    ]);
    expect(allowedBy('write:sandbox')).toEqual([
      'PATCH /{}',
      'DELETE /{}',
      'POST /{}/start',
      'POST /{}/stop',
    ]);
    expect(allowedBy('exec:sandbox')).toEqual([
      'POST /{}/commands',
      'GET /{}/commands',
      'GET /{}/commands/{}',
      'GET /{}/commands/{}/logs',
      'DELETE /{}/commands/{}',
    ]);
    expect(allowedBy('attach:sandbox')).toEqual(['WS /{}/sessions/{}']);
    expect(allowedBy('admin:sandbox')).toEqual([]);
  });
});

describe('paths', () => {
  it('a path is built from its parameters and found again', () => {
    expect(buildPath('refreshSession', { session_id: 'ssn_1' })).toBe(
      '/v1/sandbox/sessions/ssn_1/refresh',
    );
    expect(buildPath('negotiateSession', {})).toBe('/v1/sandbox/sessions');
    expect(matchRoute('POST', '/v1/sandbox/sessions/ssn_1/refresh')).toMatchObject({
      kind: 'found',
      name: 'refreshSession',
      parameters: { session_id: 'ssn_1' },
    });
  });

  it('threads called .., -rf and a:b have paths of their own', () => {
    expect(buildPath('getThreadSandbox', { thread_id: '..' })).toBe('/threads/%2E%2E/sandbox');
    expect(buildPath('getThreadSandbox', { thread_id: '.' })).toBe('/threads/%2E/sandbox');
    expect(buildPath('getThreadSandbox', { thread_id: '-rf' })).toBe('/threads/-rf/sandbox');
    expect(buildPath('getThreadSandbox', { thread_id: 'a:b' })).toBe('/threads/a%3Ab/sandbox');
    for (const thread_id of ['..', '.', '-rf', 'a:b', '...'])
      expect(matchRoute('GET', buildPath('getThreadSandbox', { thread_id }))).toMatchObject({
        name: 'getThreadSandbox',
        parameters: { thread_id },
      });
  });

  it('any parameter survives the way into a path and back, and stays one segment', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 });
    fc.assert(
      fc.property(text, text, (sandbox_id, command_id) => {
        const path = buildPath('getCommand', { sandbox_id, command_id });
        expect(path.split('/')).toHaveLength(6);
        expect(matchRoute('GET', path)).toMatchObject({
          name: 'getCommand',
          parameters: { sandbox_id, command_id },
        });
      }),
    );
  });

  it('a file path keeps its slashes, and the root is the empty one', () => {
    expect(buildPath('readFile', { path: 'a b/ü#?.txt' })).toBe('/files/a%20b/%C3%BC%23%3F.txt');
    expect(buildPath('readFile', { path: '' })).toBe('/files/');
    expect(matchRoute('HEAD', '/files/a/b%2Fc')).toMatchObject({
      name: 'statFile',
      parameters: { path: 'a/b/c' },
    });
    for (const root of ['/files', '/files/']) {
      expect(matchRoute('GET', root)).toMatchObject({ name: 'readFile', parameters: { path: '' } });
      expect(matchRoute('HEAD', root)).toMatchObject({
        name: 'statFile',
        parameters: { path: '' },
      });
    }
    expect(matchRoute('POST', '/files')).toMatchObject({ kind: 'wrong-method' });
    expect(matchRoute('GET', '/files//')).toMatchObject({ parameters: { path: '/' } });
    expect(matchRoute('GET', '/files/%2e%2e/x')).toMatchObject({ parameters: { path: '../x' } });
  });

  it('what cannot be in a path is refused by its name', () => {
    for (const thread_id of ['', '\ud800']) {
      const build = () => buildPath('getThreadSandbox', { thread_id });
      expect(build).toThrow(AilsdError);
      expect(build).toThrow(/^thread_id /);
    }
  });

  it('another method, a broken encoding and an unknown path are told apart', () => {
    expect(matchRoute('PUT', '/v1/sandboxes')).toEqual({ kind: 'wrong-method', allowed: ['GET'] });
    expect(matchRoute('GET', '/threads/%/sandbox')).toEqual({ kind: 'malformed' });
    expect(matchRoute('GET', '/files/%ff')).toEqual({ kind: 'malformed' });
    for (const path of [
      '',
      '/',
      '/v1',
      '/v1/sandboxes/',
      '/v1/sandboxes/a/b',
      '//v1/sandboxes',
      '/filesX',
      '/files%2F',
      '/files\n',
      '/.well-known/openid-configurationX',
      '/Xwell-known/openid-configuration',
    ])
      expect(matchRoute('GET', path), path).toEqual({ kind: 'none' });
  });

  it('matching is total', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'binary' }), (method, path) => {
        expect(['found', 'none', 'malformed', 'wrong-method']).toContain(
          matchRoute(method, `/${path}`).kind,
        );
      }),
    );
  });

  it("S2's base with /v1 and S3's without lead to the same place", () => {
    const path = buildPath('exec', {});
    expect(underBaseUrl('https://dp.example.com/v1', path)).toBe('https://dp.example.com/v1/exec');
    expect(underBaseUrl('https://sbx.example.com', path)).toBe('https://sbx.example.com/v1/exec');
    expect(underBaseUrl('https://h/relay/sb_1/v1/', '/files/a')).toBe(
      'https://h/relay/sb_1/files/a',
    );
    expect(underBaseUrl('https://h/relay//v1//', '/files/a')).toBe('https://h/relay/files/a');
    expect(underBaseUrl('https://h/v12', path)).toBe('https://h/v12/v1/exec');
    expect(underBaseUrl('https://h/v1/v1', path)).toBe('https://h/v1/v1/exec');
  });

  it('a base URL of nothing but slashes takes no longer than reading it', () => {
    const slashes = '/'.repeat(100_000);
    const start = performance.now();
    expect(underBaseUrl(`https://h${slashes}x${slashes}`, '/ws')).toBe(`https://h${slashes}x/ws`);
    expect(performance.now() - start).toBeLessThan(500);
  });
});
