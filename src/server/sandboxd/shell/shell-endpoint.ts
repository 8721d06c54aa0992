/** The frames of `/v1/shell/ws` and what each does to a shell. */
import { AilsdError } from '../../../protocol/errors.js';
import {
  type ShellClientFrame,
  type ShellServerFrame,
  shellClientFrames,
} from '../../../protocol/shell-frames.js';
import type { Endpoint, EndpointSession, Peer } from '../door/endpoint.js';
import type { Shell } from './shell.js';
import type { Shells } from './shells.js';
import type { Size } from './sizes.js';
import type { Line, Viewer } from './viewer.js';

type Frame = Exclude<ShellClientFrame, { type: 'auth' | 'ping' }>;
type StartFrame = Extract<ShellClientFrame, { type: 'start' }>;

export function shellEndpoint(shells: Shells): Endpoint<typeof shellClientFrames> {
  return { frames: shellClientFrames, open: (peer) => new ShellSession(shells, peer) };
}

class ShellSession implements EndpointSession<Frame> {
  readonly #shells: Shells;
  readonly #peer: Peer;
  #attached: { readonly shell: Shell; readonly viewer: Viewer } | undefined;
  #hasLeft = false;

  constructor(shells: Shells, peer: Peer) {
    this.#shells = shells;
    this.#peer = peer;
  }

  /** While a promise is pending no further frame comes. */
  take(frame: Frame): void | Promise<void> {
    switch (frame.type) {
      case 'start':
        return this.#start(frame);
      case 'close':
        this.#hasLeft = true;
        return this.#peer.leave();
    }
    const { shell, viewer } = this.#attached ?? {};
    // A client that knows nothing of `start` gets the main shell.
    if (shell === undefined || viewer === undefined) {
      if (frame.type === 'ack') return;
      return this.#start({ type: 'start' }).then(() => this.take(frame));
    }
    switch (frame.type) {
      case 'stdin':
        return this.#stdin(shell, viewer, frame.data, frame.offset);
      case 'eof':
        return this.#stdin(shell, viewer, END_OF_INPUT, undefined);
      case 'resize':
        return shell.resize(viewer, frame);
      case 'signal':
        return shell.signal(viewer, frame.signal);
      case 'control':
        this.#needWriting();
        return shell.control(viewer, frame.action);
      case 'ack':
        return shell.ack(viewer, frame.offset);
    }
  }

  drained(): void {
    this.#attached?.shell.drained(this.#attached.viewer);
  }

  isBehind(): boolean {
    const viewer = this.#attached?.viewer;
    return viewer !== undefined && viewer.sent - viewer.acked > BEHIND_BYTES;
  }

  /** A token that no longer writes gives back what it had for that. */
  identified(): void {
    const { shell, viewer } = this.#attached ?? {};
    if (viewer?.isWriter === true && !viewer.mayWrite) shell?.control(viewer, 'release');
  }

  closed(code: number): void {
    if (this.#attached === undefined) return;
    const { shell, viewer } = this.#attached;
    this.#attached = undefined;
    const isClean = code === 1000;
    shell.detach(viewer, isClean || this.#hasLeft ? 'left' : 'cut', isClean);
  }

  async #start(frame: StartFrame): Promise<void> {
    if (this.#attached !== undefined)
      throw new AilsdError('INVALID_REQUEST', 'this connection has a shell already', {
        details: { field: 'type' },
      });
    const isObserver = frame.observe === true || !this.#peer.identity.allowed.has('shell');
    const size = sizeOf(frame);
    const { term, cwd, env, command, size_policy: policy } = frame;
    const shell = await this.#shells.open(
      frame.shell_id,
      { size, policy, term, cwd, env, command },
      !isObserver,
    );
    if (this.#peer.isClosed) return;
    const viewer = shell.attach({
      line: this.#line(),
      clientId: frame.client_id,
      offset: frame.offset,
      inputOffset: frame.input_offset,
      size: isObserver ? undefined : size,
      policy,
      historyLines: frame.history,
      isObserver,
    });
    this.#attached = { shell, viewer };
  }

  #stdin(shell: Shell, viewer: Viewer, bytes: Uint8Array, offset: number | undefined): void {
    if (shell.input(viewer, bytes, offset) === 'taken') return;
    throw new AilsdError('INVALID_REQUEST', 'the stdin frame: offset leaves a gap', {
      details: { field: 'offset' },
    });
  }

  #needWriting(): void {
    if (this.#attached?.viewer.mayWrite === true) return;
    throw new AilsdError('CAPABILITY_DENIED', 'this connection only watches', {
      details: { capability: 'shell' },
    });
  }

  #line(): Line {
    const peer = this.#peer;
    return {
      get identity() {
        return peer.identity;
      },
      get bufferedBytes() {
        return peer.bufferedBytes;
      },
      send: (frame: Exclude<ShellServerFrame, { type: 'stdout' }>) => peer.send(frame),
      sendOutput: (offset, data) => peer.send({ type: 'stdout', offset, data }),
      hold: () => peer.hold(),
      release: () => peer.release(),
      close: (close) => peer.close(close),
    };
  }
}

/** More than a client that reads leaves unacknowledged. */
const BEHIND_BYTES = 128 * 1024;

/** Ctrl-D: what a terminal has for it. */
const END_OF_INPUT = new Uint8Array([4]);

/** Half a size is none. */
function sizeOf({ cols, rows }: StartFrame): Size | undefined {
  return cols === undefined || rows === undefined ? undefined : { cols, rows };
}
