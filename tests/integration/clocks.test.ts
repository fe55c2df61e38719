import { afterEach, beforeEach, expect, test } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readSessions } from '@/lib/server/queries/read-sessions';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../support/ingest-target';

/** Wrong clocks: the server's is set back, a runner's is decades off. Order follows position alone. */
const NOON = 1_795_170_000_000;
const HOUR = 3_600_000;

let now: number;
let target: InProcessTarget;
beforeEach(async () => {
  now = NOON;
  target = await inProcessTarget(() => now);
});
afterEach(() => target.close());

const turn = (seq: number, runId: string, occurredAt: number) => [
  record(seq, { occurredAt, event: { type: 'RUN_STARTED', threadId: 's1', runId } }),
  record(seq + 1, { occurredAt, event: { type: 'RUN_FINISHED', threadId: 's1', runId } }),
];

test('a server whose clock is set back keeps accepting records in order', async () => {
  const positions: number[] = [];
  for (const [index, time] of [NOON, NOON - HOUR, NOON - 100 * HOUR, NOON + 1].entries()) {
    now = time;
    const response = await ingest(target, turn(2 * index + 1, `r${index}`, time));
    positions.push(Number(response.position));
  }
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  expect(page?.turns.map(({ id }) => id)).toEqual(['r0', 'r1', 'r2', 'r3']);
});

test('an agent seen after the clock was set back has the current clock’s time', async () => {
  await ingest(target, turn(1, 'r1', NOON));
  now = NOON - HOUR;
  await ingest(target, [record(3, { occurredAt: now, kind: 'log', log: { level: 'info', message: 'still here' } })]);
  const [agent] = (await readAgents(unscoped(target.database), { after: null, limit: 10 })).agents;
  expect(agent?.lastSeenAt).toBe(NOON - HOUR);
});

test.each([
  ['the earliest time', 0],
  ['the latest time', 8_640_000_000_000_000],
])('a runner whose clock shows %s has its records in order', async (_when, occurredAt) => {
  await ingest(target, [...turn(1, 'r1', NOON), ...turn(3, 'r2', occurredAt), ...turn(5, 'r3', NOON)]);
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  expect(page?.turns.map(({ id, startedAt }) => [id, startedAt])).toEqual([
    ['r1', NOON],
    ['r2', occurredAt],
    ['r3', NOON],
  ]);
  const [session] = (await readSessions(unscoped(target.database))).sessions;
  expect(session).toMatchObject({ state: 'idle', turnCount: 3 });
});
