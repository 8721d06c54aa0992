/** `server.json`, the variables over it, the command line over both; and what is wrong, by source and field. */
import { describe, expect, it } from 'vitest';
import { AilsdError } from '../../src/protocol/errors.js';
import { type ConfigSources, readConfig } from '../../src/server/config.js';

function configOf(sources: Partial<ConfigSources>) {
  return readConfig({ folder: '/srv/ailsd', file: {}, variables: {}, ...sources });
}

function errorOf(sources: Partial<ConfigSources>): AilsdError {
  try {
    configOf(sources);
  } catch (error) {
    if (error instanceof AilsdError) return error;
  }
  throw new Error(`accepted: ${JSON.stringify(sources)}`);
}

describe('the configuration of a server', () => {
  it('has safe defaults for everything', () => {
    expect(configOf({})).toEqual({
      url: undefined,
      listen: { host: '127.0.0.1', port: 8484 },
      audience: undefined,
      store: '/srv/ailsd/store.db',
      trustedProxies: [],
      logLevel: 'info',
      deviceCodeSeconds: undefined,
      drainSeconds: 0,
      upstream: undefined,
      sandboxAuthSecret: undefined,
      broker: {
        idleTimeoutSeconds: 900,
        hardTtlSeconds: 28_800,
        sweepSeconds: 5,
        provisionSeconds: 60,
        requestsPerMinute: 6_000,
        addressRequestsPerMinute: 60_000,
      },
      local: {
        dir: '/srv/ailsd/local',
        isolation: 'auto',
        memoryBytes: 2 * 1024 ** 3,
        pids: 1_024,
      },
    });
  });

  it('the broker and the local provider have blocks and variables of their own', () => {
    const file = {
      broker: { idle_timeout_seconds: 60, sweep_seconds: 2 },
      local: { dir: '/var/sandboxes', isolation: 'namespaces' },
    };
    const variables = {
      AILSD_SERVER_BROKER_SWEEP_SECONDS: '1',
      AILSD_SERVER_BROKER_REQUESTS_PER_MINUTE: '0',
      AILSD_SERVER_LOCAL_DIR: 'boxes',
      AILSD_SERVER_LOCAL_PIDS: '64',
      AILSD_SERVER_DRAIN_SECONDS: '3',
    };
    const { broker, local, drainSeconds } = configOf({ file, variables });
    expect(broker).toMatchObject({ idleTimeoutSeconds: 60, sweepSeconds: 1, requestsPerMinute: 0 });
    expect(local).toMatchObject({ dir: '/srv/ailsd/boxes', isolation: 'namespaces', pids: 64 });
    expect(drainSeconds).toBe(3);
    for (const wrong of [
      { file: { broker: { sweep_seconds: 0 } } },
      { file: { broker: { sweep: 1 } } },
      { file: { local: { isolation: 'chroot' } } },
      { variables: { AILSD_SERVER_BROKER_SWEEP_SECONDS: '1e1' } },
      { variables: { AILSD_SERVER_LOCAL_ISOLATION: 'maybe' } },
      { variables: { SANDBOX_AUTH_SECRET: 'hunter2' } },
    ])
      expect(errorOf(wrong).code).toBe('CONFIG_INVALID');
  });

  it('command line wins over variables, and variables over the file', () => {
    const file = { url: 'https://file.example', listen: '127.0.0.1:1', log_level: 'warn' };
    const variables = {
      AILSD_SERVER_URL: 'https://variable.example',
      AILSD_SERVER_LISTEN: '[::1]:2',
      AILSD_SERVER_STORE: 'postgres://u:p@db/ailsd',
      AILSD_SERVER_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      AILSD_SERVER_DEVICE_CODE_SECONDS: '30',
      AILSD_SERVER_AUDIENCE: '',
      AILSD_SERVER_COLOUR: 'red',
    };
    expect(configOf({ file, variables, said: { listen: 'localhost:0' } })).toMatchObject({
      url: 'https://variable.example',
      listen: { host: 'localhost', port: 0 },
      store: 'postgres://u:p@db/ailsd',
      trustedProxies: ['10.0.0.0/8', '::1'],
      logLevel: 'warn',
      deviceCodeSeconds: 30,
      audience: undefined,
    });
    expect(configOf({ file, variables }).listen).toEqual({ host: '::1', port: 2 });
    expect(configOf({ file: { store: 'sqlite:sub/my.db' } }).store).toBe('/srv/ailsd/sub/my.db');
    expect(configOf({ file: { listen: ':80', url: 'https://a.example' } }).listen).toEqual({
      host: '0.0.0.0',
      port: 80,
    });
  });

  it('what is wrong is CONFIG_INVALID, names source and field, and never repeats the value', () => {
    const upstream = { issuer: 'https://id.example/realm', client_id: 'x', name: 'Acme' };
    const wrong: readonly [Partial<ConfigSources>, string, string][] = [
      [{ file: null }, 'server.json', 'body'],
      [{ file: { colour: 'S3CRET' } }, 'server.json', 'colour'],
      [{ file: { url: 'http://S3CRET.example' } }, 'server.json', 'url'],
      [{ file: { url: 'https://u:S3CRET@a.example' } }, 'server.json', 'url'],
      [{ file: { url: 'https://a.example/path' } }, 'server.json', 'url'],
      [{ file: { url: 'https://a.example/' } }, 'server.json', 'url'],
      [{ file: { url: 'javascript:S3CRET' } }, 'server.json', 'url'],
      [{ file: { listen: 'S3CRET' } }, 'server.json', 'listen'],
      [{ file: { listen: '127.0.0.1:65536' } }, 'server.json', 'listen'],
      [{ file: { listen: '127.0.0.1' } }, 'server.json', 'listen'],
      [{ file: { listen: 8484 } }, 'server.json', 'listen'],
      [{ file: { store: '' } }, 'server.json', 'store'],
      [{ file: { log_level: 'loud' } }, 'server.json', 'log_level'],
      [{ file: { trusted_proxies: ['10.0.0.0/33'] } }, 'server.json', 'trusted_proxies.0'],
      [{ file: { trusted_proxies: Array(65).fill('::1') } }, 'server.json', 'trusted_proxies'],
      [{ file: { device_code_seconds: 0 } }, 'server.json', 'device_code_seconds'],
      [{ file: { device_code_seconds: 1.5 } }, 'server.json', 'device_code_seconds'],
      [{ file: { upstream: {} } }, 'server.json', 'upstream.issuer'],
      [
        { file: { upstream: { ...upstream, issuer: 'http://id.example' } } },
        'server.json',
        'upstream.issuer',
      ],
      [
        { file: { upstream: { ...upstream, new_accounts: { scopes: ['root'] } } } },
        'server.json',
        'upstream.new_accounts.scopes.0',
      ],
      [{ variables: { AILSD_SERVER_LISTEN: 'x:99999' } }, 'environment', 'listen'],
      [
        { variables: { AILSD_SERVER_TRUSTED_PROXIES: '::1,S3CRET' } },
        'environment',
        'trusted_proxies.1',
      ],
      [
        { variables: { AILSD_SERVER_DEVICE_CODE_SECONDS: '1e9' } },
        'environment',
        'device_code_seconds',
      ],
      [
        { variables: { AILSD_SERVER_DEVICE_CODE_SECONDS: '9999' } },
        'environment',
        'device_code_seconds',
      ],
      [{ said: { url: 'ftp://S3CRET' } }, 'command line', 'url'],
    ];
    for (const [sources, source, field] of wrong) {
      const error = errorOf(sources);
      expect(error, JSON.stringify(sources)).toMatchObject({
        code: 'CONFIG_INVALID',
        details: { field },
      });
      expect(error.message).toContain(source);
      expect(error.message).not.toContain('S3CRET');
    }
  });

  it('a company login is read whole, its secret as a secret', () => {
    const { upstream } = configOf({
      file: {
        upstream: {
          issuer: 'https://id.example/realm',
          client_id: 'ailsd',
          client_secret: 'S3CRET',
          name: 'Acme',
          new_accounts: {},
        },
      },
    });
    expect(upstream).toMatchObject({
      issuer: 'https://id.example/realm',
      clientId: 'ailsd',
      name: 'Acme',
      newAccounts: {
        tenant: 'default',
        scopes: ['read:sandbox', 'write:sandbox', 'exec:sandbox', 'attach:sandbox'],
      },
    });
    expect(upstream?.clientSecret?.reveal()).toBe('S3CRET');
    expect(JSON.stringify(upstream)).not.toContain('S3CRET');
  });
});
