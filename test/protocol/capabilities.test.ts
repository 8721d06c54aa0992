import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  allows,
  CAPABILITIES,
  type Capability,
  DEFAULT_CAPABILITIES,
  formatCapabilities,
  fromWord,
  type GrantInput,
  grantCapabilities,
  isCapability,
  parseCapabilities,
  SCOPE_CAPABILITIES,
  toS2,
  vocabularyOf,
} from '../../src/protocol/capabilities.js';
import { isScope, SCOPES, type Scope } from '../../src/protocol/scopes.js';
import { proves } from '../requirements.js';

const all = Object.keys(CAPABILITIES).filter(isCapability);
const scopes = Object.keys(SCOPES).filter(isScope);
const ALL_SCOPES: readonly Scope[] = scopes;

/** Written out by hand, so that the table in the source is not its own witness. */
const INCLUDES: Readonly<Record<Capability, readonly Capability[]>> = {
  'fs:ro': ['fs:ro'],
  'fs:rw': ['fs:rw', 'fs:ro'],
  shell: ['shell', 'shell:ro'],
  'shell:ro': ['shell:ro'],
  process: ['process'],
  snapshot: ['snapshot'],
  tunnel: ['tunnel'],
};

describe('the words for capabilities', () => {
  it(proves('canonical and S2 words mean each other', 'PR-04'), () => {
    expect(all.map((one) => [one, toS2([one])])).toEqual([
      ['fs:ro', ['fs_read']],
      ['fs:rw', ['fs_read', 'fs_write']],
      ['shell', ['shell']],
      ['shell:ro', ['shell_read']],
      ['process', ['exec']],
      ['snapshot', ['snapshot']],
      ['tunnel', ['tunnel']],
    ]);
    expect(fromWord('fs_read')).toBe('fs:ro');
    expect(fromWord('fs_write')).toBe('fs:rw');
    expect(fromWord('exec')).toBe('process');
    expect(fromWord('process')).toBe('process');
    for (const unknown of ['', 'SHELL', 'fs', 'gpu', 'constructor', '__proto__'])
      expect(fromWord(unknown)).toBeUndefined();
  });

  it(proves('any set survives the way to S2 and back', 'PR-04'), () => {
    fc.assert(
      fc.property(fc.subarray(all), (set) => {
        const back = toS2(set).map(fromWord);
        const known = back.filter((one) => one !== undefined);
        expect(known).toHaveLength(back.length);
        expect(formatCapabilities(known)).toBe(formatCapabilities(set));
        expect(toS2(known)).toEqual(toS2(set));
      }),
    );
  });

  it(proves('having more includes having less, and never the other way round', 'PR-04'), () => {
    for (const held of all) {
      for (const needed of all)
        expect(allows([held], needed), `${held} ${needed}`).toBe(INCLUDES[held].includes(needed));
    }
    expect(allows([], 'fs:ro')).toBe(false);
  });

  it('a list gives away its vocabulary, unless its words are common to both', () => {
    expect(vocabularyOf(['fs_read', 'shell'])).toBe('s2');
    expect(vocabularyOf(['shell', 'exec'])).toBe('s2');
    expect(vocabularyOf(['fs:rw', 'shell'])).toBe('canonical');
    expect(vocabularyOf(['process'])).toBe('canonical');
    expect(vocabularyOf(['shell', 'tunnel', 'snapshot'])).toBeUndefined();
    expect(vocabularyOf(['fs_read', 'fs:ro'])).toBe('canonical');
    expect(vocabularyOf(['gpu'])).toBeUndefined();
    expect(vocabularyOf([])).toBeUndefined();
  });
});

describe('the scope claim of a sandbox token', () => {
  it(proves('is whole canonical words with one space between, and nothing else', 'PR-04'), () => {
    expect(parseCapabilities('fs:rw shell')).toEqual(['fs:rw', 'shell']);
    expect(parseCapabilities('shell:ro')).toEqual(['shell:ro']);
    for (const bad of [
      'SHELL',
      'fs:rw,shell',
      ['fs:rw', 'shell'],
      'fs:rw  shell',
      ' fs:rw',
      'fs:rw ',
      'fs:rw\tshell',
      'fs_read',
      'exec',
      'fs:rw gpu',
      '',
      ' ',
      'constructor',
      null,
      undefined,
      7,
      { scope: 'shell' },
    ])
      expect(parseCapabilities(bad), JSON.stringify(bad)).toBeUndefined();
  });

  it('any set survives being written and read', () => {
    fc.assert(
      fc.property(fc.subarray(all, { minLength: 1 }), (set) => {
        const text = formatCapabilities(set);
        const read = parseCapabilities(text) ?? [];
        expect(formatCapabilities(read)).toBe(text);
        for (const one of all) expect(allows(read, one)).toBe(allows(set, one));
      }),
    );
  });

  it('reading is total', () => {
    fc.assert(fc.property(fc.anything(), (value) => void parseCapabilities(value)));
  });
});

describe('what is granted', () => {
  it(proves('OAuth scopes turn into capabilities as section 4 says', 'PR-04'), () => {
    expect(SCOPE_CAPABILITIES).toEqual({
      'read:sandbox': ['fs:ro'],
      'write:sandbox': ['fs:rw', 'snapshot'],
      'exec:sandbox': ['process'],
      'attach:sandbox': ['shell', 'shell:ro', 'tunnel'],
      'admin:sandbox': [],
    });
    const everything = (scope: Scope) =>
      grantCapabilities({ requested: all, scopes: [scope] }).words.join(' ');
    expect(Object.fromEntries(scopes.map((scope) => [scope, everything(scope)]))).toEqual({
      'read:sandbox': 'fs:ro',
      'write:sandbox': 'fs:rw snapshot',
      'exec:sandbox': 'process',
      'attach:sandbox': 'shell tunnel',
      'admin:sandbox': '',
    });
  });

  it(proves('a human gets files and a shell, an agent files and processes', 'PR-04'), () => {
    expect(DEFAULT_CAPABILITIES).toEqual({
      human: ['fs:rw', 'shell'],
      agent: ['fs:rw', 'process'],
    });
  });

  it('a scope nobody here knows gives nothing, and takes nothing away', () => {
    for (const word of ['openid', 'gpu:sandbox', 'constructor', '__proto__', '']) {
      expect(grantCapabilities({ requested: ['fs:ro'], scopes: [word] }).capabilities).toEqual([]);
      expect(
        grantCapabilities({ requested: ['fs:ro'], scopes: [word, 'read:sandbox'] }).capabilities,
      ).toEqual(['fs:ro']);
    }
  });

  it('fs:rw with the read scope alone is downgraded to fs:ro, and the answer says so', () => {
    const granted = grantCapabilities({ requested: ['fs:rw', 'shell'], scopes: ['read:sandbox'] });
    expect(granted).toEqual({
      capabilities: ['fs:ro'],
      words: ['fs:ro'],
      downgraded: [{ requested: 'fs:rw', granted: 'fs:ro' }],
      denied: ['shell'],
    });
  });

  it(proves("seed 002's request is answered in its own words", 'PR-04'), () => {
    const requested = ['fs_read', 'fs_write', 'shell', 'exec'];
    const ceiling: readonly Capability[] = ['fs:rw', 'shell'];
    const granted = grantCapabilities({ requested, scopes, ceiling });
    expect(granted.words).toEqual(['fs_read', 'fs_write', 'shell']);
    expect(granted.capabilities).toEqual(['fs:rw', 'shell']);
    expect(granted.denied).toEqual(['exec']);
    const less = grantCapabilities({ requested, scopes: ['read:sandbox'] });
    expect(less.words).toEqual(['fs_read']);
    expect(less.downgraded).toEqual([{ requested: 'fs_write', granted: 'fs_read' }]);
    expect(less.denied).toEqual(['shell', 'exec']);
  });

  it('a shell becomes watching one where a grant allows no more', () => {
    const granted = grantCapabilities({ requested: ['shell'], scopes, grant: ['shell:ro'] });
    expect(granted.capabilities).toEqual(['shell:ro']);
    expect(granted.downgraded).toEqual([{ requested: 'shell', granted: 'shell:ro' }]);
    const inS2 = grantCapabilities({
      requested: ['shell'],
      scopes,
      grant: ['shell:ro'],
      vocabulary: 's2',
    });
    expect(inS2.words).toEqual(['shell_read']);
  });

  it('a word nobody knows is denied, and the rest is granted', () => {
    const granted = grantCapabilities({ requested: ['gpu', 'process', 'gpu'], scopes });
    expect(granted).toMatchObject({ capabilities: ['process'], denied: ['gpu'], downgraded: [] });
  });

  it('an empty limit leaves nothing; an absent one does not limit', () => {
    expect(grantCapabilities({ requested: all, scopes, grant: [] }).capabilities).toEqual([]);
    expect(grantCapabilities({ requested: all, scopes: [] }).capabilities).toEqual([]);
    expect(grantCapabilities({ requested: [], scopes }).capabilities).toEqual([]);
    const whole = grantCapabilities({ requested: all, scopes: ALL_SCOPES });
    expect(whole.capabilities).toEqual(['fs:rw', 'shell', 'process', 'snapshot', 'tunnel']);
    expect(whole.denied).toEqual([]);
    expect(whole.downgraded).toEqual([]);
  });
});

describe('the laws of granting', () => {
  const word = fc.constantFrom(...all, 'fs_read', 'fs_write', 'shell_read', 'exec', 'gpu', 'SHELL');
  const limit = fc.option(fc.subarray(all), { nil: undefined });
  const inputs: fc.Arbitrary<GrantInput> = fc.record({
    requested: fc.array(word, { maxLength: 10 }),
    scopes: fc.subarray(scopes),
    ceiling: limit,
    actorPolicy: limit,
    grant: limit,
  });

  const closure = (capabilities: readonly Capability[]): ReadonlySet<Capability> =>
    new Set(capabilities.flatMap((one) => INCLUDES[one]));

  it(proves('never more than any one of the limits allows', 'PR-05'), () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const limits = [
          input.requested.map(fromWord).filter((one) => one !== undefined),
          input.scopes
            .filter(isScope)
            .flatMap((scope): readonly Capability[] => SCOPE_CAPABILITIES[scope]),
          ...[input.ceiling, input.actorPolicy, input.grant].filter((one) => one !== undefined),
        ].map(closure);
        const granted = closure(grantCapabilities(input).capabilities);
        for (const one of granted) {
          for (const allowed of limits) expect(allowed.has(one), one).toBe(true);
        }
        // Nor less: what every limit allows is granted.
        for (const one of all) {
          if (limits.every((allowed) => allowed.has(one))) expect(granted.has(one)).toBe(true);
        }
      }),
    );
  });

  it(
    proves('asking again for what was granted gives the same, with nothing to tell', 'PR-05'),
    () => {
      fc.assert(
        fc.property(inputs, (input) => {
          const once = grantCapabilities(input);
          const twice = grantCapabilities({ ...input, requested: once.words });
          expect(twice.capabilities).toEqual(once.capabilities);
          expect(twice.downgraded).toEqual([]);
          expect(twice.denied).toEqual([]);
        }),
      );
    },
  );

  it(proves('it does not matter which limit says what, nor in which order', 'PR-05'), () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const { ceiling, actorPolicy, grant } = input;
        const once = grantCapabilities(input);
        for (const turned of [
          { ceiling: grant, actorPolicy: ceiling, grant: actorPolicy },
          { ceiling: actorPolicy, actorPolicy: grant, grant: ceiling },
          { ceiling: ceiling && [...ceiling].reverse() },
        ])
          expect(grantCapabilities({ ...input, ...turned })).toEqual(once);
        const backwards = [...input.requested].reverse();
        expect(grantCapabilities({ ...input, requested: backwards }).capabilities).toEqual(
          once.capabilities,
        );
      }),
    );
  });

  it('every word asked for is granted, downgraded or denied, and only one of them', () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const { capabilities, downgraded, denied } = grantCapabilities(input);
        for (const asked of new Set(input.requested)) {
          const meaning = fromWord(asked);
          const fates = [
            meaning !== undefined && allows(capabilities, meaning),
            downgraded.some(({ requested }) => requested === asked),
            denied.includes(asked),
          ];
          expect(fates.filter(Boolean), asked).toHaveLength(1);
        }
      }),
    );
  });

  it('the words of the answer mean what was granted', () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const { capabilities, words } = grantCapabilities(input);
        const meant = words.map(fromWord).filter((one) => one !== undefined);
        expect(closure(meant)).toEqual(closure(capabilities));
      }),
    );
  });
});
