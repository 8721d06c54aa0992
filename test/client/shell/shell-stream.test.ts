import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { concatBytes } from '../../../src/base/bytes.js';
import { INPUT_MAX_BYTES, ShellStream } from '../../../src/client/shell/shell-stream.js';
import type { DataFrame } from '../../../src/protocol/frames.js';
import type { ShellServerFrame } from '../../../src/protocol/shell-frames.js';
import { Inbox } from '../../../src/stream/inbox.js';

const OPTIONS = { clientId: 'cl_1', size: { cols: 80, rows: 24 } };

/** A shell on the other side, as exact as the contract wants it and no more. */
class ModelShell {
  readonly written: Uint8Array[] = [];
  readonly applied: Uint8Array[] = [];
  readonly inbox = new Inbox();
  readonly ringBytes: number;
  length = 0;

  constructor(ringBytes: number) {
    this.ringBytes = ringBytes;
  }

  write(bytes: Uint8Array): void {
    this.written.push(bytes);
    this.length += bytes.length;
  }

  log(): Uint8Array {
    return concatBytes(this.written);
  }
}

function bytesOf(from: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => (from + at) % 251);
}

/** What a person would have in front of them: bytes, or a screen that stands for all bytes before its offset. */
class Seen {
  next = 0;
  isRight = true;

  take(offset: number, bytes: Uint8Array, log: Uint8Array): void {
    if (offset !== this.next) this.isRight = false;
    for (const [at, byte] of bytes.entries()) {
      if (log[offset + at] !== byte) this.isRight = false;
    }
    this.next = offset + bytes.length;
  }
}

describe('a shell over connections that come and go', () => {
  it('every output byte is seen once and in order and every input byte applied once, wherever the line is cut', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('output' as const), bytes: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ kind: fc.constant('input' as const), bytes: fc.integer({ min: 1, max: 60 }) }),
      fc.record({ kind: fc.constant('cut' as const), lost: fc.integer({ min: 0, max: 6 }) }),
      fc.record({ kind: fc.constant('deliver' as const), frames: fc.integer({ min: 1, max: 5 }) }),
      fc.constant({ kind: 'redraw' as const }),
    );
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 50, max: 2000 }),
        (steps, ring) => {
          const model = new ModelShell(ring);
          const stream = new ShellStream(OPTIONS);
          const seen = new Seen();
          let typed = 0;
          // What is on its way, in each direction.
          let toClient: ShellServerFrame[] = [];
          let toServer: DataFrame<'stdin'>[] = [];
          let sent = 0;

          const connect = (): void => {
            toServer = [];
            const start = stream.start();
            const first = Math.max(0, model.length - model.ringBytes);
            const isKept = start.offset !== undefined && start.offset >= first;
            const state = isKept ? 'resumed' : model.length === 0 ? 'fresh' : 'snapshot';
            sent = isKept ? (start.offset ?? 0) : model.length;
            toClient = [
              {
                type: 'ready',
                shell_id: 'sh_1',
                state,
                role: 'writer',
                offset: sent,
                input_offset: model.inbox.next,
                cols: 80,
                rows: 24,
              },
            ];
            if (state === 'snapshot') {
              const screen = { type: 'snapshot', offset: sent, cols: 80, rows: 24 } as const;
              toClient.push(
                { ...screen, screen: 'half', more: true },
                { ...screen, screen: ' and half' },
              );
            }
            send();
          };
          const send = (): void => {
            const log = model.log();
            while (sent < log.length) {
              const data = log.subarray(sent, sent + 97);
              toClient.push({ type: 'stdout', offset: sent, data });
              sent += data.length;
            }
          };
          const flush = (): void => {
            for (let frame = stream.nextInput(); frame !== undefined; frame = stream.nextInput()) {
              toServer.push(frame);
            }
          };
          // The ack may be lost with the line, and so may the input itself.
          const apply = (count: number): void => {
            for (const frame of toServer.splice(0, count)) {
              const taken = model.inbox.accept(frame.offset ?? -1, frame.data);
              expect(taken.kind).toBe('fresh');
              if (taken.kind === 'fresh') model.applied.push(taken.bytes);
              toClient.push({ type: 'ack', offset: model.inbox.next });
            }
          };
          const deliver = (count: number): void => {
            for (const frame of toClient.splice(0, count)) {
              const event = stream.receive(frame);
              if (event?.kind === 'broken') throw new Error(event.why);
              if (event?.kind === 'output') {
                seen.take(event.end - event.bytes.length, event.bytes, model.log());
              }
              if (event?.kind === 'screen') {
                expect(event.screen).toBe('half and half');
                seen.next = event.end;
              }
              flush();
            }
          };

          connect();
          for (const one of steps) {
            if (one.kind === 'output') {
              model.write(bytesOf(model.length, one.bytes));
              send();
            } else if (one.kind === 'input') {
              expect(stream.write(bytesOf(typed, one.bytes))).toBe('taken');
              typed += one.bytes;
              flush();
            } else if (one.kind === 'deliver') {
              apply(one.frames);
              deliver(one.frames);
            } else {
              if (one.kind === 'cut') {
                apply(Math.max(0, toServer.length - one.lost));
                deliver(Math.max(0, toClient.length - one.lost));
              } else stream.forgetOutput();
              stream.cut();
              connect();
            }
          }
          while (toServer.length + toClient.length > 0) {
            deliver(Number.MAX_SAFE_INTEGER);
            apply(Number.MAX_SAFE_INTEGER);
          }
          expect(seen.isRight).toBe(true);
          expect(seen.next).toBe(model.length);
          expect(concatBytes(model.applied)).toEqual(bytesOf(0, typed));
          expect(stream.unackedBytes).toBe(0);
        },
      ),
      { numRuns: process.env['AILSD_SOAK'] === undefined ? 300 : 20_000 },
    );
  });

  it('a hole in the output is never passed over in silence', () => {
    const stream = ready(new ShellStream(OPTIONS));
    expect(stream.receive({ type: 'stdout', offset: 0, data: bytesOf(0, 10) })?.kind).toBe(
      'output',
    );
    expect(stream.receive({ type: 'stdout', offset: 11, data: bytesOf(0, 10) })).toMatchObject({
      kind: 'broken',
    });
    expect(stream.start().offset).toBe(10);
  });

  it('an end is told only when all output before it is there', () => {
    const stream = ready(new ShellStream(OPTIONS));
    const exit = {
      type: 'exit',
      origin: 'remote',
      exit_code: 7,
      timed_out: false,
      oom: false,
    } as const;
    expect(stream.receive({ ...exit, offset: 5 })).toMatchObject({ kind: 'broken' });
    stream.receive({ type: 'stdout', offset: 0, data: bytesOf(0, 5) });
    expect(stream.receive({ ...exit, offset: 5 })).toMatchObject({
      kind: 'exit',
      outcome: { exitCode: 7 },
    });
  });

  it('input is bounded: what does not fit is not taken, and room comes with acks', () => {
    const stream = ready(new ShellStream(OPTIONS));
    expect(stream.write(new Uint8Array(INPUT_MAX_BYTES))).toBe('taken');
    expect(stream.write(new Uint8Array(1))).toBe('full');
    let sent = 0;
    for (let frame = stream.nextInput(); frame !== undefined; frame = stream.nextInput()) {
      sent += frame.data.length;
    }
    expect(sent).toBe(256 * 1024);
    stream.receive({ type: 'ack', offset: sent });
    expect(stream.write(new Uint8Array(1))).toBe('taken');
    expect(stream.nextInput()?.offset).toBe(sent);
  });

  it('an observer sends neither input nor size, and sends what it kept when it becomes the writer', () => {
    const stream = ready(new ShellStream(OPTIONS), 'observer');
    stream.write(bytesOf(0, 3));
    expect(stream.nextInput()).toBeUndefined();
    expect(stream.resize({ cols: 10, rows: 10 })).toBeUndefined();
    stream.receive({ type: 'control', event: 'granted', role: 'writer' });
    expect(stream.nextInput()).toMatchObject({ type: 'stdin', offset: 0, data: bytesOf(0, 3) });
  });

  it('an ack for input that never was ends the connection', () => {
    const stream = ready(new ShellStream(OPTIONS));
    expect(stream.receive({ type: 'ack', offset: 1 })).toMatchObject({ kind: 'broken' });
  });
});

function ready(stream: ShellStream, role: 'writer' | 'observer' = 'writer'): ShellStream {
  stream.start();
  stream.receive({
    type: 'ready',
    shell_id: 'sh_1',
    state: 'fresh',
    role,
    offset: 0,
    input_offset: 0,
    cols: 80,
    rows: 24,
  });
  return stream;
}
