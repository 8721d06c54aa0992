/**
 * An open folder, and the things in it by name. On Linux every call goes through the folder's descriptor, so that nothing which is
 * moved or linked meanwhile leads elsewhere. Other systems have no such names: there a program of the sandbox runs as the daemon's own
 * user, and could reach no more by a swapped link than it can by itself.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, opendir, readlink } from 'node:fs/promises';
import { errorCode } from '../../../base/error-code.js';
import { type Name, toBytes } from './spelling.js';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const HAS_DESCRIPTOR_PATHS = process.platform === 'linux';

export class Folder implements AsyncDisposable {
  readonly handle: FileHandle;
  readonly #path: Buffer;

  private constructor(handle: FileHandle, path: Buffer) {
    this.handle = handle;
    this.#path = HAS_DESCRIPTOR_PATHS ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
  }

  /** Never by a link as the last step. */
  static async open(path: string | Buffer): Promise<Folder> {
    const bytes = Buffer.isBuffer(path) ? path : Buffer.from(path);
    return new Folder(await open(bytes, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), bytes);
  }

  /** What a system call takes for a thing in this folder. */
  at(name: Name): Buffer {
    return Buffer.concat([this.#path, SLASH, toBytes(name)]);
  }

  folder(name: Name): Promise<Folder> {
    return Folder.open(this.at(name));
  }

  /** Returns at once whatever it is; what it is, its own status says. */
  file(name: Name): Promise<FileHandle> {
    return open(this.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  }

  async status(name: Name): Promise<BigIntStats | undefined> {
    try {
      return await lstat(this.at(name), { bigint: true });
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** As written, as Latin-1. `undefined`: it is no link any more. */
  async target(name: Name): Promise<string | undefined> {
    try {
      return await readlink(this.at(name), { encoding: 'latin1' });
    } catch (error) {
      const code = errorCode(error);
      if (code === 'EINVAL' || code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** In no order. */
  async *names(): AsyncGenerator<Name, void, undefined> {
    for await (const { name } of await opendir(this.#path.toString(), { encoding: 'latin1' }))
      yield name;
  }

  async sync(): Promise<void> {
    await this.handle.sync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.handle.close();
  }
}

const SLASH = Buffer.from('/');
