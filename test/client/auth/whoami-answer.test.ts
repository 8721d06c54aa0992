import { describe, expect, it } from 'vitest';
import { parseWhoami } from '../../../src/client/auth/whoami-answer.js';
import { parseAnswer } from '../../../src/protocol/parse.js';
import { whoamiAnswer } from '../../../src/protocol/shapes/whoami.js';

const GOOD = {
  sub: 'usr_ada',
  principal: 'user',
  tenant: 'default',
  client_id: 'ailsd-cli',
  scopes: ['read:sandbox', 'later:scope'],
  expires_at: '2026-11-18T12:00:00.000Z',
};

function isTaken(value: unknown): boolean {
  try {
    parseWhoami(value);
    return true;
  } catch {
    return false;
  }
}

describe('the answer to whoami', () => {
  const same: [string, unknown][] = [
    ['whole', GOOD],
    ['with a name', { ...GOOD, name: 'Ada Lovelace' }],
    ['with nothing for a name', { ...GOOD, name: null }],
    [
      'with an actor',
      { ...GOOD, principal: 'agent', act: { sub: 'agent', client_id: 'bot', act: { sub: 'x' } } },
    ],
    ['with an actor without a client', { ...GOOD, act: { sub: 'agent', client_id: null } }],
    ['pinned to threads', { ...GOOD, threads: ['thr_demo'] }],
    ['with nothing for absent', { ...GOOD, act: null, threads: null }],
    ['with members of a later release', { ...GOOD, later: true }],
  ];
  it.each(same)('%s: read as the schema reads it', (_, value) => {
    const parsed = parseAnswer(whoamiAnswer, value);
    expect(parsed.ok && parsed.value).toEqual(parseWhoami(value));
  });

  const wrong: [string, unknown][] = [
    ['nothing', undefined],
    ['a list', []],
    ['no sub', { ...GOOD, sub: undefined }],
    ['a name of two lines', { ...GOOD, name: 'ada\nroot' }],
    ['a name that is long', { ...GOOD, name: 'a'.repeat(129) }],
    ['an empty tenant', { ...GOOD, tenant: '' }],
    ['another kind of principal', { ...GOOD, principal: 'root' }],
    ['scopes as text', { ...GOOD, scopes: 'read:sandbox' }],
    ['too many scopes', { ...GOOD, scopes: Array(65).fill('read:sandbox') }],
    ['no time', { ...GOOD, expires_at: 'soon' }],
    ['an actor without a name', { ...GOOD, act: {} }],
  ];
  it.each(wrong)('%s: refused as the schema refuses it', (_, value) => {
    expect([isTaken(value), parseAnswer(whoamiAnswer, value).ok]).toEqual([false, false]);
  });
});
