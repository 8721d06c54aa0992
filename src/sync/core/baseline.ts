/** The baseline moves by what really happened: never ahead of what both sides have, whatever was planned. */
import { applyChanges, type Change, diffTrees, isNews } from './change.js';
import type { Entry } from './entry.js';
import type { Plan } from './reconcile.js';
import { fromState, type Step, type StepResult } from './step.js';
import { entryAt, TreeEditor } from './tree.js';

/**
 * The baseline to store before a plan's first step: with what both sides agree on already, and without what a side took away
 * and is about to get back. With that still in it, a run that is cut half-way would read as a deletion of the rest.
 */
export function openBaseline(baseline: Entry | undefined, plan: Plan): Entry | undefined {
  const agreed = applyChanges(baseline, plan.agreed);
  const changes = [...plan.toLocal, ...plan.toRemote];
  return applyChanges(
    agreed,
    changes.flatMap((change) => retreatOf(agreed, change)),
  );
}

/** The baseline after steps were made on a side; those without a result count as not made. */
export function advanceBaseline(
  opened: Entry | undefined,
  steps: readonly Step[],
  results: readonly StepResult[],
): Entry | undefined {
  const editor = new TreeEditor(opened);
  steps.forEach((step, at) => {
    if (results[at]?.outcome !== 'done') return;
    // Without a folder for it the baseline stays behind, which costs a comparison and never a file.
    editor.putAlone(step.path, fromState(step.to, step.by));
  });
  return editor.finish();
}

function retreatOf(agreed: Entry | undefined, { path, before }: Change): Change[] {
  const known = entryAt(agreed, path);
  const lacking = diffTrees(known, before, path);
  // What is new on the side that loses stays unknown to the baseline: it is to be kept each time it is met.
  return lacking.some(isNews) ? [] : lacking;
}
