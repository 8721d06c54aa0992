/** Says at the end of a run which promises were proven, which are open, and fails where the list and the tests disagree. */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Reporter, TestModule, TestRunEndReason, Vitest } from 'vitest/node';
import { REQUIREMENTS, type Requirement } from '../requirements.js';

type State = 'proven' | 'failed' | 'skipped' | 'open' | 'unproven';

export default class RequirementsReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunEnd(
    modules: readonly TestModule[],
    _errors: unknown,
    reason: TestRunEndReason,
  ): Promise<void> {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const outcomes = new Map<string, Set<string>>();
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        if (state !== 'pending') counts[state] += 1;
        const outcome = test.options.fails && state === 'passed' ? 'expected failure' : state;
        for (const id of citedIds(test.name))
          outcomes.set(id, (outcomes.get(id) ?? new Set()).add(outcome));
      }
    }
    const report = REQUIREMENTS.map((requirement: Requirement) => ({
      ...requirement,
      state: stateOf(requirement, outcomes.get(requirement.id)),
    }));
    mkdirSync('.test-results', { recursive: true });
    writeFileSync('.test-results/requirements.json', `${JSON.stringify(report, null, 2)}\n`);

    const lines = [summary(report.map((row) => row.state))];
    const whole = await this.#isWholeRun(modules.length);
    const wrong = report.filter(
      (row) => row.state === 'unproven' || (row.open !== undefined && row.state === 'proven'),
    );
    if (whole && reason === 'passed' && wrong.length > 0) {
      process.exitCode = 1;
      for (const row of wrong) {
        lines.push(
          row.state === 'proven'
            ? `  ${row.id} is marked open, yet a test proves it: remove \`open\` in test/requirements.ts`
            : `  ${row.id} is not marked open, and no passing test cites it: ${row.sentence}`,
        );
      }
    }
    lines.push(
      `tests: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`,
    );
    process.stdout.write(`${lines.join('\n')}\n`);
  }

  /** A run narrowed to some files or names proves nothing about what the others cite. */
  async #isWholeRun(moduleCount: number): Promise<boolean> {
    const vitest = this.#vitest;
    if (vitest === undefined || vitest.config.testNamePattern !== undefined) return false;
    return (await vitest.globTestSpecifications()).length === moduleCount;
  }
}

function citedIds(title: string): string[] {
  const bracket = /\[((?:[A-Z]{2}-\d\d ?)+)\]$/.exec(title);
  return bracket?.[1]?.split(' ') ?? [];
}

function stateOf(requirement: Requirement, outcomes: ReadonlySet<string> | undefined): State {
  if (outcomes?.has('failed')) return 'failed';
  if (outcomes?.has('passed')) return 'proven';
  if (requirement.open !== undefined) return 'open';
  return outcomes?.has('skipped') ? 'skipped' : 'unproven';
}

function summary(states: readonly State[]): string {
  const count = (state: State): number => states.filter((one) => one === state).length;
  const parts = (['proven', 'failed', 'skipped', 'open', 'unproven'] as const).map(
    (state) => `${count(state)} ${state}`,
  );
  return `\nrequirements: ${parts.join(', ')} (.test-results/requirements.json)`;
}
