/** Access to a sandbox as S2's document, for AILSD_SANDBOX: no server, no login. */
export interface AccessParts {
  readonly port: number;
  readonly path?: string;
  readonly token?: string;
  readonly sandboxId?: string;
  readonly thread?: string;
}

export function sandboxAccess({
  port,
  path = '',
  token = 'a-token',
  sandboxId = 'sb_00000000000000000000000001',
  thread = 'thr_1',
}: AccessParts): string {
  return JSON.stringify({
    session_id: 'ssn_00000000000000000000000001',
    thread_id: thread,
    sandbox: {
      id: sandboxId,
      provider: 'local',
      http_base_url: `http://127.0.0.1:${port}${path}`,
      ws_base_url: `ws://127.0.0.1:${port}${path}`,
    },
    token,
    expires_at: new Date(Date.now() + 600_000).toISOString(),
  });
}
