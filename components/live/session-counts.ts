import { noSessions, type SessionState } from '@/lib/protocol/agent-state';
import { comparePositions, ORIGIN, type Position } from '@/lib/protocol/position';
import type { SessionSummary } from '@/lib/protocol/read-models';

export type CountsByState = Record<SessionState, number>;

interface Change {
  at: Position;
  /** Undefined where it is not known: it was counted as something, or is new. */
  from: SessionState | undefined;
  to: SessionState;
}

/** Changes that are remembered for an answer that was read before them. */
const MOST_CHANGES = 1_000;

/** How many sessions are in each state: as the server counted them, and what has changed since that is known. */
export class SessionCounts {
  #counted: CountsByState | null = null;
  #countedAt: Position = ORIGIN;
  #changes: Change[] = [];
  #isOld = false;

  /** Something has changed of which nobody here knows what it was counted as: only the server can tell. */
  get isOld(): boolean {
    return this.#isOld;
  }

  get now(): CountsByState {
    const counts = { ...(this.#counted ?? countByState([])) };
    for (const change of this.#changes) apply(counts, change);
    return counts;
  }

  /** When the server counted them. */
  get countedAt(): Position {
    return this.#countedAt;
  }

  take(counted: CountsByState, at: Position): void {
    if (this.#counted !== null && comparePositions(at, this.#countedAt) < 0) return;
    this.#counted = counted;
    this.#countedAt = at;
    this.#changes = this.#changes.filter((change) => comparePositions(change.at, at) > 0);
    this.#isOld = this.#changes.some(({ from }) => from === undefined);
  }

  /** @param from what it was when it was counted, or came after that; undefined if that is not known */
  change(row: SessionSummary, from: SessionState | undefined): void {
    const change = { at: row.updatedPosition, from, to: row.state };
    if (change.from === change.to || comparePositions(change.at, this.#countedAt) <= 0) return;
    this.#isOld ||= change.from === undefined;
    this.#changes.push(change);
    if (this.#changes.length <= MOST_CHANGES || this.#counted === null) return;
    for (const old of this.#changes.splice(0, MOST_CHANGES / 2)) {
      apply(this.#counted, old);
      this.#countedAt = old.at;
    }
  }

  reset(): void {
    this.#countedAt = ORIGIN;
    this.#changes = [];
  }
}

export function countByState(sessions: readonly SessionSummary[]): CountsByState {
  const counts = noSessions();
  for (const { state } of sessions) counts[state] += 1;
  return counts;
}

function apply(counts: CountsByState, { from, to }: Change): void {
  if (from === undefined) return;
  counts[from] -= 1;
  counts[to] += 1;
}
