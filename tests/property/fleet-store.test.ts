import { comparePositions } from '@interlude/protocol/position';
import type { Obligation, SessionSummary, Task } from '@interlude/protocol/read-models';
import { noSessions, SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ALL, FleetStore } from '@/components/live/fleet-store';
import type { RowFrame } from '@/components/live/row-frame';
import { openObligationsIn } from '@/components/obligations/use-obligations';
import { aSession, aTask, someCounts } from '../ui/rows';

const SESSIONS = ['s1', 's2', 's3', 's4'];
const AGENTS = ['a1', 'a2'];
const PAGE = 2;

const agentOf = (sessionId: string) => AGENTS[Number(sessionId.slice(1)) % AGENTS.length] as string;

const READINGS = ['counts', 'sessions', 'more', 'session', 'agent-sessions', 'tasks', 'obligations'] as const;
type Reading = (typeof READINGS)[number];
interface Change {
  do: 'session' | 'task' | 'obligation';
  at: number;
  to: number;
}
type Step =
  | Change
  | { do: 'stream' | 'read' | 'read-behind' | 'answer' | 'gap' | 'restore' | 'drop' }
  | { do: 'ask'; reading: Reading };

const change = fc.record({
  do: fc.constantFrom('session' as const, 'task' as const, 'obligation' as const),
  at: fc.nat(SESSIONS.length - 1),
  to: fc.nat(4),
});
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: change },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('ask' as const), reading: fc.constantFrom(...READINGS) }) },
    {
      weight: 12,
      arbitrary: fc.record({ do: fc.constantFrom('stream' as const, 'read' as const, 'answer' as const) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('read-behind', 'gap', 'restore', 'drop') as fc.Arbitrary<'gap'> }),
    },
  ),
  { minLength: 10, maxLength: 60 },
);

/** A server model: all versions of each row by position. */
class Server {
  versions: RowFrame[] = [];

  get position(): number {
    return Number(this.versions.at(-1)?.id ?? 0);
  }

  change(step: Change): void {
    const id = String(this.position + 1 + (step.to % 2));
    const sessionId = SESSIONS[step.at] as string;
    const agentId = agentOf(sessionId);
    if (step.do === 'session') {
      const state = SESSION_STATES[step.to] ?? 'idle';
      this.versions.push({
        event: 'session',
        id,
        data: aSession({ id: sessionId, agentId, state, updatedPosition: id }),
      });
    } else if (step.do === 'task') {
      const known = this.rows('task').filter((task) => task.sessionId === sessionId);
      const position = known[step.to]?.position ?? id;
      const status = step.to === 0 ? 'running' : 'completed';
      this.versions.push({ event: 'task', id, data: aTask({ sessionId, position, status, summary: id }) });
    } else {
      const open = this.rows('obligation').find((one) => one.sessionId === sessionId && one.state === 'owed');
      const fresh = { messageId: id, sessionId, agentId, position: id, text: '', sentAt: 1, state: 'owed' as const };
      const data = open && step.to > 1 ? { ...open, state: 'answered' as const } : fresh;
      this.versions.push({ event: 'obligation', id, data: data as Obligation });
    }
  }

  /** Rows as of a position, by id. */
  rows(event: 'session', at?: number): SessionSummary[];
  rows(event: 'task', at?: number): Task[];
  rows(event: 'obligation', at?: number): Obligation[];
  rows(event: RowFrame['event'], at = this.position): unknown[] {
    return this.after(0, at).flatMap((frame) => (frame.event === event ? [frame.data] : []));
  }

  /** The latest version of each row after a position, as a stream sends it. */
  after(after: number, upTo = this.position): RowFrame[] {
    const latest = new Map<string, RowFrame>();
    for (const frame of this.versions) {
      if (Number(frame.id) > upTo) continue;
      const { data } = frame;
      const key =
        'messageId' in data
          ? data.messageId
          : 'sessionId' in data
            ? `t${(data as Task).position}`
            : (data as SessionSummary).id;
      latest.delete(`${frame.event} ${key}`);
      latest.set(`${frame.event} ${key}`, frame);
    }
    return [...latest.values()].filter(({ id }) => Number(id) > after);
  }
}

interface Request {
  reading: Reading;
  resets: number;
  /** The cursor of a further page. */
  after: string | null;
  take: (() => void) | null;
}

/** A server with a fleet and a page that shows it, with arbitrary delays in between. */
class Scene {
  readonly server = new Server();
  readonly fleet = new FleetStore();
  #requests: Request[] = [];
  #onTheWay: RowFrame[] = [];
  #followed: FleetStore['start'] = null;
  readonly #requested = new Set<Reading>();

  take(step: Step): void {
    const { server, fleet } = this;
    switch (step.do) {
      case 'session':
      case 'task':
      case 'obligation':
        server.change(step);
        this.#onTheWay.push(...server.versions.slice(-1));
        break;
      case 'stream':
        if (this.#followed !== null) fleet.applyFrames(this.#onTheWay.splice(0, 2));
        break;
      case 'ask':
        this.ask(step.reading);
        break;
      case 'read':
      case 'read-behind': {
        const next = this.#requests.find(({ take }) => take === null);
        if (next) next.take = this.#read(next, step.do === 'read' ? server.position : Math.max(0, server.position - 3));
        break;
      }
      case 'answer': {
        const [first] = this.#requests;
        if (first?.take == null) break;
        this.#requests.shift();
        if (first.resets === fleet.resets) first.take();
        break;
      }
      case 'drop':
        this.#requested.delete('tasks');
        this.#requests = this.#requests.filter(({ reading }) => reading !== 'tasks');
        fleet.drop('tasks', 's1');
        break;
      case 'gap':
      case 'restore':
        if (step.do === 'restore') server.versions = server.versions.slice(0, -3);
        this.#onTheWay = [];
        fleet.reset();
        for (const reading of this.#requested) if (reading !== 'more') this.ask(reading);
        break;
    }
    if (fleet.start === this.#followed) return;
    this.#followed = fleet.start;
    this.#onTheWay = fleet.start === null ? [] : server.after(Number(fleet.start.after));
  }

  ask(reading: Reading): void {
    this.#requested.add(reading);
    const after = reading === 'more' ? (this.fleet.sessions.list(ALL)?.next ?? null) : null;
    if (reading === 'more' && after === null) return;
    if (reading === 'tasks') this.fleet.retain('tasks', 's1');
    if (reading === 'obligations') this.fleet.retain('obligations', 'a1');
    this.#requests.push({ reading, resets: this.fleet.resets, after, take: null });
  }

  settle(): void {
    do {
      while (this.#requests.length > 0) {
        this.take({ do: 'read' });
        this.take({ do: 'answer' });
      }
      while (this.#followed !== null && this.#onTheWay.length > 0) this.take({ do: 'stream' });
    } while (this.#requests.length > 0);
  }

  isRead(reading: Reading): boolean {
    return this.#requested.has(reading);
  }

  #read({ reading, after }: Request, at: number): () => void {
    const { fleet, server } = this;
    const position = String(at);
    const sessions = server.rows('session', at).sort((a, b) => (a.id < b.id ? -1 : 1));
    const counts = countByState(sessions);
    switch (reading) {
      case 'counts':
        return () => fleet.putCounts(someCounts({ position, sessions: { ...counts, lost: 0 } }));
      case 'sessions':
      case 'more': {
        const rest = sessions.filter(({ id }) => after === null || id > after);
        const next = rest.length > PAGE ? (rest[PAGE - 1]?.id ?? null) : null;
        const page = { sessions: rest.slice(0, PAGE), next, hasMore: next !== null, counts, position };
        return () => fleet.putSessions(page, after ?? undefined);
      }
      case 'session': {
        const session = sessions.find(({ id }) => id === 's1');
        return () => {
          if (session !== undefined) fleet.putSession({ session, position });
          // Not found; retried while the session exists.
          else if (server.rows('session').some(({ id }) => id === 's1')) this.ask('session');
          else this.#requested.delete('session');
        };
      }
      case 'agent-sessions': {
        const own = sessions.filter(({ agentId }) => agentId === 'a1');
        return () => fleet.putAgentSessions('a1', { sessions: own, next: null, position });
      }
      case 'tasks': {
        const tasks = server.rows('task', at).filter(({ sessionId }) => sessionId === 's1');
        return () => fleet.putTasks('s1', { tasks, position });
      }
      case 'obligations': {
        const obligations = server
          .rows('obligation', at)
          .filter(({ agentId, state }) => agentId === 'a1' && state === 'owed')
          .sort((a, b) => comparePositions(a.position, b.position));
        return () => fleet.putObligations('a1', { obligations, position });
      }
    }
  }
}

function countByState(sessions: readonly SessionSummary[]): Record<SessionState, number> {
  const counts = noSessions();
  for (const { state } of sessions) counts[state] += 1;
  return counts;
}

const byId = <Row>(rows: readonly Row[], idOf: (row: Row) => string) => new Map(rows.map((row) => [idOf(row), row]));

it('the fleet store equals a reload with requests, frames and responses in any order', () => {
  fc.assert(
    fc.property(steps, (chosen) => {
      const scene = new Scene();
      const { fleet, server } = scene;
      for (const step of chosen) scene.take(step);
      scene.settle();
      const sessions = byId(server.rows('session'), ({ id }) => id);
      const list = fleet.sessions.list(ALL);
      if (scene.isRead('sessions')) {
        for (const session of list?.rows ?? []) expect(session).toEqual(sessions.get(session.id));
        if (list?.next === null) expect(list.rows).toHaveLength(sessions.size);
      }
      if (!fleet.countsAreOld) expect(fleet.counts?.sessions).toMatchObject(countByState([...sessions.values()]));
      // A session unknown to a restored server stays unchanged; its page shows a read error.
      const one = fleet.sessions.get('s1');
      if (scene.isRead('session') && one && sessions.has('s1')) expect(one).toEqual(sessions.get('s1'));
      if (scene.isRead('agent-sessions')) {
        const own = [...sessions.values()].filter(({ agentId }) => agentId === 'a1');
        expect(byId(fleet.sessions.list('a1')?.rows ?? [], ({ id }) => id)).toEqual(byId(own, ({ id }) => id));
      }
      if (scene.isRead('tasks')) {
        const own = server.rows('task').filter(({ sessionId }) => sessionId === 's1');
        const shown = fleet.tasks.list('s1')?.rows ?? [];
        expect(byId(shown, ({ position }) => position)).toEqual(byId(own, ({ position }) => position));
      }
      if (scene.isRead('obligations')) {
        const rows = fleet.obligations.list('a1')?.rows ?? [];
        for (const sessionId of SESSIONS.filter((id) => agentOf(id) === 'a1')) {
          const open = server.rows('obligation').filter((one) => one.sessionId === sessionId && one.state === 'owed');
          const ids = open.sort((a, b) => comparePositions(a.position, b.position)).map(({ messageId }) => messageId);
          expect(openObligationsIn(rows, sessionId).map(({ messageId }) => messageId)).toEqual(ids);
        }
      }
      expect(fleet.agents.list(ALL)).toBeUndefined();
    }),
    {
      numRuns: 2_000,
      examples: [
        [
          // After a gap, the counts come from before the state that the page knows.
          [
            { do: 'ask', reading: 'counts' },
            { do: 'read' },
            { do: 'answer' },
            { do: 'session', at: 0, to: 0 },
            { do: 'session', at: 0, to: 1 },
            { do: 'obligation', at: 0, to: 0 },
            { do: 'stream' },
            { do: 'gap' },
            { do: 'read-behind' },
            { do: 'stream' },
            { do: 'ask', reading: 'agent-sessions' },
            { do: 'obligation', at: 0, to: 0 },
            { do: 'stream' },
            { do: 'obligation', at: 0, to: 0 },
          ],
        ],
        [
          // A session changed, was counted, and changed back before the stream reported it.
          [
            { do: 'session', at: 2, to: 0 },
            { do: 'ask', reading: 'sessions' },
            { do: 'session', at: 0, to: 0 },
            { do: 'read' },
            { do: 'gap' },
            { do: 'session', at: 1, to: 0 },
            { do: 'ask', reading: 'sessions' },
            { do: 'session', at: 2, to: 1 },
            { do: 'read' },
            { do: 'read-behind' },
            { do: 'session', at: 2, to: 0 },
          ],
        ],
        [
          // The counts include a state between two equal ones that the page got.
          [
            { do: 'session', at: 1, to: 0 },
            { do: 'ask', reading: 'sessions' },
            { do: 'ask', reading: 'counts' },
            { do: 'read' },
            { do: 'session', at: 1, to: 1 },
            { do: 'session', at: 0, to: 0 },
            { do: 'read' },
            { do: 'session', at: 1, to: 0 },
            { do: 'session', at: 1, to: 0 },
          ],
        ],
        [
          // A restarted stream reports a known session that is missing from a loaded list.
          [
            { do: 'ask', reading: 'obligations' },
            { do: 'ask', reading: 'sessions' },
            { do: 'read' },
            { do: 'session', at: 0, to: 0 },
            { do: 'answer' },
            { do: 'stream' },
            { do: 'read-behind' },
            { do: 'answer' },
            { do: 'ask', reading: 'more' },
            { do: 'stream' },
          ],
        ],
      ],
    },
  );
});
