/** The frames of `/v1/exec/ws` and what each does to a command. One command at a time; after its exit another may be started. */
import { AilsdError } from '../../../protocol/errors.js';
import {
  type ExecClientFrame,
  type ExecServerFrame,
  execClientFrames,
} from '../../../protocol/exec-frames.js';
import { parseRequest } from '../../../protocol/parse.js';
import { commandId } from '../../../protocol/shapes/fields.js';
import type { Endpoint, EndpointSession, Peer } from '../door/endpoint.js';
import { DEFAULT_SIZE } from '../shell/sizes.js';
import type { Command } from './command.js';
import type { Commands, NewCommand } from './commands.js';
import { ExecViewer } from './exec-viewer.js';
import type { StreamName } from './program.js';

type Frame = Exclude<ExecClientFrame, { type: 'auth' | 'ping' }>;
type StartFrame = Extract<ExecClientFrame, { type: 'start' }>;

export function execEndpoint(commands: Commands): Endpoint<typeof execClientFrames> {
  return { frames: execClientFrames, open: (peer) => new ExecSession(commands, peer) };
}

class ExecSession implements EndpointSession<Frame> {
  readonly #commands: Commands;
  readonly #peer: Peer;
  #viewer: ExecViewer | undefined;
  #hasStarted = false;

  constructor(commands: Commands, peer: Peer) {
    this.#commands = commands;
    this.#peer = peer;
  }

  take(frame: Frame): void | Promise<void> {
    switch (frame.type) {
      case 'start':
        return this.#start(frame);
      case 'close':
        return this.#peer.leave();
    }
    const viewer = this.#viewer;
    // What was on its way when the command ended is for nobody.
    if (viewer === undefined && this.#hasStarted) return;
    if (viewer === undefined) throw wrong('type', 'this connection has no command yet');
    const { command } = viewer;
    switch (frame.type) {
      case 'stdin':
        if (viewer.input(frame.data, frame.offset) === 'gap') throw gap('stdin');
        return;
      case 'eof':
        if (!command.endInput(frame.offset)) throw gap('eof');
        return;
      case 'ack':
        return viewer.ack(frame.stream, frame.offset);
      case 'signal':
        return command.signal(frame.signal);
      case 'resize':
        return command.resize(frame.cols, frame.rows);
    }
  }

  drained(): void {
    this.#viewer?.drained();
  }

  closed(): void {
    this.#viewer?.leave();
    this.#viewer = undefined;
  }

  async #start(frame: StartFrame): Promise<void> {
    if (this.#viewer !== undefined) throw wrong('type', 'this connection has a command already');
    const { command, isFresh } = await this.#commandOf(frame);
    this.#hasStarted = true;
    if (this.#peer.isClosed) return;
    const from = {
      stdout: offsetIn(command, 'stdout', frame.stdout_offset),
      stderr: offsetIn(command, 'stderr', frame.stderr_offset),
    };
    const viewer = new ExecViewer(this.#peer, command, from, () => {
      this.#viewer = undefined;
    });
    this.#viewer = viewer;
    const ready = {
      type: 'ready',
      command_id: command.id,
      state: isFresh ? 'fresh' : 'resumed',
      stdout_offset: from.stdout,
      stderr_offset: from.stderr,
      input_offset: command.inputOffset,
    } satisfies ExecServerFrame;
    this.#peer.send(ready);
    viewer.begin();
  }

  async #commandOf({ command_id: named, argv, ...frame }: StartFrame) {
    const parsed = named === undefined ? undefined : parseRequest(commandId, named);
    if (parsed?.ok === false) throw parsed.error;
    const id = parsed?.value;
    if (argv !== undefined) return this.#commands.run({ ...wantedBy(frame), argv, id });
    return { command: this.#commands.get(id ?? ''), isFresh: false };
  }
}

function wantedBy(frame: Omit<StartFrame, 'argv' | 'command_id'>): Omit<NewCommand, 'argv'> {
  const { cwd, env, timeout_ms: timeoutMs, limits, tty, cols, rows, term } = frame;
  const hasSize = cols !== undefined && rows !== undefined;
  return {
    cwd,
    env,
    timeoutMs,
    limits: {
      stdout: limits?.stdout_bytes ?? Number.MAX_SAFE_INTEGER,
      stderr: limits?.stderr_bytes ?? Number.MAX_SAFE_INTEGER,
    },
    keeps: 'unread',
    terminal:
      tty === true
        ? { size: hasSize ? { cols, rows } : DEFAULT_SIZE, term: term ?? DEFAULT_TERM }
        : undefined,
  };
}

const DEFAULT_TERM = 'xterm-256color';

/** Where the output goes on for one who has everything before `asked`. */
function offsetIn({ logs }: Command, stream: StreamName, asked = 0): number {
  const { start, end } = logs[stream];
  if (asked > end) throw wrong(`${stream}_offset`, 'that much was never written');
  return Math.max(asked, start);
}

function wrong(field: string, message: string): AilsdError {
  return new AilsdError('INVALID_REQUEST', message, { details: { field } });
}

function gap(frame: string): AilsdError {
  return wrong('offset', `the ${frame} frame: offset leaves a gap`);
}
