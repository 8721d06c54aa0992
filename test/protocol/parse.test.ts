import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { SHAPE_NAMES, shape } from '../../src/protocol/components.js';
import { AilsdError } from '../../src/protocol/errors.js';
import { parseAnswer, parseRequest } from '../../src/protocol/parse.js';
import { proves } from '../requirements.js';

const form = z.object({
  name: z.string().check(z.maxLength(4)),
  size: z.optional(z.number().check(z.minimum(1))),
  kind: z.optional(z.enum(['a', 'b'])),
  tags: z.optional(z.array(z.string()).check(z.maxLength(2))),
  inner: z.optional(z.object({ deep: z.object({ flag: z.boolean() }) })),
  either: z.optional(
    z.union([z.object({ x: z.string() }), z.object({ y: z.object({ z: z.int() }) })]),
  ),
  table: z.optional(z.record(z.string().check(z.regex(/^[a-z]+$/)), z.string())),
});

function refused(value: unknown): { field: unknown; message: string } {
  const parsed = parseRequest(form, value);
  if (parsed.ok) throw new Error('it was accepted');
  expect(parsed.error.code).toBe('INVALID_REQUEST');
  return { field: parsed.error.details['field'], message: parsed.error.message };
}

describe('a bad request', () => {
  it(proves('is named by its first bad field, as a dotted path', 'PR-06'), () => {
    expect(refused({}).field).toBe('name');
    expect(refused({ name: 7, size: 'x' }).field).toBe('name');
    expect(refused({ name: 'a', size: 0 }).field).toBe('size');
    expect(refused({ name: 'a', kind: 'c' }).field).toBe('kind');
    expect(refused({ name: 'a', tags: ['x', 7] }).field).toBe('tags.1');
    expect(refused({ name: 'a', tags: ['x', 'y', 'z'] }).field).toBe('tags');
    expect(refused({ name: 'a', inner: {} }).field).toBe('inner.deep');
    expect(refused({ name: 'a', inner: { deep: { flag: 1 } } }).field).toBe('inner.deep.flag');
  });

  it('is called body when it is no object at all', () => {
    for (const value of [null, undefined, 7, 'x', [], [{}], true])
      expect(refused(value).field, JSON.stringify(value)).toBe('body');
  });

  it('says what it must be, in words', () => {
    expect(refused({}).message).toBe('the request: name is missing: it must be text');
    expect(refused({ name: 'abcde' }).message).toContain('name must be at most 4 characters');
    expect(refused({ name: 'a', size: 0 }).message).toContain('size must be at least 1');
    expect(refused({ name: 'a', kind: 'c' }).message).toContain('kind must be one of a, b');
    expect(refused({ name: 'a', tags: 'x' }).message).toContain('tags must be a list');
    expect(refused(null).message).toContain('body must be an object');
  });

  it('says it once, in every shape and whatever is wrong', () => {
    const spoilt = fc.dictionary(
      fc.constantFrom(
        'thread_id',
        'mode',
        'scope',
        'argv',
        'env',
        'token',
        'current_token',
        'code',
      ),
      fc.constantFrom(null, -1, 0.5, '', '\0', 'x'.repeat(9000), [], [''], {}, { '=': '' }, true),
    );
    fc.assert(
      fc.property(fc.constantFrom(...SHAPE_NAMES), spoilt, (name, body) => {
        const parsed = parseRequest(shape(name), body);
        if (!parsed.ok) expect(parsed.error.message.match(/\bmust be\b/g)).toHaveLength(1);
      }),
      { numRuns: 2000 },
    );
  });

  it('of several forms names the field in the form it came furthest with', () => {
    expect(refused({ name: 'a', either: { y: { z: 'no' } } }).field).toBe('either.y.z');
    expect(refused({ name: 'a', either: 7 }).field).toBe('either');
  });

  it("never repeats the sender's own text, which may be a secret or a terminal sequence", () => {
    const secret = 's3cr3t-\u001b[2J';
    const told = refused({ name: secret, table: { [secret]: secret } });
    expect(JSON.stringify(told)).not.toContain('s3cr3t');
    expect(refused({ name: 'a', table: { [secret]: secret } })).toEqual({
      field: 'table',
      message: 'the request: table must be of another form',
    });
  });
});

describe('a bad answer', () => {
  it('means that client and server disagree', () => {
    const parsed = parseAnswer(form, { name: 7 });
    expect(parsed.ok ? undefined : parsed.error).toMatchObject({
      code: 'PROTOCOL_MISMATCH',
      details: { field: 'name' },
      message: "the server's answer: name must be text",
    });
  });
});

describe('parsing', () => {
  it('ignores fields it does not know, and leaves them out', () => {
    const parsed = parseRequest(form, { name: 'a', later: { any: 'thing' } });
    expect(parsed).toEqual({ ok: true, value: { name: 'a' } });
  });

  it('takes __proto__ and its kin for fields it does not know', () => {
    const value: unknown = JSON.parse(
      '{"name":"a","__proto__":{"size":-1,"polluted":true},"constructor":{"prototype":{"x":1}}}',
    );
    expect(parseRequest(form, value)).toEqual({ ok: true, value: { name: 'a' } });
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect(Reflect.get({}, 'x')).toBeUndefined();
  });

  it('of a repeated key sees the last, as JSON.parse does', () => {
    expect(parseRequest(form, JSON.parse('{"name":7,"name":"b"}'))).toMatchObject({ ok: true });
    expect(refused(JSON.parse('{"name":"b","name":7}')).field).toBe('name');
  });

  it('is not troubled by depth, size or objects that throw', () => {
    const depth = 10_000;
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);
    const deepList: unknown = JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
    expect(refused(deep).field).toBe('name');
    expect(refused(deepList).field).toBe('body');
    expect(refused({ name: 'a', inner: deep }).field).toBe('inner.deep');
    const hostile = {
      get name(): string {
        throw new Error('no');
      },
    };
    expect(refused(hostile).field).toBe('body');
    expect(refused(new Proxy({}, { get: () => expect.fail() })).field).toBe('body');
    const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`K${i}`, 1]));
    expect(refused({ name: 'a', table: many }).field).toBe('body');
  });

  it(proves('is total: every shape gives an outcome for any value', 'PR-06'), () => {
    const anything = fc.oneof(
      fc.anything({
        withNullPrototype: true,
        withMap: true,
        withBigInt: true,
        withSparseArray: true,
      }),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(fc.constantFrom(...SHAPE_NAMES), anything, (name, value) => {
        const parsed = parseRequest(shape(name), value);
        if (parsed.ok) return;
        expect(parsed.error).toBeInstanceOf(AilsdError);
        expect(parsed.error.details['field']).toMatch(/^[\w-]+(\.[\w-]+)*$/);
      }),
      { numRuns: 2000 },
    );
  });

  it('is total for values that are nearly right', () => {
    const key = fc.constantFrom('thread_id', 'mode', 'scope', 'ttl', 'actor', 'code', '__proto__');
    const value = fc.oneof(fc.constantFrom('thr_1', 'ensure', 900, -1), fc.jsonValue());
    const nearly = fc.dictionary(key, value);
    fc.assert(
      fc.property(nearly, (body) => {
        for (const name of ['negotiateRequest', 'codeRequest', 'threadSandboxRequest'] as const)
          parseRequest(shape(name), body);
      }),
      { numRuns: 1000 },
    );
  });
});
