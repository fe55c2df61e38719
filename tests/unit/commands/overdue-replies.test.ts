import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { replyOverdueMs } from '@/lib/server/commands/overdue';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readObligations } from '@/lib/server/queries/read-pending';
import { readSession } from '@/lib/server/queries/read-sessions';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Pending replies, with an injected clock. */
const T0 = 1_795_170_000_000;
const MINUTE_MS = 60_000;

let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

const askAll = (messageIds: string[], sentAt = now) =>
  ingest(
    target,
    messageIds
      .flatMap((messageId) => [
        { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Ada' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: `Which port, ${messageId}?` },
        { type: 'TEXT_MESSAGE_END', messageId },
      ])
      .map((event) => record(++seq, { event, occurredAt: sentAt })),
  );
/** @param sentAt by the agent's clock, which may be wrong */
const asks = (messageId: string, sentAt = now) => askAll([messageId], sentAt);
/** A new instance each time, as after a restart. */
async function passes(minutes: number, overdueMs = 15 * MINUTE_MS): Promise<void> {
  now += minutes * MINUTE_MS;
  const { database } = target;
  await new CommandHub({ database, now: () => now, steady: () => now, replyOverdueMs: overdueMs }).sweep();
}
const overdue = async () =>
  (await readInbox(unscoped(target.database), { after: null, limit: 10 })).items
    .filter(({ kind }) => kind === 'overdue-reply')
    .map(({ messageId, title, from, since }) => [messageId, title, from?.id, since]);
const counts = async () => {
  const { agents } = await readAgents(unscoped(target.database), { after: null, limit: 5, words: [] });
  const session = (await readSession(unscoped(target.database), 's1'))?.session;
  return [session?.owedCount, session?.overdueCount, agents[0]?.owedCount, agents[0]?.overdueCount];
};

it('is overdue once after the limit, on any instance', async () => {
  await asks('u1', T0 - 3_600_000);
  await passes(14);
  await asks('u2', now + 3_600_000);
  expect(await overdue()).toEqual([]);
  await passes(1);
  expect(await overdue()).toEqual([['u1', 'Which port, u1?', 'Ada', T0 + 15 * MINUTE_MS]]);
  expect(await counts()).toEqual([2, 1, 2, 1]);
  const told = async () =>
    (await readInbox(unscoped(target.database), { after: null, limit: 1 })).items[0]?.updatedPosition;
  const before = await told();
  await passes(1);
  expect(await told()).toBe(before);
  await passes(13);
  expect((await overdue()).map(([id]) => id)).toEqual(['u1', 'u2']);
  const { obligations } = await readObligations(unscoped(target.database), 'a1');
  expect(obligations.map(({ messageId, isOverdue, owedSince }) => [messageId, isOverdue, owedSince])).toEqual([
    ['u1', true, T0],
    ['u2', true, T0 + 14 * MINUTE_MS],
  ]);
});

it('leaves the inbox once it is answered or waived', async () => {
  await asks('u1');
  await asks('u2');
  await passes(20);
  expect((await overdue()).map(([id]) => id)).toEqual(['u1', 'u2']);
  await ingest(target, [
    record(++seq, {
      event: { type: 'RUN_STARTED', runId: 'r', metadata: { interlude: { turn: 'user', userMessageIds: ['u1'] } } },
    }),
    record(++seq, { event: { type: 'RUN_FINISHED', runId: 'r' } }),
    record(++seq, { event: { type: 'CUSTOM', name: 'obligation:waived', value: { message_id: 'u2' } } }),
  ]);
  expect(await overdue()).toEqual([]);
  expect(await counts()).toEqual([0, 0, 0, 0]);
  await passes(60);
  expect(await overdue()).toEqual([]);
});

it('counts each of 250 messages that become overdue together once', async () => {
  await askAll(Array.from({ length: 250 }, (_, index) => `u${index}`));
  await passes(15);
  expect(await counts()).toEqual([250, 250, 250, 250]);
});

it('waits its whole limit when the clock is set ahead, and no longer when it is set back', async () => {
  await asks('u1');
  const { database } = target;
  let steady = 0;
  const hub = new CommandHub({ database, now: () => now, steady: () => steady, replyOverdueMs: 15 * MINUTE_MS });
  await hub.sweep();
  now += 24 * 60 * MINUTE_MS;
  steady += 1_000;
  await hub.sweep();
  expect(await overdue()).toEqual([]);
  now -= 48 * 60 * MINUTE_MS;
  await hub.sweep();
  now += 15 * MINUTE_MS;
  steady += 15 * MINUTE_MS;
  await hub.sweep();
  expect((await overdue()).map(([id]) => id)).toEqual(['u1']);
});

it('reads its limit from the environment, and logs an invalid one', () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  const set = (value: string) => replyOverdueMs({ INTERLUDE_REPLY_OVERDUE_MINUTES: value });
  expect([replyOverdueMs({}), set(''), set('0.5'), set('60')]).toEqual([900_000, 900_000, 30_000, 3_600_000]);
  expect(said).not.toHaveBeenCalled();
  expect([set('0'), set('-1'), set('soon'), set('1e9')]).toEqual([900_000, 900_000, 900_000, 900_000]);
  expect(said).toHaveBeenCalledTimes(4);
});

describe('a reply that its agent can’t give now', () => {
  const says = (event: object) => ingest(target, [record(++seq, { event })]);
  const starts = (runId: string) => says({ type: 'RUN_STARTED', threadId: 's1', runId });
  const opens = {
    type: 'CUSTOM',
    name: 'request:opened',
    value: { request_id: 'q1', kind: 'question', title: 'Which?' },
  };
  const resolves = { type: 'CUSTOM', name: 'request:resolved', value: { request_id: 'q1', outcome: 'answered' } };

  it.each([
    ['waits for its operator', async () => starts('r1').then(() => says(opens)), async () => says(resolves)],
    [
      'has failed',
      async () => starts('r1').then(() => says({ type: 'RUN_ERROR', runId: 'r1', message: 'No credit' })),
      async () => starts('r2'),
    ],
    [
      'has exited',
      async () => says({ type: 'CUSTOM', name: 'session:ended', value: {} }),
      async () => says({ type: 'CUSTOM', name: 'session:started', value: {} }),
    ],
  ])('is not overdue while that %s, and is as soon as it no longer does', async (_what, stops, goesOn) => {
    await asks('u1');
    await stops();
    await passes(15);
    expect([await overdue(), await counts()]).toEqual([[], [1, 0, 1, 0]]);
    await goesOn();
    await passes(0);
    expect((await overdue()).map(([id]) => id)).toEqual(['u1']);
    await stops();
    await passes(0);
    expect([await overdue(), await counts()]).toEqual([[], [1, 0, 1, 0]]);
  });

  it('is judged once, not at each sweep', async () => {
    await asks('u1');
    await says({ type: 'CUSTOM', name: 'session:ended', value: {} });
    await passes(15);
    const { rows } = await target.database.reader.execute('SELECT is_judged, is_overdue FROM obligations');
    expect(rows.map(({ is_judged, is_overdue }) => [is_judged, is_overdue])).toEqual([[1, 0]]);
  });
});
