/** What is said about a shell on this side of the wire. */

export type Role = 'writer' | 'observer';
export type Actor = 'human' | 'agent';

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

export interface StartOptions {
  /** The same on every connection of this client, and nobody else's. */
  readonly clientId: string;
  readonly size: Size;
  /** An id, `new` for another one, or nothing for the main shell. */
  readonly shellId?: string | undefined;
  /** Only watch, whatever the token allows. */
  readonly observe?: boolean | undefined;
  /** Lines of earlier output wanted above the screen. */
  readonly history?: number | undefined;
  readonly term?: string | undefined;
  /** Of a shell that is made by this: where it starts, with what, and what runs in it in place of a login shell. */
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly command?: readonly string[] | undefined;
}

export interface Viewer {
  readonly actor: Actor;
  readonly role: Role;
  readonly clientId: string | undefined;
  readonly subject: string | undefined;
}

/** How the program ended, and who says so. */
export interface Outcome {
  readonly origin: 'remote' | 'ailsd' | 'transport' | 'quota' | 'lease';
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly timedOut: boolean;
  readonly oom: boolean;
}
