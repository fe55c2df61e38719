import { afterEach, beforeEach, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { clampDeadlines } from '@/lib/server/commands/clamp-deadlines';
import { markOverdueReplies } from '@/lib/server/commands/overdue';
import { readActivity } from '@/lib/server/queries/read-activity';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Durations reported by runners with wrong clocks. */
const T0 = 1_795_170_000_000;
const DAY_MS = 24 * 3_600_000;
let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
});
afterEach(() => target.close());

const tells = (occurredAt: number, ...events: object[]) =>
  ingest(
    target,
    events.map((event) => record(++seq, { occurredAt, event })),
  );
const asks = (at: number) =>
  tells(
    at,
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'user' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'And?' },
    { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
  );
const answers = (at: number) =>
  tells(
    at,
    { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' },
    { type: 'RUN_FINISHED', threadId: 's1', runId: 'r1', metadata: { interlude: { userMessageIds: ['m1'] } } },
  );
/** The start and count of each non-empty step. */
const steps = async (of: 'tasks' | 'answers') =>
  (await readActivity(unscoped(target.database), now, 60))[of].flatMap(({ fromMs, count }) =>
    count > 0 ? [[fromMs, count]] : [],
  );

it('measures waiting times on the server’s clock', async () => {
  await asks(now);
  now += 8 * 60_000;
  await answers(now - 9 * 60_000);
  expect(await steps('answers')).toEqual([[60_000, 1]]);
});

it('excludes clock steps from waiting times', async () => {
  await asks(now);
  now += 16 * 60_000;
  await target.database.writes.run((transaction) => markOverdueReplies(transaction, { now, overdueMs: 900_000 }));
  now += DAY_MS;
  await target.database.writes.run((transaction) => clampDeadlines(transaction, now, DAY_MS));
  now += 60_000;
  await answers(now);
  expect(await steps('answers')).toEqual([[600_000, 1]]);
});

it('selects the last tasks by the server’s order', async () => {
  const task = (id: string, at: number, ms: number) => [
    record(++seq, {
      occurredAt: at,
      event: { type: 'CUSTOM', name: 'task:started', value: { task_id: id, description: id } },
    }),
    record(++seq, { occurredAt: at + ms, event: { type: 'CUSTOM', name: 'task:completed', value: { task_id: id } } }),
  ];
  const many = (count: number, at: number, ms: number) =>
    Array.from({ length: count }, (_, of) => task(`${at}-${of}`, at + of, ms)).flat();
  await ingest(target, many(500, T0 + 365 * DAY_MS, 500));
  await ingest(target, many(50, now, 120_000));
  await tells(now, { type: 'CUSTOM', name: 'task:started', value: { task_id: 'runs', description: 'runs' } });
  expect(await steps('tasks')).toEqual([
    [0, 450],
    [60_000, 50],
  ]);
});
