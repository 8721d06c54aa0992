import { describe, expect, it } from 'vitest';
import { decodeFrame, encodeFrame } from '../../src/protocol/frame-codec.js';
import { FRAME_SETS, recordedFrames } from '../fixtures/frames/recorded.js';
import { proves } from '../requirements.js';

const recorded = recordedFrames();

describe('a recorded message', () => {
  it(proves('means what it meant when it was sent', 'PR-07'), () => {
    for (const { set, message, frame } of recorded) {
      expect(decodeFrame(FRAME_SETS[set], message)).toStrictEqual({ ok: true, frame });
    }
  });

  it(proves('is what this version sends, byte for byte', 'PR-07'), () => {
    for (const { message, frame } of recorded) {
      const wire = typeof message === 'string' ? 'json' : 'binary';
      expect(encodeFrame(frame, wire)).toStrictEqual(message);
    }
  });

  it('is there for every frame of every endpoint, in each codec that carries it', () => {
    const seen = new Set(
      recorded.map(({ set, message, frame }) => `${set} ${frame.type} ${typeof message}`),
    );
    for (const [set, { control, data }] of Object.entries(FRAME_SETS)) {
      for (const type of Object.keys(control)) expect(seen).toContain(`${set} ${type} string`);
      for (const type of data) {
        expect(seen).toContain(`${set} ${type} string`);
        expect(seen).toContain(`${set} ${type} object`);
      }
    }
  });
});

describe('on the wire', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  it('UTF-8 is a string, escaped only where JSON must', () => {
    expect(encodeFrame({ type: 'stdout', offset: 3, data: bytes('é"\\\x1b\u2028') }, 'json')).toBe(
      '{"type":"stdout","offset":3,"data":"é\\"\\\\\\u001b\u2028"}',
    );
  });

  it('other bytes are base64, and say so', () => {
    const data = Uint8Array.of(0xe6, 0x97);
    expect(encodeFrame({ type: 'stdout', offset: 3, data }, 'json')).toBe(
      '{"type":"stdout","offset":3,"encoding":"base64","data":"5pc="}',
    );
  });

  it('base64 is what everybody else makes of the same bytes', () => {
    for (let length = 1; length < 260; length++) {
      const data = Uint8Array.from({ length }, (_, i) => 255 - ((i * 7 + length) & 127));
      const text = encodeFrame({ type: 'stdin', data }, 'json');
      expect(JSON.parse(String(text)).data).toBe(Buffer.from(data).toString('base64'));
    }
  });
});
