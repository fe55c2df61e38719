import { fileURLToPath } from 'node:url';
import { type CheckResult, GROUPS, type Group, runChecks } from '@interlude/conformance/check';
import { RUNNER_CHECKS, SERVER_CHECKS } from '@interlude/conformance/command';
import { RunnerTarget } from '@interlude/conformance/runner/runner-target';
import { ServerTarget } from '@interlude/conformance/server/server-target';
import { expect } from 'vitest';
import { serveOverHttp } from './serve-over-http';

/** Enough for any reaction on a busy machine. */
const TIMEOUT_MS = 60_000;
const RUN_TIMEOUT_MS = 280_000;

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

export const OURS = [process.execPath, path('lib/launch/interlude.mjs'), 'conformance', 'ours'];
export const PYTHON = ['python3', path('docs/runners/runner.py')];
export const TYPESCRIPT = [process.execPath, '--import', 'tsx', path('docs/runners/runner.ts')];

interface Run {
  only?: Group[];
  timeoutMs?: number;
}

export async function checkRunner(command: readonly string[], run: Run = {}): Promise<CheckResult[]> {
  const { only = [], timeoutMs = TIMEOUT_MS } = run;
  const { signal } = new AbortController();
  const target = await RunnerTarget.open(command, { timeoutMs, signal });
  try {
    return await runChecks(RUNNER_CHECKS, target, { only, timeoutMs: RUN_TIMEOUT_MS, signal, onResult: () => {} });
  } finally {
    await target.close();
  }
}

/** Check groups balanced by duration; most of it is waiting. */
const LANES: Group[][] = [
  ['answers', 'outbox', 'secrets'],
  ['turns', 'commands', 'tasks', 'requests', 'log level', 'order'],
];

/** Runs all checks with several runners in parallel. */
export async function checkRunnerInLanes(command: readonly string[]): Promise<CheckResult[]> {
  const rest = GROUPS.filter((group) => !LANES.flat().includes(group));
  return (await Promise.all([...LANES, rest].map((only) => checkRunner(command, { only })))).flat();
}

/** @returns the results and the sessions that could not be ended and archived */
export async function checkServer(
  server: { url: string; token: string },
  run: Run = {},
): Promise<{ results: CheckResult[]; left: string[]; prefix: string }> {
  const { only = [], timeoutMs = TIMEOUT_MS } = run;
  const { signal } = new AbortController();
  const target = new ServerTarget(server, timeoutMs, signal);
  await target.connect();
  const how = { only, timeoutMs: RUN_TIMEOUT_MS, signal, onResult: () => {} };
  const results = await runChecks(SERVER_CHECKS, target, how);
  return { results, left: await target.close(), prefix: target.prefix };
}

/** Asserts the names of the failed checks. The message has all details because a diff is truncated. */
export function expectFailed(results: readonly CheckResult[], names: readonly string[]): void {
  const failed = results.filter(({ verdict }) => verdict === 'failed');
  const report = failed.map(({ name, detail }) => `${name}: ${detail}`).join('\n');
  expect(
    failed.map(({ name }) => name),
    report,
  ).toEqual(names);
}

type Pass = (request: Request) => Promise<Response>;
/** Alters a request, or the response of a correct server. */
export type Tamper = (request: Request, pass: Pass) => Promise<Response>;

/** Serves a handler on its own port. */
export function frontOf(
  handle: Pass,
  tamper: Tamper = (request, pass) => pass(request),
): Promise<{ url: string; close(): Promise<void> }> {
  return serveOverHttp({ fetch: (request) => tamper(request, handle) });
}

/** Replaces the JSON body of a response, if it has one. */
export async function withBody(
  response: Response,
  change: (body: Record<string, unknown>) => object,
): Promise<Response> {
  if (!/json/.test(response.headers.get('content-type') ?? '')) return response;
  const headers = new Headers(response.headers);
  headers.delete('content-length');
  return new Response(JSON.stringify(change(await response.json())), { status: response.status, headers });
}
