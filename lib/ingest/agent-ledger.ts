import { positionFromNumber } from '@/lib/protocol/position';
import type { AgentSummary } from '@/lib/protocol/read-models';

/** An agent's row is told to the fleet at most this often while nothing of it changes but when it was last seen. */
const SEEN_ANNOUNCE_MS = 5_000;

/** The agents a batch speaks of, each as a copy that may be changed. */
export class AgentLedger {
  readonly #stored: ReadonlyMap<string, AgentSummary>;
  readonly #seen = new Map<string, AgentSummary>();
  readonly #receivedAt: number;
  readonly #isSignOfLife: boolean;

  /** @param isSignOfLife whether the agents themselves sent the batch */
  constructor(stored: ReadonlyMap<string, AgentSummary>, receivedAt: number, isSignOfLife = true) {
    this.#isSignOfLife = isSignOfLife;
    this.#stored = stored;
    this.#receivedAt = receivedAt;
  }

  see(id: string): AgentSummary {
    const known = this.#seen.get(id);
    if (known !== undefined) return known;
    const agent = { ...(this.#stored.get(id) ?? newAgent(id, this.#receivedAt)) };
    this.#seen.set(id, agent);
    return agent;
  }

  /** Those to write, each with a position of its own. */
  changed(nextPosition: () => number): AgentSummary[] {
    return [...this.#seen.values()]
      .filter((agent) => this.#differs(agent))
      .map((agent) => ({
        ...agent,
        lastSeenAt: this.#isSignOfLife ? this.#receivedAt : agent.lastSeenAt,
        updatedPosition: positionFromNumber(nextPosition()),
      }));
  }

  #differs(agent: AgentSummary): boolean {
    const before = this.#stored.get(agent.id);
    if (before === undefined) return true;
    // either way: a clock that was set back must not leave the agent seen in the future
    const seenAgoMs = Math.abs(this.#receivedAt - before.lastSeenAt);
    if (this.#isSignOfLife && seenAgoMs >= SEEN_ANNOUNCE_MS) return true;
    return (Object.keys(before) as (keyof AgentSummary)[]).some((key) => before[key] !== agent[key]);
  }
}

/** An agent of which nothing is known but that it is there. */
export function newAgent(id: string, at: number): AgentSummary {
  return {
    id,
    kind: null,
    status: null,
    statusAt: null,
    sessionCount: 0,
    lostCount: 0,
    quarantinedCount: 0,
    owedCount: 0,
    insightCount: 0,
    logLevel: { level: null, since: null, by: null, until: null, base: null, desired: null },
    connection: 'away',
    connectedSince: null,
    runnerId: null,
    firstSeenAt: at,
    lastSeenAt: at,
    updatedPosition: '0',
  };
}
