/** The policy that `admin client set` sends: what there is, with what the command line says on top, or a file's. */
import type { Asker } from '../../client/sessions/asker.js';
import { callRoute, type Document, isDocument } from '../../client/sessions/call.js';
import type { Capability } from '../../protocol/capabilities.js';
import { AilsdError } from '../../protocol/errors.js';
import type { Context } from '../context.js';
import { readInput } from '../read-input.js';
import { collectCapabilities } from '../sessions/options.js';

export interface ClientSetOptions {
  readonly ceiling?: readonly Capability[] | boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly sidecar: boolean;
  readonly sidecarImage?: string;
  readonly sidecarAudience?: string;
  readonly sidecarScope?: readonly string[];
  readonly from?: string;
}

const MOST_BYTES = 256 * 1024;
const NONE: Document = { sidecar: null, environment: {}, capability_ceiling: null };

/** The negated form makes `true` the value of one that is not given. */
export function collectCeiling(
  value: string,
  before: readonly Capability[] | boolean | undefined,
): readonly Capability[] {
  return collectCapabilities(value, Array.isArray(before) ? before : []);
}

export async function policyOf(
  context: Context,
  asker: Asker,
  client: string,
  options: ClientSetOptions,
): Promise<Document> {
  if (options.from !== undefined) return fromFile(context, options.from);
  const { client_id: _, ...before } = await policyBefore(context, asker, client);
  const sidecar = sidecarOf(before['sidecar'], options);
  const { ceiling, env } = options;
  return {
    ...before,
    ...(sidecar !== undefined && { sidecar }),
    ...(env !== undefined && { environment: { ...documentOf(before['environment']), ...env } }),
    ...(Array.isArray(ceiling) && { capability_ceiling: ceiling }),
    ...(ceiling === false && { capability_ceiling: null }),
  };
}

async function policyBefore({ signal }: Context, asker: Asker, client: string): Promise<Document> {
  try {
    return await callRoute(asker, 'getClient', { parameters: { client_id: client }, signal });
  } catch (error) {
    if (error instanceof AilsdError && error.code === 'NOT_FOUND') return NONE;
    throw error;
  }
}

/** `undefined` where nothing was said about it. */
function sidecarOf(before: unknown, options: ClientSetOptions): Document | null | undefined {
  const { sidecarImage: image, sidecarAudience: audience, sidecarScope: scopes } = options;
  if (!options.sidecar) return null;
  if (image === undefined && audience === undefined && scopes === undefined) return undefined;
  const sidecar: Document = {
    ...documentOf(before),
    ...(image !== undefined && { image }),
    ...(audience !== undefined && { audience }),
    ...(scopes !== undefined && { scopes }),
  };
  for (const [field, option] of NEEDED) {
    if (sidecar[field] !== undefined) continue;
    throw new AilsdError('USAGE', `a sidecar needs ${option}`, {
      hint: 'name --sidecar-image, --sidecar-audience and --sidecar-scope',
    });
  }
  return sidecar;
}

const NEEDED = [
  ['image', '--sidecar-image'],
  ['audience', '--sidecar-audience'],
  ['scopes', '--sidecar-scope'],
] as const;

function fromFile(context: Context, place: string): Document {
  const text = readInput(context, place, MOST_BYTES);
  try {
    const value: unknown = JSON.parse(text);
    if (isDocument(value)) return { ...NONE, ...value };
  } catch {
    // Said below: the parser's words would repeat the text.
  }
  throw new AilsdError('USAGE', `${place} does not hold a JSON object`, {
    hint: 'see `ailsd admin client get CLIENT --json` for its form',
  });
}

function documentOf(value: unknown): Document {
  return isDocument(value) ? value : {};
}
