/**
 * A program of its own, so that native code that hangs or crashes takes only it along. Alone it writes, reads and
 * deletes an entry in the system's keychain and says on stdout how that went; with `serve PARENT` it does what it is asked
 * on stdin until that ends. Passwords pass through the pipes alone, never through arguments.
 */
import { randomUUID } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { type Keychain, probeKeychain } from './keychain.js';
import { openDriver } from './keychain-driver.js';
import { type KeychainRequest, Lines, parseRequest, toLine } from './keychain-wire.js';

const [, , mode, parent] = process.argv;
if (mode === 'serve') void serve(Number(parent));
else void probe();

async function probe(): Promise<void> {
  try {
    await probeKeychain(await openDriver(), randomUUID());
    process.stdout.write(JSON.stringify({ works: true }));
  } catch (error) {
    process.stdout.write(JSON.stringify({ works: false, reason: reasonOf(error) }));
  }
}

async function serve(parent: number): Promise<void> {
  endWithParent(parent);
  const driver = await openDriver();
  const lines = new Lines();
  process.stdin.setEncoding('utf8');
  for await (const text of process.stdin) {
    for (const line of lines.push(String(text))) {
      const request = parseRequest(line);
      if (request !== undefined) process.stdout.write(await answer(driver, request));
    }
  }
}

async function answer(driver: Keychain, { id, call, given }: KeychainRequest): Promise<string> {
  const [service = '', account = '', password = ''] = given;
  try {
    switch (call) {
      case 'getPassword':
        return toLine({ id, value: await driver.getPassword(service, account) });
      case 'setPassword':
        return toLine({ id, value: await driver.setPassword(service, account, password) });
      case 'deletePassword':
        return toLine({ id, value: await driver.deletePassword(service, account) });
      case 'findCredentials':
        return toLine({ id, value: await driver.findCredentials(service) });
      case 'findPassword':
        return toLine({ id, value: await driver.findPassword(service) });
    }
  } catch (error) {
    return toLine({ id, error: reasonOf(error) });
  }
}

/**
 * Stuck in a native call we would not notice that stdin has ended; another thread does, by who our parent is. That is
 * told, not looked up: the parent may be gone before we look.
 */
function endWithParent(parent: number): void {
  const watch = `
    const { workerData: parent } = require('node:worker_threads');
    setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), 1000);
  `;
  new Worker(watch, { eval: true, workerData: parent }).unref();
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
