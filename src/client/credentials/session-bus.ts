/** Asks the D-Bus session bus whether it is there, before native code does: that would wait for it for ever. */
import { connect, type Socket } from 'node:net';
import type { Clock } from '../../base/clock.js';

export interface BusOptions {
  /** DBUS_SESSION_BUS_ADDRESS. */
  readonly address: string | undefined;
  readonly userId: number | undefined;
  readonly clock: Clock;
}

export const BUS_ANSWER_MS = 500;

/** Why the bus can't be used, or `undefined` if it can. Never starts one: an absent address is an answer. */
export async function whyNoBus({
  address,
  userId,
  clock,
}: BusOptions): Promise<string | undefined> {
  if (address === undefined || address === '') return 'there is no D-Bus session';
  const places = address.split(';').map(parsePlace);
  const found = places.find((place) => place !== undefined);
  if (found === undefined) return 'the D-Bus session has an address that is not understood';
  const timer = new AbortController();
  const socket = connect(found);
  try {
    const late = clock
      .sleep(BUS_ANSWER_MS, timer.signal)
      .then(() => 'the D-Bus session does not answer');
    return await Promise.race([greet(socket, userId ?? 0), late]);
  } finally {
    timer.abort();
    socket.destroy();
  }
}

/** The D-Bus specification, "Authentication Protocol": a NUL, then lines; a server that lives answers OK or REJECTED. */
function greet(socket: Socket, userId: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    let heard = '';
    socket.on('connect', () => {
      socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(userId)).toString('hex')}\r\n`);
    });
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1');
      if (heard.startsWith('OK ')) resolve(undefined);
      else if (heard.length > 3) resolve('the D-Bus session does not let us in');
    });
    socket.on('error', () => resolve('the D-Bus session cannot be connected to'));
    socket.on('close', () => resolve('the D-Bus session closed the connection'));
  });
}

type Place = { readonly path: string } | { readonly host: string; readonly port: number };

/** The D-Bus specification, "Server Addresses": `unix:path=…,guid=…`; values are percent-encoded. */
function parsePlace(address: string): Place | undefined {
  const [, transport, rest = ''] = /^([a-z-]+):(.*)$/.exec(address.trim()) ?? [];
  const values = new Map(
    rest.split(',').map((pair): [string, string] => {
      const [key = '', ...value] = pair.split('=');
      return [key, decodeValue(value.join('='))];
    }),
  );
  const path = values.get('path');
  const abstract = values.get('abstract');
  if (transport === 'unix' && path !== undefined) return { path };
  // Linux's names without a file begin with a NUL.
  if (transport === 'unix' && abstract !== undefined) return { path: `\0${abstract}` };
  const port = Number(values.get('port'));
  if (transport !== 'tcp' || !Number.isInteger(port) || port < 1 || port > 65_535) return undefined;
  return { host: values.get('host') ?? 'localhost', port };
}

function decodeValue(value: string): string {
  return value.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
