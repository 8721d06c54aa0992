/** `GET /openapi.json`: the protocol as a document, made once. */
import { buildOpenApi } from '../../protocol/openapi.js';
import type { RouteCode } from './call.js';

export function openApi(): RouteCode {
  let text: string | undefined;
  return () => {
    text ??= JSON.stringify(buildOpenApi());
    return { headers: { 'Content-Type': 'application/json' }, text };
  };
}
