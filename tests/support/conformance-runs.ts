import { fileURLToPath } from 'node:url';
import { type CheckResult, GROUPS, type Group } from '@interlude/conformance/check';
import { conduct } from '@interlude/conformance/conduct';
import { RUNNER_CHECKS } from '@interlude/conformance/runner/checks';
import { RunnerStage } from '@interlude/conformance/runner/runner-stage';
import { SERVER_CHECKS } from '@interlude/conformance/server/checks';
import { ServerStage } from '@interlude/conformance/server/server-stage';
import { expect } from 'vitest';

/** Longer than anything takes that comes at all, on a machine that does a great deal besides. */
const WITHIN_MS = 60_000;
const WHOLE_RUN_MS = 280_000;

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

export const OURS = [process.execPath, path('lib/launch/interlude.mjs'), 'conformance', 'ours'];
export const PYTHON = ['python3', path('docs/runners/runner.py')];
export const TYPESCRIPT = [process.execPath, '--import', 'tsx', path('docs/runners/runner.ts')];

interface Run {
  only?: Group[];
  /** How long to wait for what does not come where something is broken. */
  withinMs?: number;
}

export async function checkRunner(command: readonly string[], run: Run = {}): Promise<CheckResult[]> {
  const { only = [], withinMs = WITHIN_MS } = run;
  const { signal } = new AbortController();
  const stage = await RunnerStage.open(command, { withinMs, signal });
  try {
    return await conduct(RUNNER_CHECKS, stage, { only, withinMs: WHOLE_RUN_MS, signal, onResult: () => {} });
  } finally {
    await stage.close();
  }
}

/** What takes about as long as the others: nearly all of it is waiting. */
const LANES: Group[][] = [
  ['answers', 'outbox', 'secrets'],
  ['turns', 'commands', 'tasks', 'requests', 'log level', 'order'],
];

/** All checks, of several runners beside each other: each group has one that is its own or a neighbour's. */
export async function checkRunnerInLanes(command: readonly string[]): Promise<CheckResult[]> {
  const rest = GROUPS.filter((group) => !LANES.flat().includes(group));
  return (await Promise.all([...LANES, rest].map((only) => checkRunner(command, { only })))).flat();
}

/** @returns with the sessions that it could not put away */
export async function checkServer(
  server: { url: string; token: string },
  run: Run = {},
): Promise<{ results: CheckResult[]; left: string[]; prefix: string }> {
  const { only = [], withinMs = WITHIN_MS } = run;
  const { signal } = new AbortController();
  const stage = new ServerStage(server, withinMs, signal);
  await stage.enter();
  const how = { only, withinMs: WHOLE_RUN_MS, signal, onResult: () => {} };
  const results = await conduct(SERVER_CHECKS, stage, how);
  return { results, left: await stage.close(), prefix: stage.prefix };
}

/** Fails unless these failed, and no others; it says all that was seen: of a list that differs, only its beginning is shown. */
export function expectFailed(results: readonly CheckResult[], names: readonly string[]): void {
  const failed = results.filter(({ verdict }) => verdict === 'failed');
  const told = failed.map(({ name, detail }) => `${name}: ${detail}`).join('\n');
  expect(
    failed.map(({ name }) => name),
    told,
  ).toEqual(names);
}
