import { CUSTOM } from '@interlude/protocol/event-fields';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcessTarget, ingest, inProcessTarget, marker, record } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
  await ingest(target, [marker(1), marker(2, { sessionId: 's2' })]);
});
afterEach(() => target.close());

const lost = (seq: number, count: number, reason = 'outbox-full', sessionId?: string) =>
  record(seq, { kind: 'lost', sessionId, lost: { count, reason } });

/** The losses in the transcripts, in order: session, number and reason. */
async function shown(): Promise<unknown[][]> {
  const { rows } = await target.database.reader.execute({
    sql: `SELECT session_id, payload->>'$.value.count' AS count, payload->>'$.value.reason' AS reason
      FROM events WHERE name = ? ORDER BY position`,
    args: [CUSTOM.lost],
  });
  return rows.map(({ session_id, count, reason }) => [session_id, count, reason]);
}

async function counted(): Promise<unknown[]> {
  const { rows } = await target.database.reader.execute(
    `SELECT (SELECT lost FROM producers) AS producer, body->>'$.lostCount' AS agent FROM agents`,
  );
  return rows.map(({ producer, agent }) => [producer, agent]);
}

test('a loss is shown in the session that it names, in sequence, and counted', async () => {
  await ingest(target, [marker(3), lost(4, 12, 'outbox-full', 's1'), marker(5)]);
  expect(await shown()).toEqual([['s1', 12, 'outbox-full']]);
  const { rows } = await target.database.reader.execute(
    `SELECT seq FROM events WHERE session_id = 's1' ORDER BY position`,
  );
  expect(rows.map(({ seq }) => seq)).toEqual([1, 3, 4, 5]);
  expect(await counted()).toEqual([[12, 12]]);
});

test('a loss without a session is shown in every session of its agent', async () => {
  await ingest(target, [lost(3, 4)]);
  expect(await shown()).toEqual([
    ['s1', 4, 'outbox-full'],
    ['s2', 4, 'outbox-full'],
  ]);
});

test('consecutive losses are shown as one, with all reasons counted together', async () => {
  await ingest(target, [lost(3, 4), lost(4, 3), lost(5, 1, 'record-too-large')]);
  expect(await shown()).toEqual([
    ['s1', 8, 'several reasons'],
    ['s2', 8, 'several reasons'],
  ]);
  expect(await counted()).toEqual([[8, 8]]);
});
