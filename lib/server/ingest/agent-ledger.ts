import { noSessions } from '@interlude/protocol/agent-state';
import { positionFromNumber } from '@interlude/protocol/position';
import { differs } from '@interlude/protocol/projections/differs';
import type { AgentSummary } from '@interlude/protocol/read-models';

/** The fleet is told of an agent's row at most this often while only the time it was last seen changes. */
const SEEN_ANNOUNCE_MS = 5_000;
/** The same for an agent that only repeats its status. */
const STILL_ANNOUNCE_MS = 60_000;
/** How often the time an agent was last seen is stored without telling the fleet. */
const SEEN_NOTE_MS = 5_000;

const NOT_TOLD: ReadonlySet<keyof AgentSummary> = new Set(['statusAt']);

/** The agents that a batch speaks of, each as a copy that may be changed. */
export class AgentLedger {
  readonly #stored: ReadonlyMap<string, AgentSummary>;
  readonly #seen = new Map<string, AgentSummary>();
  /** The agents that told something new. */
  readonly #told = new Set<string>();
  readonly #announced = new Set<string>();
  /** Those for which a runner speaks that says how often it reports. */
  readonly #reporting = new Set<string>();
  readonly #receivedAt: number;
  readonly #isSignOfLife: boolean;

  /** @param isSignOfLife whether the agents themselves sent the batch */
  constructor(stored: ReadonlyMap<string, AgentSummary>, receivedAt: number, isSignOfLife = true) {
    this.#isSignOfLife = isSignOfLife;
    this.#stored = stored;
    this.#receivedAt = receivedAt;
  }

  get(id: string): AgentSummary {
    const known = this.#seen.get(id);
    if (known !== undefined) return known;
    const agent = { ...(this.#stored.get(id) ?? newAgent(id, this.#receivedAt)) };
    // whoever put it away was wrong
    if (this.#isSignOfLife) agent.retiredAt = null;
    this.#seen.set(id, agent);
    return agent;
  }

  /** The agent told something, which need not change its row. */
  markActive(id: string): void {
    this.get(id);
    this.#told.add(id);
  }

  /** A runner has reported, and says how often it does. */
  markReporting(id: string): void {
    this.#reporting.add(id);
  }

  /** Agents for which a runner speaks, although none listens. */
  reportingWhileAway(): string[] {
    return [...this.#reporting].filter((id) => this.get(id).connection === 'away');
  }

  /** Its row is written and told in any case. */
  announce(id: string): AgentSummary {
    this.#announced.add(id);
    return this.get(id);
  }

  /** Whether an agent's status is, word for word, the last one it sent. */
  repeatsStatus(id: string, status: AgentSummary['status']): boolean {
    const before = this.get(id).status;
    return before !== null && JSON.stringify(before) === JSON.stringify(status);
  }

  /** The agents to write, each with a position of its own. */
  changes(nextPosition: () => number): AgentSummary[] {
    return [...this.#seen.values()]
      .filter((agent) => this.#isToTell(agent))
      .map((agent) => ({
        ...agent,
        lastSeenAt: this.#isSignOfLife ? this.#receivedAt : agent.lastSeenAt,
        updatedPosition: positionFromNumber(nextPosition()),
      }));
  }

  /** The agents for which only the time they were seen is stored, without telling anybody. */
  seenOnly(): string[] {
    if (!this.#isSignOfLife) return [];
    return [...this.#seen.values()]
      .filter((agent) => !this.#isToTell(agent) && this.#seenAgoMs(agent) >= SEEN_NOTE_MS)
      .map(({ id }) => id);
  }

  #isToTell(agent: AgentSummary): boolean {
    const before = this.#stored.get(agent.id);
    if (before === undefined || this.#announced.has(agent.id)) return true;
    if (this.#isSignOfLife && this.#told.has(agent.id) && this.#seenAgoMs(agent) >= SEEN_ANNOUNCE_MS) return true;
    // both are on the runner's clock: however wrong that is, it tells how long ago the row was told
    if (Math.abs((agent.statusAt ?? 0) - (before.statusAt ?? 0)) >= STILL_ANNOUNCE_MS) return true;
    return differs(before, agent, NOT_TOLD);
  }

  /** In either direction: after a clock was set back, an agent must not stay seen in the future. */
  #seenAgoMs({ id }: AgentSummary): number {
    return Math.abs(this.#receivedAt - (this.#stored.get(id)?.lastSeenAt ?? 0));
  }
}

/** An agent about which nothing is known yet. */
function newAgent(id: string, at: number): AgentSummary {
  return {
    id,
    kind: null,
    status: null,
    statusAt: null,
    sessionCount: 0,
    sessionStates: noSessions(),
    brokenOffCount: 0,
    runningTaskCount: 0,
    lostCount: 0,
    quarantinedCount: 0,
    parkedCount: 0,
    owedCount: 0,
    overdueCount: 0,
    insightCount: 0,
    otherFailureCount: 0,
    logLevel: { level: null, since: null, by: null, until: null, base: null, desired: null },
    connection: 'away',
    connectedSince: null,
    runnerId: null,
    retiredAt: null,
    firstSeenAt: at,
    lastSeenAt: at,
    updatedPosition: '0',
  };
}
