import type { FleetCounts, InboxItem } from '@interlude/protocol/inbox';
import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import type {
  AgentDetail,
  AgentList,
  AgentSummary,
  Obligation,
  ObligationList,
  SessionDetail,
  SessionList,
  SessionSummary,
  Task,
  TaskList,
} from '@interlude/protocol/read-models';
import { groupOf } from '@interlude/protocol/session-predicates';
import type { RowFrame } from './row-frame';
import { RowTable } from './row-table';
import { Store } from './store';

/** The list of all sessions or agents. Other lists are named after their owner. */
export const ALL = '';

/** A pending reply, or a settled one. */
export type ObligationRow = Pick<
  Obligation,
  'messageId' | 'sessionId' | 'agentId' | 'from' | 'text' | 'sentAt' | 'state'
> &
  Partial<Pick<Obligation, 'position' | 'owedSince' | 'isOverdue' | 'candidate'>>;

interface Versioned {
  updatedPosition: Position;
}

const AFTER_ORIGIN: Position = '1';
const NOTIFY_EVERY_MS = 50;

/**
 * All fleet rows that this page knows, each once.
 *
 * Ordering: a single `fleet` subscription keeps every row current. A snapshot older than the subscription restarts it
 * at the snapshot's position; rows that are already newer stay.
 * Failure: after a gap everything stays visible until it has been read again.
 */
export class FleetStore extends Store {
  /** Lists: all sessions, and one per agent. */
  readonly sessions = new RowTable<SessionSummary>({
    idOf: ({ id }) => id,
    listsOf: ({ agentId }) => [ALL, agentId],
    keepsAll: true,
    onChange: (row, known) => {
      const isSame = known?.state === row.state && groupOf(known) === groupOf(row);
      this.#changeCounts(row, isSame && known);
    },
  });
  readonly agents = new RowTable<AgentSummary>({
    idOf: ({ id }) => id,
    listsOf: () => [ALL],
    keepsAll: true,
    onChange: (row, known) => {
      const isSame = known?.state === row.state && !known.retiredAt === !row.retiredAt;
      this.#changeCounts(row, isSame && known);
    },
  });
  /** Lists: one per session. A task is identified by the position of its first event, because agents reuse ids. */
  readonly tasks = new RowTable<Task>({
    idOf: ({ position }) => position,
    listsOf: ({ sessionId }) => [sessionId],
    keepsAll: false,
  });
  /** Lists: one per agent, including replies settled since. */
  readonly obligations = new RowTable<ObligationRow>({
    idOf: ({ sessionId, messageId }) => JSON.stringify([sessionId, messageId]),
    listsOf: ({ agentId }) => [agentId],
    keepsAll: false,
  });
  /** Items that need a person, and those done since the page was opened. */
  readonly inbox = new RowTable<InboxItem>({
    idOf: ({ id }) => id,
    listsOf: () => [ALL],
    keepsAll: true,
    onChange: (row) => {
      this.#changeCounts(row);
      this.onItem?.(row);
    },
  });
  #start: { after: Position } | null = null;
  #position: Position | null = null;
  #resets = 0;
  #counts: FleetCounts | undefined;
  /** Position of the last change that may have changed a count. */
  #countsChangedAt: Position = ORIGIN;
  /** Position of counts that are newer than the rows. They may include row versions that this page never receives. */
  #countsAhead: Position = ORIGIN;
  #notifiedAt = Number.NEGATIVE_INFINITY;
  #notifyLater: ReturnType<typeof setTimeout> | undefined;
  /** Called before an item changes. */
  onItem: ((row: InboxItem) => void) | null = null;

  /** Start position of the subscription. A new object restarts it; null while nothing is known. */
  get start(): { after: Position } | null {
    return this.#start;
  }

  /** All rows up to this position have arrived; null while nothing is known. */
  get position(): Position | null {
    return this.#position;
  }

  /** Number of gaps. Requests sent before the last one are discarded. */
  get resets(): number {
    return this.#resets;
  }

  /** The server's counts; undefined until they are loaded. */
  get counts(): FleetCounts | undefined {
    return this.#counts;
  }

  /** True after a change that `counts` may not include. */
  get countsAreOld(): boolean {
    return !this.#counts || comparePositions(this.#countsChangedAt, this.#counts.position) > 0;
  }

  putCounts(counts: FleetCounts): void {
    if (comparePositions(counts.position, this.#counts?.position ?? ORIGIN) < 0) return;
    this.put('inbox', null, counts.position, () => {
      this.#counts = counts;
      const known = this.#position ?? ORIGIN;
      this.#countsAhead = comparePositions(counts.position, known) > 0 ? counts.position : ORIGIN;
      this.#changeCounts({ updatedPosition: known });
    });
  }

  applyFrames(frames: readonly RowFrame[]): void {
    for (const { event, data, id } of frames) {
      this.#position = id;
      if (event === 'session') {
        this.sessions.update(data, id);
      } else if (event === 'agent') this.agents.update(data, id);
      else if (event === 'task') this.tasks.update(data, id);
      else if (event === 'obligation') this.obligations.update(data, id);
      else if (event === 'inbox') this.inbox.update(data, id);
    }
    this.#changedByFrames();
  }

  /** Notifies at once, then at most twenty times a second: each time, lists sort and render their changed rows. */
  #changedByFrames(): void {
    const wait = this.#notifiedAt + NOTIFY_EVERY_MS - performance.now();
    if (wait <= 0) this.changed();
    else this.#notifyLater ??= setTimeout(() => this.changed(), wait);
  }

  protected override changedNow(): void {
    clearTimeout(this.#notifyLater);
    this.#notifyLater = undefined;
    this.#notifiedAt = performance.now();
    super.changedNow();
  }

  /** Next time at which a session's state may change without an event; null if none will. */
  get stateDueAt(): number | null {
    let first: number | null = null;
    for (const { row } of this.sessions.rows()) {
      const at = row.stateDueAt;
      if (at !== null && (first === null || at < first)) first = at;
    }
    return first;
  }

  /**
   * Updates states to the server's time. The server reports the same states later.
   * @param stateAt the session at a time
   */
  passTime(now: number, stateAt: (session: SessionSummary, now: number) => SessionSummary): void {
    for (const { row } of [...this.sessions.rows()]) {
      if (row.stateDueAt !== null && row.stateDueAt <= now) this.sessions.replace(stateAt(row, now));
    }
    this.changed();
  }

  /** Retains the rows of a list that is about to be read. */
  retain(table: TableName, name: string): void {
    this[table].retain(name, this.#position);
  }

  drop(table: TableName, name: string): void {
    this[table].drop(name);
  }

  putSessions({ sessions: rows, position, next }: SessionList, after?: string): void {
    this.put('sessions', ALL, position, () => this.sessions.putList(ALL, { rows, position, next, after }));
  }

  /** Adds sessions from anywhere in the list; its cursor stays. */
  putFoundSessions({ sessions: rows, position }: SessionList): void {
    this.put('sessions', ALL, position, () => this.sessions.putRows(ALL, rows, position));
  }

  putFoundAgents({ agents: rows, position }: AgentList): void {
    this.put('agents', ALL, position, () => this.agents.putRows(ALL, rows, position));
  }

  putSession({ session, position }: SessionDetail): void {
    this.put('sessions', null, position, () => this.sessions.put(session, position));
  }

  putAgentSessions(
    agentId: string,
    { sessions: rows, position, next }: Pick<SessionList, 'sessions' | 'position' | 'next'>,
    after?: string,
  ): void {
    const list = { rows, position, next, after };
    this.put('sessions', agentId, position, () => this.sessions.putList(agentId, list));
  }

  putAgents({ agents: rows, position, next, count }: AgentList, after?: string): void {
    const list = { rows, position, next, count, after };
    this.put('agents', ALL, position, () => this.agents.putList(ALL, list));
  }

  putAgent({ agent, position }: Pick<AgentDetail, 'agent' | 'position'>): void {
    this.put('agents', null, position, () => this.agents.put(agent, position));
  }

  putAgentDetail({ agent, sessions, nextSessions: next, position }: AgentDetail): void {
    this.putAgent({ agent, position });
    this.putAgentSessions(agent.id, { sessions, next, position });
  }

  /** @param isPart the part that the server rendered */
  putTasks(sessionId: string, { tasks: rows, position, omitted: count = 0 }: TaskList, isPart = false): void {
    const list = { rows, position, count };
    this.put('tasks', sessionId, position, () => this.tasks.putList(sessionId, list, isPart));
  }

  putObligations(agentId: string, { obligations, position }: ObligationList): void {
    const rows = obligations.map((one) => ({ ...one, agentId, state: 'owed' as const }));
    this.put('obligations', agentId, position, () => this.obligations.putList(agentId, { rows, position }));
  }

  /** Call after a gap. */
  reset(): void {
    this.#resets += 1;
    this.#start = null;
    this.#position = null;
    // The server may have counted changes that this page missed.
    this.#counts &&= { ...this.#counts, position: ORIGIN };
    this.#countsChangedAt = AFTER_ORIGIN;
    for (const table of TABLES) this[table].reset();
    this.changed();
  }

  /** @param equal the known version, if it counts the same */
  #changeCounts({ updatedPosition: at }: Versioned, equal?: Versioned | false): void {
    if (equal && comparePositions(equal.updatedPosition, this.#countsAhead) >= 0) return;
    if (comparePositions(at, this.#countsChangedAt) > 0) this.#countsChangedAt = at;
  }

  /** @param name the list; null for rows outside a list. @param apply stores the rows */
  put(table: TableName, name: string | null, position: Position, apply: () => void): void {
    const since = (name === null ? null : this[table].retain(name, this.#position)) ?? this.#start?.after ?? null;
    apply();
    if (since === null || comparePositions(position, since) < 0) {
      this.#start = { after: position };
      this.#position = position;
      this.#countsAhead = this.#counts?.position ?? ORIGIN;
      for (const one of TABLES) this[one].rewind(position);
    }
    this.changed();
  }
}

const TABLES = ['sessions', 'agents', 'tasks', 'obligations', 'inbox'] as const;
/** The tables with lists. */
export type TableName = (typeof TABLES)[number];
