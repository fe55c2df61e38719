import type { SessionDelivery } from '@interlude/protocol/read-models';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readAgent } from '@/lib/server/queries/read-agents';
import { readDelivery } from '@/lib/server/queries/read-delivery';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import { callRoute } from '../../support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** A session's missing records, whenever and however they were refused. */
let target: InProcessTarget;
let seq: number;
beforeEach(async () => {
  seq = 0;
  target = await inProcessTarget();
});
afterEach(() => target.close());

const of = (sessionId: string | undefined, more: Record<string, unknown> = {}) =>
  record(++seq, { sessionId, event: { type: 'RUN_STARTED', threadId: 's', runId: 'r' }, ...more });
const refused = (sessionId: unknown, more: Record<string, unknown> = {}) =>
  record(++seq, { kind: 'rumour', sessionId, event: undefined, ...more });
const tell = (...records: object[]) => ingest(target, records);

/** The session's own row agrees. */
async function delivery(id: string): Promise<SessionDelivery> {
  const found = await readDelivery(unscoped(target.database), id);
  const session = (await readSession(unscoped(target.database), id))?.session;
  if (found === null || session === undefined) throw new Error(`the session ${id} is there`);
  const { lostCount, quarantinedCount } = session;
  expect({ lostCount, quarantinedCount }).toEqual({
    lostCount: found.lostCount,
    quarantinedCount: found.quarantinedCount,
  });
  return found;
}
const post = (path: string, body: object) => callRoute(target.context, 'POST', path, { body });

describe('missing records of a session', () => {
  it.each([
    [
      'in requests of their own',
      async () => {
        await tell(refused('s1'));
        await tell(refused('s1'));
        await tell(of('s1'));
      },
    ],
    ['in its first request', () => tell(refused('s1'), refused('s1'), of('s1'))],
    [
      'some in its first request',
      async () => {
        await tell(refused('s1'));
        await tell(refused('s1'), of('s1'));
      },
    ],
  ])('records refused before the session began, %s', async (_, send) => {
    await send();
    const { missing, quarantinedCount } = await delivery('s1');
    expect(quarantinedCount).toBe(2);
    expect(missing).toMatchObject([
      { kind: 'quarantined', seq: 2, reason: expect.stringContaining('kind is one of') },
      { kind: 'quarantined', seq: 1 },
    ]);
    await tell(of('s1'), refused('s1'));
    expect((await delivery('s1')).quarantinedCount).toBe(3);
    const notices = (
      await target.database.reader.execute("SELECT payload FROM events WHERE name = 'interlude:quarantined'")
    ).rows;
    expect(notices.map(({ payload }) => JSON.parse(String(payload)).value)).toMatchObject([{ count: 2 }, { seq: seq }]);
  });

  it('exclude records of another agent', async () => {
    await tell(refused('s1', { agentId: 'a2' }));
    await tell(of('s1'), refused('s1', { agentId: 'a2' }), of('s1', { agentId: 'a2' }));
    expect(await delivery('s1')).toMatchObject({ missing: [], quarantinedCount: 0, unnamedCount: 0 });
  });

  it('a record that names it but not its agent', async () => {
    await tell(of('s1'), of('s2', { agentId: 'a2' }));
    await tell(refused('s1', { agentId: undefined }), refused('s2', { agentId: 5 }));
    await tell(refused('s1', { agentId: undefined }));
    expect([(await delivery('s1')).quarantinedCount, (await delivery('s2')).quarantinedCount]).toEqual([2, 1]);
    expect((await readAgent(unscoped(target.database), 'a1'))?.agent).toMatchObject({
      sessionCount: 1,
      quarantinedCount: 2,
    });
    expect((await readAgent(unscoped(target.database), 'a2'))?.agent).toMatchObject({
      sessionCount: 1,
      quarantinedCount: 1,
    });
  });

  it('possibly its outbox’s records without a session, and no other outbox’s', async () => {
    await tell(refused(undefined), of('s1'), refused({ a: 1 }), { seq: ++seq, kind: 'event' });
    await ingest(target, [{ ...of('s2'), seq: 1 }, record(2, { kind: 'rumour', sessionId: undefined })], 1, 'p2');
    expect(await delivery('s1')).toMatchObject({ missing: [], quarantinedCount: 0, unnamedCount: 3 });
    expect(await delivery('s2')).toMatchObject({ quarantinedCount: 0, unnamedCount: 1 });
  });

  it('nothing because of a forged event', async () => {
    await tell(
      of('s1', { event: { type: 'CUSTOM', name: 'interlude:quarantined', value: { seq: 1, message: 'x' } } }),
      of('s1', {
        event: { type: 'CUSTOM', name: 'interlude:parked-discarded', value: { count: 5, reported_by: 's1' } },
      }),
    );
    expect((await delivery('s1')).quarantinedCount).toBe(0);
  });

  it.each(['assign', 'discard'])('a parked record until it is settled: %s', async (how) => {
    const ended = (task_id: string) =>
      of('s1', { event: { type: 'CUSTOM', name: 'task:completed', value: { task_id, status: 'completed' } } });
    await tell(of('s1'), of('s2'), ended('t1'), ended('t2'), ended('t1'));
    expect((await delivery('s1')).quarantinedCount).toBe(3);
    const gap = async () =>
      (await readInbox(unscoped(target.database), { after: null, limit: 50 })).items.filter(
        ({ kind }) => kind === 'delivery-gap',
      );
    const [item] = await gap();
    expect(item).toMatchObject({ count: 3 });
    expect((await post('/inbox/marks', { ids: [item?.id], mark: 'seen' })).status).toBe(200);
    const parked = (await readAgent(unscoped(target.database), 'a1'))?.parked[0]?.position;
    const body = how === 'assign' ? { sessionId: 's2', clientId: 'c' } : { clientId: 'c' };
    for (let again = 0; again < 2; again++) {
      expect((await post(`/agents/a1/parked/${parked}/${how}`, body)).status).toBe(200);
      expect(await delivery('s1')).toMatchObject({ quarantinedCount: 1, missing: [{ seq: 4 }] });
      expect((await readAgent(unscoped(target.database), 'a1'))?.agent).toMatchObject({
        quarantinedCount: 1,
        parkedCount: 1,
      });
    }
    // Only more than were seen make the item new.
    expect(await gap()).toEqual([]);
    await tell(ended('t3'));
    expect(await gap()).toMatchObject([{ count: 2 }]);
  });
});
