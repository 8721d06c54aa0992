import { describe, expect, it } from 'vitest';
import { CLOSES } from '../../src/protocol/closes.js';
import {
  AilsdError,
  codeForFace,
  ERRORS,
  type ErrorCode,
  errorRow,
  FACE_NAMES,
  isErrorCode,
} from '../../src/protocol/errors.js';
import { proves } from '../requirements.js';

const codes = Object.keys(ERRORS).filter(isErrorCode);

describe('errors', () => {
  it(proves('every error has a status, a close, an exit, retryable and a hint', 'PR-02'), () => {
    for (const code of codes) {
      const row = errorRow(code);
      expect(row.status, code).toBeGreaterThanOrEqual(400);
      expect(row.status, code).toBeLessThan(600);
      expect(CLOSES, code).toHaveProperty(row.close);
      expect([1, 2, 3, 4, 5, 6, 7, 8, 9, 125, 255], code).toContain(row.exit);
      expect(row.hint, code).toMatch(/^[a-z`].*[^.]$/s);
      expect(code).toMatch(/^[A-Z][A-Z_]*$/);
    }
  });

  it(proves('the statuses are those of seed 002 and the contract', 'PR-02'), () => {
    const statuses: Partial<Record<ErrorCode, number>> = {
      INVALID_REQUEST: 400,
      UNAUTHENTICATED: 401,
      FORBIDDEN: 403,
      CAPABILITY_DENIED: 403,
      SESSION_NOT_FOUND: 404,
      BINDING_NOT_FOUND: 404,
      SESSION_CONFLICT: 409,
      BINDING_CONFLICT: 409,
      SESSION_EXPIRED: 410,
      PRECONDITION_FAILED: 412,
      PAYLOAD_TOO_LARGE: 413,
      SANDBOX_STARTING: 423,
      RATE_LIMITED: 429,
      PROVIDER_UNAVAILABLE: 503,
      BACKEND_UNAVAILABLE: 503,
      STORAGE_FULL: 507,
    };
    for (const code of codes.filter((one) => statuses[one] !== undefined))
      expect(errorRow(code).status, code).toBe(statuses[code]);
    expect(codes).toEqual(expect.arrayContaining(Object.keys(statuses)));
  });

  it(proves('MVP and full names are pairs that mean one thing', 'PR-02'), () => {
    expect(FACE_NAMES).toEqual([
      { mvp: 'SESSION_NOT_FOUND', full: 'BINDING_NOT_FOUND' },
      { mvp: 'SESSION_CONFLICT', full: 'BINDING_CONFLICT' },
      { mvp: 'FORBIDDEN', full: 'CAPABILITY_DENIED' },
      { mvp: 'PROVIDER_UNAVAILABLE', full: 'BACKEND_UNAVAILABLE' },
    ]);
    for (const { mvp, full } of FACE_NAMES) {
      expect(codeForFace(full, 'mvp')).toBe(mvp);
      expect(codeForFace(mvp, 'full')).toBe(full);
      expect({ ...errorRow(mvp), hint: '' }).toEqual({ ...errorRow(full), hint: '' });
    }
  });

  it('a code without a pair is called the same on both faces, and asking twice changes nothing', () => {
    for (const code of codes) {
      for (const face of ['mvp', 'full'] as const) {
        const once = codeForFace(code, face);
        expect(codeForFace(once, face)).toBe(once);
        expect(errorRow(once).status).toBe(errorRow(code).status);
      }
    }
    expect(codeForFace('UNAUTHENTICATED', 'mvp')).toBe('UNAUTHENTICATED');
  });

  it('an error keeps what the caller may read apart from what only the log may', () => {
    const cause = new Error('below');
    const details = { field: 'ttl' };
    const error = new AilsdError('INVALID_REQUEST', 'no', { cause, details, internal: 'x' });
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', details, internal: 'x', cause });
    expect(error.row).toBe(ERRORS.INVALID_REQUEST);
    expect(error.hint).toBe(ERRORS.INVALID_REQUEST.hint);
    expect(new AilsdError('INTERNAL', 'no', { hint: 'better' }).hint).toBe('better');
    expect('cause' in new AilsdError('INTERNAL', 'no')).toBe(false);
  });

  it('what is inherited by every object is no error code', () => {
    for (const word of ['constructor', '__proto__', 'toString', 'internal'])
      expect(isErrorCode(word)).toBe(false);
  });
});
