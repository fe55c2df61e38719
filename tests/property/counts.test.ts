import { MAX_OPEN_REQUESTS } from '@interlude/protocol/limits';
import { countedStateOf } from '@interlude/protocol/session-predicates';
import { agentStateOf, noListed } from '@interlude/protocol/session-states';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { agentFromRow, sessionFromRow } from '@/db/read-model-rows';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { callRoute } from '../support/call-route';
import { type InProcessTarget, ingest, inProcessTarget } from '../support/ingest-target';

/**
 * Every count of a session and agent equals its number of rows, however events are repeated, duplicated in one request,
 * omitted or split over requests, and whatever people settle in between.
 */

type Sent = Record<string, unknown>;
type Step =
  | { kind: 'send'; records: Sent[] }
  | { kind: 'settle'; how: 'assign' | 'discard' | 'see' }
  | { kind: 'wait' };

const agentOf = (session: string) => (session.startsWith('b') ? 'b' : 'a');
const session = fc.constantFrom('a1', 'a1', 'a2', 'b1');
const few = (prefix: string, count: number) => fc.integer({ min: 0, max: count - 1 }).map((at) => `${prefix}${at}`);
const custom = (name: string, value: object): Sent => ({ type: 'CUSTOM', name, value });
const requests = (from: number, count: number, name: string): Sent[] =>
  Array.from({ length: count }, (_, index) => custom(name, { request_id: `q${from + index}` }));

const events: fc.Arbitrary<Sent[]> = fc.oneof(
  {
    weight: 4,
    arbitrary: few('q', 4).map((id) => {
      const until = id === 'q3' ? { expires_at: 1_795_170_600_000 } : {};
      return [custom('request:opened', { request_id: id, title: id, ...until })];
    }),
  },
  { weight: 4, arbitrary: few('q', 4).map((id) => [custom('request:resolved', { request_id: id })]) },
  fc
    .tuple(fc.constantFrom(0, 500, 900), fc.constantFrom('request:opened', 'request:opened', 'request:resolved'))
    .map(([from, name]) => requests(from, 550, name)),
  few('t', 3).map((task_id) => [custom('task:started', { task_id, description: task_id })]),
  {
    weight: 3,
    arbitrary: few('t', 6).map((task_id) => [custom('task:completed', { task_id, status: 'completed' })]),
  },
  few('m', 4).map((messageId) => [
    {
      type: 'TEXT_MESSAGE_START',
      messageId,
      role: 'user',
      metadata: { interlude: { from: { kind: 'person', id: 'p' } } },
    },
    { type: 'TEXT_MESSAGE_END', messageId },
  ]),
  fc.tuple(few('r', 4), few('m', 4)).map(([messageId, replyTo]) => [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', metadata: { interlude: { replyTo: [replyTo] } } },
    { type: 'TEXT_MESSAGE_END', messageId },
  ]),
  few('m', 4).map((message_id) => [custom('obligation:waived', { message_id })]),
  few('r', 4).map((runId) => [{ type: 'RUN_STARTED', threadId: 's', runId }]),
  few('r', 4).map((runId) => [{ type: 'RUN_FINISHED', threadId: 's', runId }]),
  few('r', 4).map((runId) => [{ type: 'RUN_ERROR', message: 'x', runId }]),
  fc.constantFrom('session:ended', 'session:started').map((name) => [custom(name, {})]),
  // reserved for the server
  fc
    .constantFrom('interlude:quarantined', 'interlude:parked-assigned', 'interlude:parked-discarded')
    .map((name) => [custom(name, { seq: 1, count: 3, reported_by: 'a1', message: 'x' })]),
);

const ofSession = fc.tuple(session, events).map(([sessionId, all]): Sent[] => {
  return all.map((event) => ({ kind: 'event', agentId: agentOf(sessionId), sessionId, event }));
});
const rejected = fc
  .record({ agentId: fc.constantFrom('a', 'b', undefined), sessionId: fc.oneof(session, fc.constant(undefined)) })
  .map((of): Sent[] => [{ kind: 'rumour', ...of }]);
const lost = fc
  .record({ agentId: fc.constantFrom('a', 'b'), count: fc.integer({ min: 1, max: 5 }), at: fc.option(session) })
  .map(({ agentId, count, at }): Sent[] => {
    const of = at === null ? { agentId } : { agentId: agentOf(at), sessionId: at };
    return [{ kind: 'lost', ...of, lost: { count, reason: 'outbox-full' } }];
  });
const failure = fc
  .record({ agentId: fc.constantFrom('a', 'b'), of: fc.option(session) })
  .map(({ agentId, of }): Sent[] => {
    const insight = { signal: 'x', outcome: 'failed', source: 'y', ...(of === null ? {} : { sessionId: of }) };
    return [{ kind: 'log', agentId, log: { level: 'info', message: 'x', component: 'c', insight } }];
  });
/** Repeats events; a repetition by the agent has its own seq. */
const repeated = fc
  .tuple(fc.oneof({ weight: 8, arbitrary: ofSession }, { weight: 2, arbitrary: rejected }, lost, failure), fc.nat(2))
  .map(([records, times]) => Array.from({ length: 1 + times }, () => records).flat());

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .array(repeated, { minLength: 1, maxLength: 8 })
        .map((all): Step => ({ kind: 'send', records: all.flat() })),
    },
    fc.constant<Step>({ kind: 'wait' }),
    {
      weight: 3,
      arbitrary: fc
        .constantFrom('assign' as const, 'discard' as const, 'see' as const)
        .map((how): Step => ({ kind: 'settle', how })),
    },
  ),
  { minLength: 1, maxLength: 10 },
);

it('counts equal their rows with any repetition, loss, rejection, settlement and batching', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
      async (all, sizes) => {
        const clock = { now: 1_795_170_000_000 };
        const target = await inProcessTarget(() => clock.now);
        try {
          await play(target, clock, all, sizes);
        } finally {
          await target.close();
        }
      },
    ),
    { numRuns: 25 },
  );
});

async function play(
  target: InProcessTarget,
  clock: { now: number },
  all: readonly Step[],
  sizes: readonly number[],
): Promise<void> {
  const hub = new CommandHub({ database: target.database, now: () => clock.now, steady: () => clock.now });
  let seq = 0;
  let turn = 0;
  for (const step of all) {
    if (step.kind === 'settle') await settle(target, step.how);
    else if (step.kind === 'wait') {
      clock.now += 3_600_000;
      await hub.sweep();
    } else {
      const numbered = step.records.map((record) => ({ seq: ++seq, occurredAt: clock.now, ...record }));
      for (let from = 0; from < numbered.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        const batch = numbered.slice(from, from + size);
        await ingest(target, batch);
        // the response was lost, so the outbox resends
        if (turn % 3 === 0) await ingest(target, batch);
        from += size;
      }
    }
    await check(target);
  }
}

async function settle(target: InProcessTarget, how: 'assign' | 'discard' | 'see'): Promise<void> {
  const [parked] = await rows(target, "SELECT position, agent_id FROM quarantine WHERE parked = 'parked'");
  const [newest] = await rows(target, 'SELECT position, agent_id FROM insights ORDER BY position DESC');
  const of = how === 'see' ? newest : parked;
  if (of === undefined) return;
  const path = how === 'see' ? 'insights/seen' : `parked/${of.position}/${how}`;
  const body = how === 'see' ? { upTo: String(of.position) } : how === 'assign' ? { sessionId: `${of.agent_id}1` } : {};
  const response = await callRoute(target.context, 'POST', `/agents/${of.agent_id}/${path}`, { body });
  // the target session may not exist yet
  expect([200, 404]).toContain(response.status);
}

async function check(target: InProcessTarget): Promise<void> {
  for (const row of await rows(target, 'SELECT * FROM sessions')) {
    const { id, memory } = row;
    const summary = sessionFromRow(row);
    const [counted] = await rows(target, OF_SESSION, String(id));
    const { lostCount, quarantinedCount, owedCount, overdueCount, runningTaskCount } = summary;
    expect({ id, lostCount, quarantinedCount, owedCount, overdueCount, runningTaskCount }).toEqual({ id, ...counted });
    expect(summary.pendingRequestCount).toBe(await openRequests(target, String(id)));
    const [failures] = await rows(target, MARKS_OF_SESSION, String(id));
    expect(summary.insightCount).toBeGreaterThanOrEqual(Number(failures?.own));
    expect(summary.insightCount).toBeLessThanOrEqual(Number(failures?.own) + Number(failures?.around));
    expect(JSON.parse(String(memory)).fold.pendingRequests).toHaveLength(summary.pendingRequestCount);
  }
  for (const row of await rows(target, 'SELECT * FROM agents')) {
    const { id } = row;
    const summary = agentFromRow(row);
    const [counted] = await rows(target, OF_AGENT, String(id));
    const { sessionCount, quarantinedCount, parkedCount, owedCount, overdueCount, runningTaskCount, insightCount } =
      summary;
    const reported = {
      sessionCount,
      quarantinedCount,
      parkedCount,
      owedCount,
      overdueCount,
      runningTaskCount,
      insightCount,
    };
    expect({ id, ...reported }).toEqual({ id, ...counted });
    const states = await rows(
      target,
      'SELECT state, count(*) AS count FROM sessions WHERE agent_id = ? GROUP BY state',
      String(id),
    );
    const nonZero = Object.entries(summary.sessionStates).filter(([, count]) => count !== 0);
    expect(Object.fromEntries(nonZero)).toEqual(Object.fromEntries(states.map(({ state, count }) => [state, count])));
    const listed = noListed();
    for (const session of await rows(target, 'SELECT * FROM sessions WHERE agent_id = ?', String(id))) {
      listed[countedStateOf(sessionFromRow(session))] += 1;
    }
    expect([summary.listedStates, summary.state]).toEqual([listed, agentStateOf(listed)]);
  }
  const [producer] = await rows(target, "SELECT rejected, lost FROM producers WHERE id = 'p1'");
  const [kept] = await rows(target, "SELECT count(*) AS count FROM quarantine WHERE producer_id = 'p1'");
  const [agents] = await rows(target, "SELECT ifnull(sum(body->>'$.lostCount'), 0) AS count FROM agents");
  if (producer !== undefined) expect([producer.rejected, producer.lost]).toEqual([kept?.count, agents?.count]);
}

const OPEN_TASKS = "(SELECT count(*) FROM tasks WHERE status = 'running' AND";
const OPEN_OBLIGATIONS = "(SELECT count(*) FROM obligations WHERE state = 'owed' AND";
const UNSETTLED = "(SELECT count(*) FROM quarantine WHERE ifnull(parked, 'parked') = 'parked' AND";
const OF_SESSION = `SELECT
  (SELECT ifnull(sum(payload->>'$.value.count'), 0) FROM events WHERE session_id = ?1 AND name = 'interlude:lost') AS lostCount,
  ${UNSETTLED} session_id = ?1 AND agent_id = substr(?1, 1, 1)) AS quarantinedCount,
  ${OPEN_OBLIGATIONS} session_id = ?1) AS owedCount, ${OPEN_OBLIGATIONS} session_id = ?1 AND is_overdue) AS overdueCount,
  ${OPEN_TASKS} session_id = ?1) AS runningTaskCount`;
/** Conditions on the session's state, by request. The count isn't stored in rows. */
const MARKS_OF_SESSION = `WITH unseen AS (
    SELECT session_id FROM insights WHERE is_failure AND seen_at IS NULL AND agent_id = substr(?1, 1, 1)
      AND position > (SELECT ifnull(min(position), 0) FROM events WHERE session_id = ?1)
  ) SELECT count(*) FILTER (WHERE session_id = ?1) AS own, count(*) FILTER (WHERE session_id IS NULL) AS around FROM unseen`;
const OF_AGENT = `SELECT
  (SELECT count(*) FROM sessions WHERE agent_id = ?1) AS sessionCount,
  ${UNSETTLED} agent_id = ?1) AS quarantinedCount,
  (SELECT count(*) FROM quarantine WHERE parked = 'parked' AND agent_id = ?1) AS parkedCount,
  ${OPEN_OBLIGATIONS} agent_id = ?1) AS owedCount, ${OPEN_OBLIGATIONS} agent_id = ?1 AND is_overdue) AS overdueCount,
  ${OPEN_TASKS} agent_id = ?1) AS runningTaskCount,
  (SELECT count(*) FROM insights WHERE is_failure AND seen_at IS NULL AND agent_id = ?1) AS insightCount`;

/** Distinct open requests by the log alone: opened, not resolved, and not in an interrupted turn. */
async function openRequests(target: InProcessTarget, id: string): Promise<number> {
  const open = new Set<unknown>();
  let turnId: string | null = null;
  for (const { payload } of await rows(
    target,
    'SELECT payload FROM events WHERE session_id = ? ORDER BY position',
    id,
  )) {
    const { type, name, value, runId } = JSON.parse(String(payload));
    const ends = turnId !== null && runId === turnId;
    if (type === 'RUN_STARTED' && turnId !== runId) {
      if (turnId !== null) open.clear();
      turnId = runId;
    } else if (type === 'RUN_FINISHED' && ends) turnId = null;
    else if (type === 'RUN_ERROR' && ends) {
      turnId = null;
      open.clear();
    } else if (name === 'session:ended') {
      turnId = null;
      open.clear();
    } else if (name === 'request:resolved') open.delete(value.request_id);
    else if (name === 'request:opened' && open.size < MAX_OPEN_REQUESTS) open.add(value.request_id);
  }
  return open.size;
}

async function rows(target: InProcessTarget, sql: string, ...args: string[]) {
  return (await target.database.reader.execute({ sql, args })).rows;
}
