import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readAgent, readParked } from '@/lib/server/queries/read-agents';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { callRoute } from '../support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../support/ingest-target';

/**
 * Ownership of background results, over agents, sessions, tasks and runs with colliding ids, reported by any session,
 * in any batching, resent, across restarts, assigned and discarded. A record-by-record model predicts the result.
 *
 * Rules 1 and 2: the owner is the session that reported the start, stored before other reports: `#applyToRun`. 3: the
 * exact run takes precedence over the task id; 4: only proof delivers: `#ownerOf`. 5: a record without an owner is
 * parked, neither adopted nor dropped: `take`. 6: the same rules for live, resent, restarted and assigned records: one
 * model. 7: a parked record changes no task before it is assigned. 10: a known end is not delivered again, and another
 * session's report is final except against the owner's: each card. 12: no session gets a task by being later. 13: a
 * delivered record becomes nobody's message. 14: reads change nothing. 15: discarded records are listed with the user
 * who discarded them.
 *
 * Tested elsewhere, because runners implement them: 8 (leases and acknowledgements) and 9 (absence uses no attempts) in
 * tests/property/commands.test.ts and tests/integration/outbox.test.ts; 11 (an idle agent wakes by itself) in
 * tests/agents/claude.test.ts.
 */
let target: InProcessTarget;
afterEach(() => target.close());

const AGENTS = ['x', 'y'];
const SESSIONS = [0, 1, 2];
const agent = fc.constantFrom(...AGENTS);
const session = fc.constantFrom(...SESSIONS);
const task = fc.constantFrom('t1', 't2');
const run = fc.constantFrom(null, null, 'r1', 'r2');

type Step =
  | {
      do: 'start' | 'progress' | 'complete' | 'kill' | 'lose' | 'speak';
      agent: string;
      session: number;
      task: string;
      run: string | null;
    }
  | { do: 'turn'; agent: string; session: number; task: string; run: string | null }
  | { do: 'send' | 'send again' | 'restart' }
  | { do: 'assign' | 'discard'; pick: number; session: number };

const report = fc.record({
  do: fc.constantFrom(
    'start',
    'start',
    'progress',
    'complete',
    'complete',
    'kill',
    'lose',
    'speak',
    'turn',
  ) as fc.Arbitrary<'start'>,
  agent,
  session,
  task,
  run,
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: report, weight: 12 },
  { arbitrary: fc.constantFrom<Step>({ do: 'send' }, { do: 'send again' }, { do: 'restart' }), weight: 4 },
  {
    arbitrary: fc.record({ do: fc.constantFrom('assign', 'discard'), pick: fc.nat(9), session }) as fc.Arbitrary<Step>,
    weight: 2,
  },
);

interface Report {
  tag: number;
  agent: string;
  session: string;
  task: string;
  run: string | null;
  how: 'start' | 'progress' | keyof typeof ENDS | 'speak';
}
const ENDS = { complete: 'completed', kill: 'stopped', lose: 'lost' } as const;

/** A task run as its card must show it. */
interface Run {
  agent: string;
  task: string;
  session: string;
  run: string | null;
  status: 'running' | (typeof ENDS)[keyof typeof ENDS];
  reportedBy: string | null;
}

/** A record's destination: a session's log, parked, or already known there. */
type Fate =
  | { kind: 'in'; session: string; reportedBy: string | null; assigned: boolean }
  | { kind: 'parked' | 'discarded' }
  | { kind: 'known' };

class Model {
  readonly fates = new Map<number, Fate>();
  readonly all = new Map<number, Report>();
  readonly #starts: Run[] = [];
  readonly #sessions = new Map<string, Set<string>>();

  arrive(agentId: string, sessionId: string): void {
    const known = this.#sessions.get(agentId) ?? new Set();
    this.#sessions.set(agentId, known.add(sessionId));
  }

  take(one: Report): void {
    this.all.set(one.tag, one);
    const isFirst = [...(this.#sessions.get(one.agent) ?? [])].every((id) => id === one.session);
    this.arrive(one.agent, one.session);
    const owner = one.how === 'start' ? one.session : this.#ownerOf(one);
    const home = owner ?? (isFirst || one.how === 'speak' ? one.session : null);
    if (home === null || home === 'several') this.fates.set(one.tag, { kind: 'parked' });
    else this.#put(one, home, home === one.session ? null : one.session, false);
  }

  /** Parked records that are settled together with one, oldest first. */
  parkedWith(tag: number): Report[] {
    const one = this.all.get(tag) as Report;
    return [...this.all.values()].filter(
      (other) =>
        this.fates.get(other.tag)?.kind === 'parked' &&
        other.agent === one.agent &&
        other.session === one.session &&
        other.task === one.task &&
        other.run === one.run,
    );
  }

  assign(tag: number, home: string): void {
    for (const one of this.parkedWith(tag)) this.#put(one, home, home === one.session ? null : one.session, true);
  }

  discard(tag: number): void {
    for (const one of this.parkedWith(tag)) this.fates.set(one.tag, { kind: 'discarded' });
  }

  parked(): number[] {
    return [...this.fates].flatMap(([tag, fate]) => (fate.kind === 'parked' ? [tag] : []));
  }

  /** The session's task cards in order of run start. */
  cards(sessionId: string): [string, string | null, string, string | null][] {
    return this.#starts
      .filter((start) => start.session === sessionId)
      .map(({ task: id, run: runId, status, reportedBy }) => [id, runId, status, reportedBy]);
  }

  #ownerOf({ agent: agentId, session: reporter, task: id, run: runId }: Report): string | 'several' | null {
    const starts = this.#starts.filter((start) => start.agent === agentId && start.task === id);
    const exact = starts.filter((start) => runId !== null && start.run === runId);
    const may = new Set((exact.length > 0 ? exact : starts).map((start) => start.session));
    if (may.has(reporter)) return reporter;
    return may.size > 1 ? 'several' : ([...may][0] ?? null);
  }

  #put(one: Report, home: string, reportedBy: string | null, assigned: boolean): void {
    const runs = this.#starts.filter(
      (start) => start.agent === one.agent && start.task === one.task && start.session === home,
    );
    const named = runs.findLast((start) => one.run === null || start.run === one.run);
    const isKnown = named !== undefined && named.status !== 'running' && named.status !== 'lost';
    if (one.how in ENDS && reportedBy !== null && !assigned && isKnown) {
      this.fates.set(one.tag, { kind: 'known' });
      return;
    }
    this.fates.set(one.tag, { kind: 'in', session: home, reportedBy, assigned });
    if (one.how === 'speak') return;
    this.#applyToRun(one, home, reportedBy, runs);
  }

  /** Applies a record to the matching run of its task. */
  #applyToRun(one: Report, home: string, reportedBy: string | null, runs: Run[]): void {
    const found =
      one.run === null
        ? runs.at(-1)
        : (runs.findLast(({ run: known }) => known === one.run) ?? runs.findLast(({ run: known }) => known === null));
    const isAnother =
      one.how === 'start' && (found?.status ?? 'running') !== 'running' && (one.run === null || found?.run !== one.run);
    let about = isAnother ? undefined : found;
    if (about === undefined) {
      const { agent: agentId, task: id, run: runId } = one;
      const born: Run = { agent: agentId, task: id, session: home, run: runId, status: 'running', reportedBy: null };
      this.#starts.push(born);
      about = born;
    }
    about.run ??= one.run;
    if (!(one.how in ENDS)) return;
    const status = ENDS[one.how as keyof typeof ENDS];
    // The owner's report takes precedence over another session's, and both over a guess.
    const firmness = (end: Pick<Run, 'status' | 'reportedBy'>) =>
      end.status === 'running' ? 0 : (end.status === 'lost' ? 1 : 3) + (end.reportedBy === null ? 1 : 0);
    if (firmness({ status, reportedBy }) > firmness(about)) Object.assign(about, { status, reportedBy });
  }
}

const EVENTS: Record<Report['how'], (one: Report) => AgUiEvent> = {
  start: (one) => custom('task:started', one),
  progress: (one) => custom('task:progress', one),
  complete: (one) => custom('task:completed', one),
  kill: (one) => custom('task:updated', one, { status: 'killed' }),
  lose: (one) => custom('task:completed', one, { status: 'lost' }),
  speak: ({ tag, task: id, run: runId }) => ({
    type: 'TEXT_MESSAGE_CHUNK',
    messageId: `m${tag}`,
    role: 'assistant',
    delta: 'x',
    subagentRunId: id,
    tag,
    metadata: { interlude: runId === null ? {} : { taskRunId: runId } },
  }),
};

function custom(name: string, { tag, task: id, run: runId }: Report, more: object = {}): AgUiEvent {
  return {
    type: 'CUSTOM',
    name,
    tag,
    value: { task_id: id, tag, ...more, ...(runId === null ? {} : { run_id: runId }) },
  };
}

const nameOf = (agentId: string, at: number) => `${agentId}${at}`;

/** Where each record was stored. */
async function storedFates(): Promise<Map<number, Fate[]>> {
  const { reader } = target.database;
  const fates = new Map<number, Fate[]>();
  const add = (tag: unknown, fate: Fate) => {
    if (typeof tag === 'number') fates.set(tag, [...(fates.get(tag) ?? []), fate]);
  };
  const { rows: events } = await reader.execute('SELECT session_id, payload FROM events ORDER BY position');
  for (const { session_id: sessionId, payload } of events) {
    const event = JSON.parse(String(payload)) as AgUiEvent;
    const { reportedBy = null, assignedBy } = event.metadata?.interlude ?? {};
    const assigned = assignedBy !== undefined;
    add(event.tag, { kind: 'in', session: String(sessionId), reportedBy, assigned });
    if (event.name === 'interlude:task-elsewhere') add((event.value as { tag?: number }).tag, { kind: 'known' });
  }
  const { rows: parked } = await reader.execute('SELECT parked, record FROM quarantine ORDER BY position');
  for (const { parked: state, record: text } of parked) {
    const { event } = JSON.parse(String(text)) as { event: AgUiEvent };
    if (state !== 'assigned') add(event.tag, { kind: state as 'parked' });
  }
  return fates;
}

async function settle(action: 'assign' | 'discard', agentId: string, position: string, body: object): Promise<void> {
  const response = await callRoute(target.context, 'POST', `/agents/${agentId}/parked/${position}/${action}`, { body });
  expect(response.status).toBe(200);
}

async function play(steps: readonly Step[]): Promise<Model> {
  const model = new Model();
  const positions = new Map<number, string>();
  let tag = 0;
  let seq = 0;
  let batch: Record<string, unknown>[] = [];
  let last: Record<string, unknown>[] = [];
  const send = async () => {
    if (batch.length === 0) return;
    const response = await ingest(target, batch);
    expect(response.duplicates).toBe(0);
    [last, batch] = [batch, []];
  };
  for (const one of steps) {
    if ('agent' in one) {
      const sessionId = nameOf(one.agent, one.session);
      const more = { agentId: one.agent, sessionId };
      seq += 1;
      if (one.do === 'turn') {
        model.arrive(one.agent, sessionId);
        const trigger = { kind: 'task' as const, taskIds: [one.task], taskRunIds: [one.run] };
        const metadata = { interlude: { turn: 'between-run' as const, trigger } };
        batch.push(record(seq, { ...more, event: { type: 'RUN_STARTED', runId: `run-${seq}`, metadata } }));
        continue;
      }
      tag += 1;
      const about: Report = { tag, agent: one.agent, session: sessionId, task: one.task, run: one.run, how: one.do };
      model.take(about);
      batch.push(record(seq, { ...more, event: EVENTS[about.how](about) }));
      continue;
    }
    await send();
    if (one.do === 'restart') await target.restart();
    if (one.do === 'send again' && last.length > 0) {
      expect(await ingest(target, last)).toMatchObject({ accepted: 0, duplicates: last.length });
    }
    if (one.do !== 'assign' && one.do !== 'discard') continue;
    const waiting = model.parked();
    const chosen = waiting[one.pick % Math.max(1, waiting.length)];
    if (chosen === undefined) continue;
    const { agent: agentId } = model.all.get(chosen) as Report;
    const { rows } = await target.database.reader.execute(
      `SELECT position, record FROM quarantine WHERE parked = 'parked'`,
    );
    for (const row of rows) positions.set(JSON.parse(String(row.record)).event.tag, String(row.position));
    const position = positions.get(chosen);
    expect(position, `record ${chosen} is parked`).toBeDefined();
    const home = nameOf(agentId, one.session);
    if (one.do === 'discard') {
      await settle('discard', agentId, position as string, { reason: 'of no use' });
      model.discard(chosen);
    } else if (
      (await target.database.reader.execute({ sql: 'SELECT 1 FROM sessions WHERE id = ?', args: [home] })).rows.length >
      0
    ) {
      await settle('assign', agentId, position as string, { sessionId: home });
      model.assign(chosen, home);
    }
  }
  await send();
  return model;
}

it('ingest delivers each result once to the session that started it, and parks unproven ones', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      target = await inProcessTarget(() => 1_795_170_000_000);
      const model = await play(steps);
      const stored = await storedFates();
      expect([...stored.keys()].sort((a, b) => a - b)).toEqual([...model.all.keys()]);
      for (const [tag, fate] of model.fates)
        expect(stored.get(tag), JSON.stringify(model.all.get(tag))).toEqual([fate]);

      const before = await target.dump();
      for (const agentId of AGENTS) {
        const detail = await readAgent(unscoped(target.database), agentId);
        const mine = [...model.fates].filter(([tag]) => model.all.get(tag)?.agent === agentId).map(([, fate]) => fate);
        const count = (kind: Fate['kind']) => mine.filter((fate) => fate.kind === kind).length;
        expect(detail?.agent.parkedCount ?? 0).toBe(count('parked'));
        const discarded = await readParked(unscoped(target.database), agentId, {
          state: 'discarded',
          after: 0,
          limit: 200,
        });
        expect(discarded.records).toHaveLength(count('discarded'));
        for (const { parked } of discarded.records) {
          expect(parked).toMatchObject({ settledBy: 'operator', reason: 'of no use', settledAt: expect.any(Number) });
        }
        for (const at of SESSIONS) {
          const page = await readTranscript(unscoped(target.database), nameOf(agentId, at), {
            before: null,
            limit: 200,
          });
          const items = (page?.turns ?? []).flatMap((turn) => turn.items);
          expect(items.filter((item) => item.kind === 'message' && item.role === 'user')).toEqual([]);
          const list = await readTasks(unscoped(target.database), nameOf(agentId, at));
          const inHere = new Set(
            [...model.fates].flatMap(([tag, fate]) =>
              fate.kind === 'in' && fate.session === nameOf(agentId, at) ? [model.all.get(tag)?.task] : [],
            ),
          );
          for (const one of list?.tasks ?? []) expect(inHere).toContain(one.id);
          const cards = (list?.tasks ?? []).map(({ id, runId, status, reportedBy }) => [id, runId, status, reportedBy]);
          expect(cards).toEqual(model.cards(nameOf(agentId, at)));
        }
      }
      expect(await target.dump()).toEqual(before);
      await target.close();
    }),
    { numRuns: 120 },
  );
});
