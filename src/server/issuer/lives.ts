/** How long a login lasts: what the approver can choose from. */

export const LIVES = [
  { value: '1h', says: '1 hour', seconds: 3_600 },
  { value: '8h', says: '8 hours', seconds: 28_800 },
  { value: '30d', says: '30 days', seconds: 2_592_000 },
  /** Ten years, which no program of today will see the end of. */
  { value: 'revoked', says: 'until revoked', seconds: 315_360_000 },
] as const;

export const DEFAULT_LIFE = '30d';

export const MAX_LOGIN_SECONDS = 315_360_000;

/** `undefined` for what is not on the list. */
export function lifeSeconds(value: string): number | undefined {
  return LIVES.find((life) => life.value === value)?.seconds;
}
