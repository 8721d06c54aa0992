/** How fast frames are made and read: 16 KiB of terminal output at a time, best of several rounds. Checks the bytes too. */
import { decodeBinary, encodeBinary } from '../../src/protocol/frame-binary.js';
import { decodeJson, encodeJson } from '../../src/protocol/frame-json.js';
import type { DataFrame, Decoded } from '../../src/protocol/frames.js';
import { type ShellServerFrame, shellServerFrames } from '../../src/protocol/shell-frames.js';

export interface FrameCodecSpeeds {
  readonly encodeGBps: number;
  readonly decodeGBps: number;
  readonly jsonEncodeMBps: number;
  readonly jsonDecodeMBps: number;
  /** The same for bytes that are not UTF-8, which JSON carries as base64. */
  readonly base64EncodeMBps: number;
  readonly base64DecodeMBps: number;
}

export async function frameCodecBench(): Promise<FrameCodecSpeeds> {
  const output = frameOf(
    Buffer.alloc(CHUNK_BYTES, 'drwxr-xr-x 2 user user 4096 Jan  1 00:00 src\r\n'),
  );
  const noise = frameOf(Uint8Array.from({ length: CHUNK_BYTES }, (_, i) => (i * 167 + 13) & 255));
  const binary = encodeBinary(output);
  const text = encodeJson(output);
  const base64 = encodeJson(noise);
  expectSame(output, decodeBinary(shellServerFrames, binary));
  expectSame(output, decodeJson(shellServerFrames, text));
  expectSame(noise, decodeJson(shellServerFrames, base64));

  // Results are kept for a moment, so that no work can be optimised away.
  let kept: unknown;
  const pace = async (run: () => unknown, count: number): Promise<number> => {
    let best = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      for (let i = 0; i < count; i++) kept = run();
      best = Math.max(best, (count * CHUNK_BYTES) / (performance.now() - start) / 1000);
      // Lets garbage of one round be collected before the next is timed.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return best;
  };
  const speeds = {
    encodeGBps: (await pace(() => encodeBinary(output), 4000)) / 1000,
    decodeGBps: (await pace(() => decodeBinary(shellServerFrames, binary), 20_000)) / 1000,
    jsonEncodeMBps: await pace(() => encodeJson(output), 500),
    jsonDecodeMBps: await pace(() => decodeJson(shellServerFrames, text), 500),
    base64EncodeMBps: await pace(() => encodeJson(noise), 500),
    base64DecodeMBps: await pace(() => decodeJson(shellServerFrames, base64), 500),
  };
  if (kept === undefined) throw new Error('nothing was coded');
  return speeds;
}

const CHUNK_BYTES = 16 * 1024;
const ROUNDS = 7;

function frameOf(data: Uint8Array): DataFrame<'stdout'> {
  return { type: 'stdout', offset: 123_456_789_012, data };
}

function expectSame(sent: DataFrame, got: Decoded<ShellServerFrame>): void {
  const same =
    got.ok && got.frame.type === 'stdout' && Buffer.compare(sent.data, got.frame.data) === 0;
  if (!same) throw new Error('a frame came back changed');
}
