import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { COMMAND_EXPIRY_MS, RESUMED_MS, RUNNER_AWAY_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { parseReportedStatus } from '@interlude/protocol/projections/reported-status';
import { stateAt } from '@interlude/protocol/projections/resolve-state';
import { newSession, type SessionFold, SessionLedger } from '@interlude/protocol/projections/session-summary';
import { mayBeRunning } from '@interlude/protocol/projections/tasks';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { Task } from '@interlude/protocol/read-models';
import { REPORT_STATES, type ReportState, SESSION_STATES } from '@interlude/protocol/session-states';
import type { TurnPlaces } from '@interlude/protocol/turn-places';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { reconcileLists } from '@/lib/server/ingest/parse-status';
import { foldTasks } from '../support/memory-log';

/**
 * Simulated agents that report, die and return with wrong clocks, followed by the fold and the state rules. The
 * server's part, noticing in time that a runner has gone, is replicated here.
 */
const T0 = 1_795_170_000_000;
/** Invariant 8. */
const MOST_MS = 30_000;
const OWNER = { sessionId: 's1', agentId: 'a1' };

type Step =
  | { kind: 'turn-starts' | 'turn-finishes' | 'turn-fails' | 'speaks' | 'writes' | 'asks' | 'is-answered' }
  | { kind: 'task-starts' | 'task-ends' | 'dies-silently' | 'is-killed' | 'ends-well' | 'comes-back' }
  | { kind: 'task-ends-untold' | 'is-answered-untold' | 'lists-work' | 'is-looked-at' }
  | { kind: 'reports' | 'reports-late'; state: ReportState }
  | { kind: 'waits'; seconds: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom('turn-starts', 'turn-finishes', 'speaks', 'writes').map((kind) => ({ kind })),
  },
  { weight: 3, arbitrary: fc.constantFrom('turn-fails', 'asks', 'is-answered').map((kind) => ({ kind })) },
  { weight: 4, arbitrary: fc.constantFrom('task-starts', 'task-ends').map((kind) => ({ kind })) },
  {
    weight: 4,
    arbitrary: fc.constantFrom('dies-silently', 'is-killed', 'ends-well', 'comes-back').map((kind) => ({ kind })),
  },
  {
    weight: 5,
    arbitrary: fc
      .constantFrom('task-ends-untold', 'is-answered-untold', 'lists-work', 'is-looked-at')
      .map((kind) => ({ kind })),
  },
  { weight: 6, arbitrary: fc.constantFrom(...REPORT_STATES).map((state) => ({ kind: 'reports' as const, state })) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...REPORT_STATES).map((state) => ({ kind: 'reports-late' as const, state })),
  },
  {
    weight: 12,
    arbitrary: fc.constantFrom(0, 1, 3, 6, 11, 29, 31, 70, 700).map((seconds) => ({ kind: 'waits' as const, seconds })),
  },
) as fc.Arbitrary<Step>;

class Life {
  now = T0;
  readonly #skewMs: number;
  #places: TurnPlaces = NO_PLACES;
  #fold: SessionFold = newSession('s1', 'a1', T0);
  #position = 0;
  #turns = 0;
  #ids = 0;
  isTurnOpen = false;
  isAlive = true;
  /** Time of a silent death, detected by silence. */
  diedAt: number | null = null;
  isMissed = false;
  hasExited = false;
  /** The agent's view. */
  #openTasks: string[] = [];
  #openRequest: string | null = null;
  /** The last report that counts, tracked independently. */
  terminal: { state: 'complete' | 'failure'; at: number } | null = null;
  turnSince = 0;
  /** The server's tasks. */
  readonly #tasks = new Map<string, Task>();
  /** Numbers of the turn that answers the last message and of the last report's turn. */
  #messageTurn = 0;
  #reportTurn = 0;
  #lastTurnFailed = false;
  /** The last report that counts, or null. */
  reported: ReportState | null = null;
  /** The failure that was seen, unless a newer one was reported. */
  seenState: number | null = null;

  constructor(skewMs: number) {
    this.#skewMs = skewMs;
  }

  get session() {
    return this.#fold.summary;
  }

  #apply(events: AgUiEvent[], status: object | null, isHeard: boolean): void {
    const entries = events.map((event): EventEntry => {
      this.#position += 1;
      const occurredAt = this.now + (isHeard ? this.#skewMs : 0);
      return { position: String(this.#position), occurredAt, receivedAt: this.now, event };
    });
    const { places, placements } = placeEvents(this.#places, entries);
    this.#places = places;
    const ledger = new SessionLedger(this.#fold, isHeard ? this.now : null);
    for (const placement of placements) ledger.apply(placement);
    const reported =
      status === null ? null : parseReportedStatus(readAgentStatus(status as Record<string, unknown>), 0);
    if (reported !== null) ledger.applyStatus(reported, this.now);
    for (const task of foldTasks([...this.#tasks.values()], placements, OWNER)) {
      ledger.countTask(this.#tasks.get(task.position) ?? null, task);
      this.#tasks.set(task.position, task);
    }
    this.#fold = ledger.result([], this.now);
  }

  #emit(...events: AgUiEvent[]): void {
    this.#apply(events, null, true);
  }

  #custom(name: string, value: object, isHeard = true): void {
    this.#apply([{ type: 'CUSTOM', name, value }], null, isHeard);
  }

  /** Advances time from one possible state change to the next, as the server does. */
  passes(seconds: number, look: () => void): void {
    const end = this.now + seconds * 1_000;
    while (this.now < end) {
      const missedAt = this.diedAt === null || this.isMissed ? null : this.diedAt + RUNNER_AWAY_MS + RUNNER_GRACE_MS;
      const deadAt = this.diedAt === null ? null : this.diedAt + MOST_MS;
      const { givesUpAt } = this.#fold;
      const moments = [this.session.stateDueAt, missedAt, deadAt, givesUpAt].filter(
        (at) => at !== null && at > this.now,
      );
      this.now = Math.min(end, ...(moments as number[]));
      if (missedAt !== null && this.now >= missedAt) {
        this.isMissed = true;
        const value = { since: missedAt - RUNNER_GRACE_MS, last_heard_at: this.diedAt, agent_goes_on: false };
        this.#custom(CUSTOM.runnerAway, value, false);
      }
      if (givesUpAt !== null && givesUpAt <= this.now) {
        this.#custom(CUSTOM.requestResolved, { request_id: 'q', outcome: 'unknown' }, false);
      }
      const { stateDueAt } = this.session;
      if (stateDueAt !== null && stateDueAt <= this.now) {
        this.#fold = { ...this.#fold, summary: stateAt(this.session, this.now) };
      }
      look();
    }
  }

  does(one: Step): void {
    const turn = `t${this.#turns}`;
    if (one.kind === 'writes') {
      this.#ids += 1;
      const metadata = { interlude: { delivery: 'queued' as const } };
      const id = `u${this.#ids}`;
      const message: AgUiEvent[] = [
        { type: 'TEXT_MESSAGE_START', messageId: id, role: 'user', metadata },
        { type: 'TEXT_MESSAGE_END', messageId: id },
      ];
      this.#apply(message, null, false);
      this.terminal = null;
      this.reported = null;
      this.#messageTurn = this.#turns + 1;
      return;
    }
    if (one.kind === 'is-looked-at') {
      if (this.session.state === 'failed') this.seenState = this.session.stateSince;
      return;
    }
    if (!this.isAlive && one.kind !== 'comes-back') return;
    switch (one.kind) {
      case 'turn-starts':
        // an interrupted turn has no open requests
        if (this.isTurnOpen) this.#openRequest = null;
        this.#turns += 1;
        this.isTurnOpen = true;
        this.turnSince = this.now;
        this.hasExited = false;
        this.#lastTurnFailed = false;
        this.#emit({ type: 'RUN_STARTED', threadId: 's1', runId: `t${this.#turns}` });
        return;
      case 'turn-finishes':
        if (!this.isTurnOpen) return;
        this.isTurnOpen = false;
        this.#emit({ type: 'RUN_FINISHED', threadId: 's1', runId: turn });
        return;
      case 'turn-fails':
        if (!this.isTurnOpen) return;
        this.isTurnOpen = false;
        this.terminal = null;
        this.#openRequest = null;
        this.#lastTurnFailed = true;
        this.seenState = null;
        this.#emit({ type: 'RUN_ERROR', message: 'No credit' });
        return;
      case 'speaks':
        this.#ids += 1;
        this.#emit({ type: 'TEXT_MESSAGE_CHUNK', messageId: `m${this.#ids}`, role: 'assistant', delta: 'Hm.' });
        return;
      case 'asks':
        this.#openRequest = 'q';
        this.#custom(CUSTOM.requestOpened, { request_id: 'q', title: 'Run rm?' });
        return;
      case 'is-answered':
        this.#openRequest = null;
        this.#custom(CUSTOM.requestResolved, { request_id: 'q', outcome: 'allowed' });
        return;
      case 'task-starts':
        this.#ids += 1;
        this.#openTasks.push(`b${this.#ids}`);
        this.#custom(CUSTOM.taskStarted, { task_id: `b${this.#ids}` });
        return;
      case 'task-ends': {
        const id = this.#openTasks.shift();
        if (id !== undefined) this.#custom(CUSTOM.taskCompleted, { task_id: id, status: 'completed' });
        return;
      }
      case 'reports': {
        const { state } = one;
        this.#ids += 1;
        this.#reportTurn = this.#turns;
        this.seenState = null;
        const openTurnId = this.isTurnOpen ? turn : null;
        this.#apply([], { report: { state, at: this.#ids, turnId: openTurnId }, openTurnId }, true);
        const counts = this.session.observations.report?.isOutdated !== true;
        this.reported = counts ? state : null;
        this.terminal = counts && (state === 'complete' || state === 'failure') ? { state, at: this.now } : null;
        return;
      }
      case 'reports-late': {
        if (this.#turns < 2) return;
        const named = this.#turns - 1;
        this.#ids += 1;
        this.seenState = null;
        const openTurnId = this.isTurnOpen ? turn : null;
        this.#apply([], { report: { state: one.state, at: this.#ids, turnId: `t${named}` }, openTurnId }, true);
        // it doesn't cover later answers or reports
        if (named < this.#reportTurn) return;
        this.#reportTurn = named;
        this.reported = named < this.#messageTurn ? null : one.state;
        if (this.reported === null) return;
        const isTerminal = one.state === 'failure' || (one.state === 'complete' && !this.#lastTurnFailed);
        this.terminal = isTerminal ? { state: one.state === 'failure' ? 'failure' : 'complete', at: this.now } : null;
        return;
      }
      case 'task-ends-untold':
        if (this.#openTasks.shift() !== undefined) this.#custom(CUSTOM.lost, { count: 1, reason: 'outbox-full' });
        return;
      case 'is-answered-untold':
        if (this.#openRequest === null) return;
        this.#openRequest = null;
        this.#custom(CUSTOM.lost, { count: 1, reason: 'outbox-full' });
        return;
      case 'lists-work':
        this.#lists();
        expect(this.session.runningTaskCount).toBe(this.#openTasks.length);
        expect(this.session.pendingRequestCount).toBe(this.isAsking ? 1 : 0);
        return;
      case 'dies-silently':
        this.isAlive = false;
        this.diedAt = this.now;
        return;
      case 'is-killed':
      case 'ends-well': {
        const isKilled = one.kind === 'is-killed';
        this.isAlive = false;
        this.hasExited = true;
        this.isTurnOpen = false;
        this.#openRequest = null;
        this.#openTasks = [];
        this.terminal = null;
        this.seenState = null;
        this.#custom(CUSTOM.sessionEnded, isKilled ? { signal: 'SIGKILL' } : { exitCode: 0 });
        return;
      }
      case 'comes-back':
        if (this.isAlive) return;
        if (this.isMissed) this.#custom(CUSTOM.runnerBack, {}, false);
        this.isAlive = true;
        this.diedAt = null;
        this.isMissed = false;
        this.hasExited = false;
        this.#custom(CUSTOM.sessionStarted, {});
        this.isTurnOpen = this.session.openTurnId !== null;
        // it repeats its open requests
        if (this.#openRequest !== null) this.#custom(CUSTOM.requestOpened, { request_id: 'q', title: 'Run rm?' });
    }
  }

  /** The runner's status record with open work, and the events that ingest derives. */
  #lists(): void {
    const openTurnId = this.isTurnOpen ? `t${this.#turns}` : null;
    const running = this.#openTasks.map((id) => ({ id, description: id }));
    const status = { openTurnId, tasks: running, requests: this.isAsking ? ['q'] : [] };
    this.#apply([], status, true);
    const lists = parseReportedStatus(readAgentStatus(status), 0)?.lists ?? null;
    const tasks = [...this.#tasks.values()].filter(mayBeRunning);
    const requestIds = this.session.pendingRequestCount > 0 ? ['q'] : [];
    if (lists !== null) this.#apply([...reconcileLists(lists, { tasks, requestIds })], null, true);
  }

  get hasGivenUp(): boolean {
    return this.#fold.away?.last !== undefined;
  }

  get isAsking(): boolean {
    return this.#openRequest !== null;
  }
}

/** Invariants at any time. */
function check(life: Life): void {
  const { session, now } = life;
  const { state, evidence } = session;
  expect(SESSION_STATES).toContain(state);
  expect(evidence.observedAt).toBeLessThanOrEqual(now);
  if (life.hasExited) expect(['exited', 'complete']).toContain(state);
  // 30 s after death nothing is working, waiting or idle; open requests may still be answered.
  if (life.diedAt !== null && now - life.diedAt >= MOST_MS) {
    expect(state).toBe(session.pendingRequestCount > 0 ? 'needs-input' : 'unknown');
    expect(session.runningTaskCount).toBe(0);
    expect(now - life.diedAt < MOST_MS + COMMAND_EXPIRY_MS || session.pendingRequestCount === 0).toBe(true);
    if (life.hasGivenUp) expect(evidence.last).toBe('needs-input');
  }
  if (life.isAlive && state === 'complete') expect(life.reported).toBe('complete');
  // A failure that was seen isn't new again, whatever the state in between.
  if (state === 'failed' && life.seenState !== null) expect(session.stateSince).toBeLessThanOrEqual(life.seenState);
  if (!life.isAlive || session.pendingRequestCount > 0 || life.terminal === null) return;
  // A terminal report stays unless the agent continues.
  const reported = life.terminal.state === 'failure' ? 'failed' : 'complete';
  const hasRunOn = life.isTurnOpen && now - Math.max(life.turnSince, life.terminal.at) >= RESUMED_MS;
  expect(state).toBe(hasRunOn ? 'working' : reported);
  expect(evidence.report?.state).toBe(life.terminal.state);
}

/** A failure reported by both a turn and a report, in either order: seeing the second covers both. */
const REPORTED_TWICE: [Step[], number][] = (
  [
    [
      { kind: 'reports', state: 'failure' },
      { kind: 'waits', seconds: 31 },
      { kind: 'turn-starts' },
      { kind: 'turn-fails' },
    ],
    [
      { kind: 'turn-starts' },
      { kind: 'turn-fails' },
      { kind: 'waits', seconds: 31 },
      { kind: 'reports', state: 'failure' },
    ],
  ] satisfies Step[][]
).map((steps) => [[...steps, { kind: 'is-looked-at' }, { kind: 'writes' }, { kind: 'speaks' }], 0]);

it('a session state is never null or working 30 s after death, and keeps terminal reports, in 10,000 lives', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 30, size: 'max' }),
      fc.integer({ min: -600_000, max: 600_000 }),
      (steps, skewMs) => {
        const life = new Life(skewMs);
        check(life);
        for (const one of steps) {
          if (one.kind === 'waits') life.passes(one.seconds, () => check(life));
          else life.does(one);
          check(life);
        }
        life.passes(31, () => check(life));
      },
    ),
    { numRuns: 10_000, examples: REPORTED_TWICE },
  );
});
