import { describe, expect, it } from 'vitest';
import { execServerFrames } from '../../src/protocol/exec-frames.js';
import {
  DATA_HEADER_BYTES,
  decodeBinary,
  encodeBinary,
  writeDataHeader,
} from '../../src/protocol/frame-binary.js';
import { shellClientFrames, shellServerFrames } from '../../src/protocol/shell-frames.js';
import { frameCodecBench } from '../bench/frame-codec.js';
import { proves } from '../requirements.js';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (digits: string): Uint8Array =>
  new Uint8Array(Buffer.from(digits.replaceAll(' ', ''), 'hex'));

describe('a binary frame', () => {
  it('is a byte for version and stream, eight for the offset, and the data', () => {
    const data = Buffer.from('ls\n');
    expect(hex(encodeBinary({ type: 'stdin', offset: 0, data }))).toBe('1000000000000000006c730a');
    expect(hex(encodeBinary({ type: 'stdout', offset: 0x1122_3344_5566, data }))).toBe(
      '1100001122334455666c730a',
    );
    expect(hex(encodeBinary({ type: 'stderr', offset: 2 ** 53 - 1, data }))).toBe(
      '12001fffffffffffff6c730a',
    );
  });

  it('without an offset has all ones in its place', () => {
    const data = Uint8Array.of(0xff);
    expect(hex(encodeBinary({ type: 'stdin', data }))).toBe('10ffffffffffffffffff');
  });

  it(
    proves(
      'that is cut short, of another version or of a stream not read here is an error',
      'PR-08',
    ),
    () => {
      for (const digits of ['', '10', '10 00000000000000', '7b']) {
        expect(decodeBinary(shellClientFrames, bytes(digits))).toMatchObject({
          ok: false,
          error: { code: 'INVALID_REQUEST' },
        });
      }
      for (const first of ['00', '20', '13', '1f', '11', '12', 'ff', '7b']) {
        expect(
          decodeBinary(shellClientFrames, bytes(`${first} 0000000000000000 61`)),
        ).toMatchObject({
          ok: false,
          error: { code: 'INVALID_REQUEST', details: { field: 'type' } },
        });
      }
      expect(decodeBinary(shellServerFrames, bytes('12 0000000000000000')).ok).toBe(false);
      expect(decodeBinary(execServerFrames, bytes('12 0000000000000000')).ok).toBe(true);
    },
  );

  it(proves('with an offset that no number holds exactly is an error', 'PR-08'), () => {
    for (const offset of [
      '0020000000000000',
      'ffffffff00000000',
      'fffffffffffffffe',
      '8000000000000000',
    ]) {
      expect(decodeBinary(shellClientFrames, bytes(`10 ${offset} 61`))).toMatchObject({
        ok: false,
        error: { code: 'INVALID_REQUEST', details: { field: 'offset' } },
      });
    }
  });

  it('is read without a copy: its data is a view of the message', () => {
    const message = encodeBinary({ type: 'stdin', offset: 5, data: Uint8Array.of(1, 2, 3) });
    const decoded = decodeBinary(shellClientFrames, message);
    if (!decoded.ok) expect.fail('was refused');
    message[DATA_HEADER_BYTES] = 9;
    expect([...decoded.frame.data]).toEqual([9, 2, 3]);
    expect(decoded.frame.data.buffer).toBe(message.buffer);
  });

  it('can be made around data that is already in place', () => {
    const buffer = new Uint8Array(4 + DATA_HEADER_BYTES + 2).fill(0xaa);
    buffer.set([0x68, 0x69], 4 + DATA_HEADER_BYTES);
    writeDataHeader(buffer, 4, 'stdout', 258);
    expect(hex(buffer)).toBe('aaaaaaaa1100000000000001026869');
    expect(() => writeDataHeader(buffer, 7, 'stdout', 0)).toThrow(RangeError);
    expect(() => writeDataHeader(buffer, -1, 'stdout', 0)).toThrow(RangeError);
  });

  it('of 16 KiB is made and read at a gigabyte a second or more', async () => {
    const { encodeGBps, decodeGBps } = await frameCodecBench();
    expect(encodeGBps).toBeGreaterThan(1);
    expect(decodeGBps).toBeGreaterThan(1);
  });
});
