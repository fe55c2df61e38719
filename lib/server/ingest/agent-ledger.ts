import { positionFromNumber } from '@interlude/protocol/position';
import { hasDifference } from '@interlude/protocol/projections/session-summary';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { agentStateOf, noListed, noSessions } from '@interlude/protocol/session-states';

/** Minimum interval between published rows of an agent while only `lastSeenAt` changes. */
const SEEN_ANNOUNCE_MS = 5_000;
/** Minimum interval while an agent only repeats its status. */
const REPEAT_ANNOUNCE_MS = 60_000;
/** Minimum interval between unpublished updates of `lastSeenAt`. */
const SEEN_STORE_MS = 5_000;

const UNPUBLISHED: ReadonlySet<keyof AgentSummary> = new Set(['statusAt']);

/** The agents a batch touches, as mutable copies. */
export class AgentLedger {
  readonly #stored: ReadonlyMap<string, AgentSummary>;
  readonly #touched = new Map<string, AgentSummary>();
  readonly #active = new Set<string>();
  readonly #announced = new Set<string>();
  readonly #reporting = new Set<string>();
  readonly #receivedAt: number;
  readonly #isSignOfLife: boolean;

  /** @param isSignOfLife true if the agents themselves sent the batch */
  constructor(stored: ReadonlyMap<string, AgentSummary>, receivedAt: number, isSignOfLife = true) {
    this.#isSignOfLife = isSignOfLife;
    this.#stored = stored;
    this.#receivedAt = receivedAt;
  }

  get(id: string): AgentSummary {
    const known = this.#touched.get(id);
    if (known !== undefined) return known;
    const agent = { ...(this.#stored.get(id) ?? newAgent(id, this.#receivedAt)) };
    // Sending records ends the agent's retirement.
    if (this.#isSignOfLife) agent.retiredAt = null;
    this.#touched.set(id, agent);
    return agent;
  }

  /** Registers a new record of the agent, which need not change the agent's row. */
  markActive(id: string): void {
    this.get(id);
    this.#active.add(id);
  }

  /** Registers that a runner reports at a known interval. */
  markReporting(id: string): void {
    this.#reporting.add(id);
  }

  /** Agents whose runner reports although no command stream is open. */
  reportingWhileAway(): string[] {
    return [...this.#reporting].filter((id) => this.get(id).connection === 'away');
  }

  /** Writes and publishes the row in any case. */
  announce(id: string): AgentSummary {
    this.#announced.add(id);
    return this.get(id);
  }

  repeatsStatus(id: string, status: AgentSummary['status']): boolean {
    const before = this.get(id).status;
    return before !== null && JSON.stringify(before) === JSON.stringify(status);
  }

  /** Returns the agents to write, each with a new position. */
  changes(nextPosition: () => number): AgentSummary[] {
    for (const agent of this.#touched.values()) this.#deriveState(agent);
    return [...this.#touched.values()]
      .filter((agent) => this.#isPublished(agent))
      .map((agent) => ({
        ...agent,
        lastSeenAt: this.#isSignOfLife ? this.#receivedAt : agent.lastSeenAt,
        updatedPosition: positionFromNumber(nextPosition()),
      }));
  }

  /** Agents for which only `lastSeenAt` is stored, without publishing the row. */
  seenOnly(): string[] {
    if (!this.#isSignOfLife) return [];
    return [...this.#touched.values()]
      .filter((agent) => !this.#isPublished(agent) && this.#seenAgoMs(agent) >= SEEN_STORE_MS)
      .map(({ id }) => id);
  }

  #deriveState(agent: AgentSummary): void {
    const before = this.#stored.get(agent.id);
    const state = agentStateOf(agent.listedStates);
    const isSame = state === (before?.state ?? null);
    Object.assign(agent, { state, stateSince: isSame ? (before?.stateSince ?? null) : this.#receivedAt });
  }

  #isPublished(agent: AgentSummary): boolean {
    const before = this.#stored.get(agent.id);
    if (before === undefined || this.#announced.has(agent.id)) return true;
    if (this.#isSignOfLife && this.#active.has(agent.id) && this.#seenAgoMs(agent) >= SEEN_ANNOUNCE_MS) return true;
    // Both times are on the runner's clock, so their difference holds even if that clock is wrong.
    if (Math.abs((agent.statusAt ?? 0) - (before.statusAt ?? 0)) >= REPEAT_ANNOUNCE_MS) return true;
    return hasDifference(before, agent, UNPUBLISHED);
  }

  /** Absolute difference, so that after a clock was set back `lastSeenAt` does not stay in the future. */
  #seenAgoMs({ id }: AgentSummary): number {
    return Math.abs(this.#receivedAt - (this.#stored.get(id)?.lastSeenAt ?? 0));
  }
}

function newAgent(id: string, at: number): AgentSummary {
  return {
    id,
    kind: null,
    status: null,
    statusAt: null,
    sessionCount: 0,
    sessionStates: noSessions(),
    brokenOffCount: 0,
    listedStates: noListed(),
    state: null,
    stateSince: null,
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
