import type { BatchState } from '@/lib/server/event-log/read-batch-state';
import { DerivedRequests, type RequestMemory } from './derived-requests';
import { NO_FAILURES } from './failure-tally';
import type { FailureTally, SessionBatch } from './session-batch';

function nothingNew(): Omit<SessionBatch, 'id' | 'agentId' | 'before' | 'startedAt' | 'requests'> {
  return {
    failures: NO_FAILURES,
    quarantined: 0,
    markedUpTo: 0,
    isHeard: false,
    isDue: false,
    usualSilenceMs: null,
    arrangement: null,
    wakeRule: null,
    entries: [],
    told: [],
    statusKey: null,
    listsKey: null,
    end: null,
    overdue: [],
    undelivered: [],
  };
}

/** The sessions that a batch writes to or speaks of: stored ones, and those that begin with it. */
export class BatchSessions {
  readonly #state: BatchState;
  readonly #known = new Map<string, SessionBatch>();
  /** Sessions that begin with this batch, by agent. */
  readonly #fresh = new Map<string, Set<string>>();

  constructor(state: BatchState) {
    this.#state = state;
  }

  /** How many the batch has spoken of so far. */
  get size(): number {
    return this.#known.size;
  }

  values(): Iterable<SessionBatch> {
    return this.#known.values();
  }

  /** The session, if anything was written to it, before or in this batch. */
  find(id: string): SessionBatch | null {
    const session = this.#known.get(id);
    if (session !== undefined) return session;
    const before = this.#state.sessions.get(id);
    if (before === undefined) return null;
    const { agentId, startedAt } = before.summary;
    const { markedUpTo = 0, statusKey = null, listsKey = null, end = before.hasEnded ? 'told' : null } = before.memory;
    const known = { statusKey, listsKey, end, markedUpTo };
    return this.#remember({ id, agentId, before, startedAt, ...nothingNew(), ...known });
  }

  /**
   * The session, which belongs to `agentId` from now on if it belonged to no agent.
   * @param at when it began, if it begins now
   * @param failures what it counts from, if it begins now
   */
  claim(id: string, agentId: string, at: number, failures: FailureTally): SessionBatch {
    return this.find(id) ?? this.#remember({ id, agentId, before: null, startedAt: at, ...nothingNew(), failures });
  }

  /** Whether the agent has any session but this one. */
  hasOthers(agentId: string, sessionId: string): boolean {
    const stored = this.#state.agents.get(agentId)?.sessionCount ?? 0;
    const fresh = this.#fresh.get(agentId);
    const own = Number(this.#state.sessions.has(sessionId)) + Number(fresh?.has(sessionId) === true);
    return stored + (fresh?.size ?? 0) > own;
  }

  /** The agent's sessions whose process has not ended. */
  openOf(agentId: string): SessionBatch[] {
    return this.#of(agentId, this.#state.sessions.keys()).filter(({ before }) => before?.hasEnded !== true);
  }

  /**
   * Where a loss that names no session may have been: in every session this outbox has written to for the agent. An
   * outbox that has written to none replaces one that could no longer be read: then in every session that has not ended.
   */
  writtenFor(agentId: string): SessionBatch[] {
    const own = this.#of(agentId, this.#state.producerSessionIds);
    return own.length > 0 ? own : this.openOf(agentId);
  }

  #of(agentId: string, stored: Iterable<string>): SessionBatch[] {
    return [...new Set([...stored, ...this.#known.keys()])]
      .map((id) => this.find(id))
      .filter((session): session is SessionBatch => session?.agentId === agentId);
  }

  #remember(told: Omit<SessionBatch, 'requests'>): SessionBatch {
    const { memory, places = null } = told.before ?? {};
    const requests = new DerivedRequests(memory?.wireRequests as RequestMemory | undefined, places, memory?.givenUp);
    const session = { ...told, requests };
    this.#known.set(session.id, session);
    if (session.before === null) {
      const fresh = this.#fresh.get(session.agentId) ?? new Set();
      this.#fresh.set(session.agentId, fresh.add(session.id));
    }
    return session;
  }
}
