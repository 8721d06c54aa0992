/** Waits for a thing itself to become true, not for a time to pass. */

const LIMIT_MS = 15_000;
const STEP_MS = 10;

export async function eventually(
  isTrue: () => boolean | Promise<boolean>,
  otherwise: () => string = () => 'it never became true',
): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(otherwise());
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}
