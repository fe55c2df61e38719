/**
 * What a check is, and how it ends.
 *
 * Failure: a check that does not hold throws `Unmet`, which says what was expected, what was seen and what to do; one of
 * something that a runner says it does not do throws `NotDone`. Anything else that is thrown counts as failed, too.
 */
export const GROUPS = [
  'outbox',
  'answers',
  'limits',
  'turns',
  'tasks',
  'requests',
  'commands',
  'liveness',
  'log level',
  'secrets',
  'never in the way',
  'order',
] as const;
export type Group = (typeof GROUPS)[number];

export interface Check<Stage> {
  group: Group;
  /** The invariant, as a sentence without its full stop. */
  name: string;
  /** Where PROTOCOL.md says so. */
  why: string;
  /** It mostly waits: it begins with the run, beside the others, and is told in its place. */
  isSlow?: true;
  run(stage: Stage): Promise<void>;
}

export type Verdict = 'passed' | 'failed' | 'skipped';

export interface CheckResult {
  group: Group;
  name: string;
  why: string;
  verdict: Verdict;
  /** Of a failed one what was seen, expected and is to be done; of a skipped one the runner's own reason. */
  detail: string | null;
  ms: number;
}

/** The invariant does not hold. */
export class Unmet extends Error {
  constructor(expected: string, seen: unknown, todo: string) {
    super(`expected ${expected}; seen: ${quoted(seen)}. ${todo}`);
    this.name = 'Unmet';
  }
}

/** The runner says that it does not do this, and why. */
export class NotDone extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'NotDone';
  }
}

/** Nothing can be checked any more. */
export class Hopeless extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Hopeless';
  }
}

/** @throws Unmet unless it is so */
export function hold(isSo: boolean, expected: string, seen: unknown, todo: string): asserts isSo {
  if (!isSo) throw new Unmet(expected, seen, todo);
}

/**
 * @param expected of an object the fields that count; of a list each entry
 * @throws Unmet unless it is there
 */
export function agree(what: string, seen: unknown, expected: unknown, todo: string): void {
  if (!has(seen, expected)) throw new Unmet(`${what} to be ${quoted(expected)}`, seen, todo);
}

function has(seen: unknown, expected: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return Object.is(seen, expected);
  if (typeof seen !== 'object' || seen === null) return false;
  if (Array.isArray(expected)) {
    return (
      Array.isArray(seen) && seen.length === expected.length && expected.every((entry, at) => has(seen[at], entry))
    );
  }
  const fields = seen as Record<string, unknown>;
  return Object.entries(expected).every(([name, value]) => has(fields[name], value));
}

/** How often to look again. */
const LOOK_MS = 20;

export interface Patience {
  withinMs: number;
  signal: AbortSignal;
}

/** What can be said of something while it is waited for. */
export interface Progress {
  /** What there is instead, for the verdict. */
  seen?: () => unknown;
  /** How much of it has come: while that grows, there is time. */
  came?: () => number;
}

/**
 * @param look gives what is waited for, or null, undefined or false while it is not there
 * @throws Unmet when it has not come in time
 */
export async function until<Found>(
  { withinMs, signal }: Patience,
  expected: string,
  look: () => Found | null | undefined | false | Promise<Found | null | undefined | false>,
  todo: string,
  { seen = () => 'nothing of the kind', came = () => 0 }: Progress = {},
): Promise<Found> {
  let deadline = performance.now() + withinMs;
  let most = came();
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    const count = came();
    if (count > most) [deadline, most] = [performance.now() + withinMs, count];
    if (signal.aborted) throw new Hopeless('it was stopped');
    if (performance.now() > deadline) {
      throw new Unmet(`${expected} within ${Math.round(withinMs / 1_000)} s`, await seen(), todo);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const MOST_QUOTED = 600;

function quoted(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= MOST_QUOTED ? text : `${text.slice(0, MOST_QUOTED)}…`;
}
