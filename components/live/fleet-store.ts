import { noSessions, type SessionState } from '@interlude/protocol/agent-state';
import type { InboxItem } from '@interlude/protocol/inbox';
import { comparePositions, type Position } from '@interlude/protocol/position';
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
import { type CountsByState, countByState, RowCounts } from './row-counts';
import type { RowFrame } from './row-frame';
import { RowTable } from './row-table';
import { Store } from './store';

/** The list of all sessions, or of all agents. The others have the name of what they belong to. */
export const ALL = '';

/** A reply that is owed, or was. */
export type OwedReply = Pick<Obligation, 'messageId' | 'sessionId' | 'agentId' | 'from' | 'text' | 'sentAt' | 'state'> &
  Partial<Pick<Obligation, 'position' | 'owedSince' | 'isOverdue' | 'candidate'>>;

/** The sessions that are loaded, and how many there are. */
export interface ListedSessions {
  sessions: readonly SessionSummary[];
  /** Where the next page begins; null if all are loaded. */
  next: string | null;
  counts: CountsByState;
  /** Something has changed that is not loaded: `counts` are from before. */
  countsAreOld: boolean;
}

/**
 * The rows of the fleet that this page knows, each once, whichever part of the page asked for it.
 *
 * Ordering: one reading of the topic `fleet` carries all of it on, from `start` on. What was read before the stream
 * came to be kept begins that reading again, there; rows that are known already change nothing.
 * Failure: after a gap everything stays as it is shown until it has been read again.
 */
export class FleetStore extends Store {
  readonly #counts = new RowCounts(noSessions);
  /** The states that the server told, of sessions that time has changed since. */
  readonly #toldStates = new WeakMap<SessionSummary, SessionState>();
  /** Lists: all of them, and those of an agent. */
  readonly sessions = new RowTable<SessionSummary>({
    idOf: ({ id }) => id,
    listsOf: ({ agentId }) => [ALL, agentId],
    keepsAll: true,
    onChange: (row, known) => this.#count(row, known),
  });
  readonly agents = new RowTable<AgentSummary>({ idOf: ({ id }) => id, listsOf: () => [ALL], keepsAll: true });
  /** Lists: those of a session. Where its first event stands is a task's identity: agents use ids again. */
  readonly tasks = new RowTable<Task>({
    idOf: ({ position }) => position,
    listsOf: ({ sessionId }) => [sessionId],
    keepsAll: false,
  });
  /** Lists: those of an agent, with what was settled since. */
  readonly obligations = new RowTable<OwedReply>({
    idOf: ({ sessionId, messageId }) => JSON.stringify([sessionId, messageId]),
    listsOf: ({ agentId }) => [agentId],
    keepsAll: false,
  });
  /** What needs a person, and what did while this page was open. */
  readonly inbox = new RowTable<InboxItem>({
    idOf: ({ id }) => id,
    listsOf: () => [ALL],
    keepsAll: true,
    onChange: (row, known) => this.onItem?.(row, known),
  });
  #start: { after: Position } | null = null;
  #position: Position | null = null;
  #resets = 0;
  /** The sessions that the stream has told of since it began. */
  readonly #told = new Set<string>();
  #shownSessions: (ListedSessions & { rows: readonly SessionSummary[] }) | undefined;
  /** Called before an item changes, by what comes with the inbox. `known`: the item as it was read at a position. */
  onItem: ((row: InboxItem, known: { row: InboxItem; at: Position } | undefined) => void) | null = null;

  /** Where the stream is to be read from; another object when it is to be read anew. Null while nothing is known. */
  get start(): { after: Position } | null {
    return this.#start;
  }

  /** All rows up to here have come; null while nothing is known. */
  get position(): Position | null {
    return this.#position;
  }

  /** What was asked for before the last gap is not to be taken. */
  get resets(): number {
    return this.#resets;
  }

  /** Undefined until some were read. The same object until something of it changes. */
  get listedSessions(): ListedSessions | undefined {
    const list = this.sessions.list(ALL);
    if (list === undefined) return undefined;
    const { rows, next } = list;
    const countsAreOld = next !== null && this.#counts.isOld;
    if (this.#shownSessions?.rows !== rows || this.#shownSessions.countsAreOld !== countsAreOld) {
      const counts = next === null ? countByState(rows) : this.#counts.now;
      this.#shownSessions = { rows, sessions: rows, next, counts, countsAreOld };
    }
    return this.#shownSessions;
  }

  takeFrames(frames: readonly RowFrame[]): void {
    for (const { event, data, id } of frames) {
      this.#position = id;
      if (event === 'session') {
        this.sessions.takeNews(data, id);
        this.#told.add(data.id);
      } else if (event === 'agent') this.agents.takeNews(data, id);
      else if (event === 'task') this.tasks.takeNews(data, id);
      else if (event === 'obligation') this.obligations.takeNews(data, id);
      else if (event === 'inbox') this.inbox.takeNews(data, id);
    }
    this.changed();
  }

  /** When time alone may change the state of one of the sessions; null if it changes none. */
  get stateDueAt(): number | null {
    let first: number | null = null;
    for (const { row } of this.sessions.rows()) {
      if (row.stateDueAt !== null && (first === null || row.stateDueAt < first)) first = row.stateDueAt;
    }
    return first;
  }

  /**
   * Brings the states to a time of the server's clock. The server tells the same when it gets to it.
   * @param stateAt a session as it is at a time
   */
  passTime(now: number, stateAt: (session: SessionSummary, now: number) => SessionSummary): void {
    for (const { row } of [...this.sessions.rows()]) {
      if (row.stateDueAt === null || row.stateDueAt > now) continue;
      const next = stateAt(row, now);
      this.#toldStates.set(next, this.#toldStates.get(row) ?? row.state);
      this.sessions.amend(next);
    }
    this.#shownSessions = undefined;
    this.changed();
  }

  /** From now on what comes of a list is kept: it is about to be read. */
  hold(table: Held, name: string): void {
    this[table].hold(name, this.#position);
  }

  drop(table: Held, name: string): void {
    this[table].drop(name);
  }

  takeSessions({ sessions: rows, position, next, counts }: SessionList, after?: string): void {
    this.read('sessions', ALL, position, () => this.sessions.takeList(ALL, { rows, position, next, after }));
    this.takeCounts(counts, position);
  }

  /** Sessions from anywhere in the list of all: it goes on where it did. */
  takeFoundSessions({ sessions: rows, position }: SessionList): void {
    this.read('sessions', ALL, position, () => this.sessions.takeSome(ALL, rows, position));
  }

  takeFoundAgents({ agents: rows, position }: AgentList): void {
    this.read('agents', ALL, position, () => this.agents.takeSome(ALL, rows, position));
  }

  takeCounts(counts: CountsByState, position: Position): void {
    this.#counts.take(counts, position);
    this.#shownSessions = undefined;
    this.changed();
  }

  takeSession({ session, position }: SessionDetail): void {
    this.read('sessions', null, position, () => this.sessions.take(session, position));
  }

  takeAgentSessions(
    agentId: string,
    { sessions: rows, position, next }: Pick<SessionList, 'sessions' | 'position' | 'next'>,
    after?: string,
  ): void {
    const list = { rows, position, next, after };
    this.read('sessions', agentId, position, () => this.sessions.takeList(agentId, list));
  }

  takeAgents({ agents: rows, position, next, count }: AgentList, after?: string): void {
    const list = { rows, position, next, count, after };
    this.read('agents', ALL, position, () => this.agents.takeList(ALL, list));
  }

  takeAgent({ agent, position }: Pick<AgentDetail, 'agent' | 'position'>): void {
    this.read('agents', null, position, () => this.agents.take(agent, position));
  }

  takeAgentDetail({ agent, sessions, nextSessions: next, position }: AgentDetail): void {
    this.takeAgent({ agent, position });
    this.takeAgentSessions(agent.id, { sessions, next, position });
  }

  /** @param isPart it is the part that came with the page */
  takeTasks(sessionId: string, { tasks: rows, position, omitted: count = 0 }: TaskList, isPart = false): void {
    const list = { rows, position, count };
    this.read('tasks', sessionId, position, () => this.tasks.takeList(sessionId, list, isPart));
  }

  takeObligations(agentId: string, { obligations, position }: ObligationList): void {
    const rows = obligations.map((one) => ({ ...one, agentId, state: 'owed' as const }));
    this.read('obligations', agentId, position, () => this.obligations.takeList(agentId, { rows, position }));
  }

  /** Frames were missed for good. */
  reset(): void {
    this.#resets += 1;
    this.#start = null;
    this.#position = null;
    this.#counts.reset();
    for (const table of HELD) this[table].reset();
    this.changed();
  }

  /**
   * A stream that begins tells of each row only how it is by now, then of all that becomes of it. A row that it has not
   * told of yet, or that is read ahead of it, may have been something else when it was counted than it was known as.
   */
  #count(row: SessionSummary, known: { row: SessionSummary; at: Position } | undefined): void {
    const { countedAt } = this.#counts;
    const isCountedBy = (at: Position | null | undefined) => at != null && comparePositions(countedAt, at) <= 0;
    const isSure =
      isCountedBy(known?.at) ||
      isCountedBy(this.#start?.after) ||
      (this.#told.has(row.id) && isCountedBy(this.#position));
    const from = isSure && known !== undefined ? this.#toldState(known.row) : undefined;
    this.#counts.change({ at: row.updatedPosition, from, to: row.state });
  }

  /** What the server has counted it as. */
  #toldState(row: SessionSummary): SessionState {
    return this.#toldStates.get(row) ?? row.state;
  }

  /** @param take puts what was read of a table at a position into it. `name`: of the list; null: it is none */
  read(table: Held, name: string | null, position: Position, take: () => void): void {
    const since = (name === null ? null : this[table].hold(name, this.#position)) ?? this.#start?.after ?? null;
    take();
    if (since === null || comparePositions(position, since) < 0) {
      this.#start = { after: position };
      this.#position = position;
      this.#told.clear();
      for (const one of HELD) this[one].rewind(position);
    }
    this.changed();
  }
}

const HELD = ['sessions', 'agents', 'tasks', 'obligations', 'inbox'] as const;
/** The kinds of rows that lists are held of. */
export type Held = (typeof HELD)[number];
