import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import type { SessionSummary } from '@interlude/protocol/read-models';
import type { SessionState } from '@interlude/protocol/session-states';
import { noSessions } from '@interlude/protocol/session-states';

interface Change<Name> {
  at: Position;
  /** The state before the change. Null: not counted. Undefined: unknown. */
  from: Name | null | undefined;
  to: Name | null;
}

/** Maximum number of changes kept for older counts. */
const MAX_CHANGES = 1_000;

/** Counts of rows by state: the server's counts and the changes since. */
export class RowCounts<Name extends string> {
  readonly #none: () => Record<Name, number>;
  #counted: Record<Name, number> | null = null;
  #countedAt: Position = ORIGIN;
  #changes: Change<Name>[] = [];
  #isOld = false;

  /** @param none returns a count of zero for every state */
  constructor(none: () => Record<Name, number>) {
    this.#none = none;
  }

  /** True after a change to a row whose counted state is unknown: only the server can count again. */
  get isOld(): boolean {
    return this.#isOld;
  }

  get now(): Record<Name, number> {
    const counts = { ...(this.#counted ?? this.#none()) };
    for (const change of this.#changes) apply(counts, change);
    return counts;
  }

  /** Position of the server's counts. */
  get countedAt(): Position {
    return this.#countedAt;
  }

  set(counted: Record<Name, number>, at: Position): void {
    if (this.#counted !== null && comparePositions(at, this.#countedAt) < 0) return;
    this.#counted = { ...counted };
    this.#countedAt = at;
    this.#changes = this.#changes.filter((change) => comparePositions(change.at, at) > 0);
    this.#isOld = this.#changes.some(({ from }) => from === undefined);
  }

  /** @param change `from`: the state in which the row was counted */
  change(change: Change<Name>): void {
    if (change.from === change.to || comparePositions(change.at, this.#countedAt) <= 0) return;
    this.#isOld ||= change.from === undefined;
    this.#changes.push(change);
    if (this.#changes.length <= MAX_CHANGES || this.#counted === null) return;
    for (const old of this.#changes.splice(0, MAX_CHANGES / 2)) {
      apply(this.#counted, old);
      this.#countedAt = old.at;
    }
  }

  reset(): void {
    this.#countedAt = ORIGIN;
    this.#changes = [];
  }
}

function apply<Name extends string>(counts: Record<Name, number>, { from, to }: Change<Name>): void {
  if (from === undefined) return;
  if (from !== null) counts[from] -= 1;
  if (to !== null) counts[to] += 1;
}

export type CountsByState = Record<SessionState, number>;

export function countByState(sessions: readonly SessionSummary[]): CountsByState {
  const counts = noSessions();
  for (const { state } of sessions) counts[state] += 1;
  return counts;
}
