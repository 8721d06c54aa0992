/** Whose window decides how large a shell's terminal is. No I/O, no clock. */
export type SizePolicy = 'driver' | 'smallest' | 'latest' | 'fixed';

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

export const DEFAULT_SIZE: Size = { cols: 80, rows: 24 };

/** Somebody with a window who may write; observers are not asked. */
export interface Sized {
  readonly size: Size | undefined;
  readonly isWriter: boolean;
  /** Grows with every size that was told. */
  readonly sizedAt: number;
}

/** The size it is to have; as it is when nobody who counts has said anything. */
export function chooseSize(policy: SizePolicy, viewers: Iterable<Sized>, current: Size): Size {
  const said = [...viewers].filter((viewer) => viewer.size !== undefined);
  switch (policy) {
    case 'fixed':
      return current;
    case 'driver':
      return said.find(({ isWriter }) => isWriter)?.size ?? current;
    case 'latest':
      return said.reduce<Sized | undefined>(later, undefined)?.size ?? current;
    case 'smallest':
      return said.reduce<Size | undefined>(smaller, undefined) ?? current;
  }
}

export function isSameSize(a: Size, b: Size): boolean {
  return a.cols === b.cols && a.rows === b.rows;
}

function later(a: Sized | undefined, b: Sized): Sized {
  return a === undefined || b.sizedAt > a.sizedAt ? b : a;
}

function smaller(a: Size | undefined, { size }: Sized): Size | undefined {
  if (a === undefined || size === undefined) return a ?? size;
  return { cols: Math.min(a.cols, size.cols), rows: Math.min(a.rows, size.rows) };
}
