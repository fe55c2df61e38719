import type { Arrange, MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';
import { SILENT_MS } from '@interlude/protocol/limits';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { isSeen, seenStateOf } from '@interlude/protocol/session-predicates';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { putArrangement } from '@/lib/server/commands/arrange';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { postMarks } from '@/lib/server/commands/mark-inbox';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import { ownerContext } from '@/tests/support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Inbox items over time, with a fake clock. */
const T0 = 1_795_170_000_000;
let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
});
afterEach(() => target.close());

const says = (event: object) => ingest(target, [record(++seq, { event })]);
const starts = (runId: string) => says({ type: 'RUN_STARTED', threadId: 's1', runId });
const inbox = async () => (await readInbox(unscoped(target.database), { after: null, limit: 100 })).items;
const kinds = async () => (await inbox()).map(({ kind }) => kind);
const only = async () => {
  const items = await inbox();
  expect(items).toHaveLength(1);
  return items[0] as InboxItem;
};
const mark = (body: MarkInbox) =>
  postMarks({ ids: {}, body, request: new Request('http://localhost'), ...ownerContext }, target.context);
const see = async () =>
  mark({ items: [await only()].map(({ id, updatedPosition }) => ({ id, updatedPosition })), mark: 'seen' });
const arrange = (body: Arrange) =>
  putArrangement({ ids: { sessionId: 's1' }, body } as Parameters<typeof putArrangement>[0], target.context);
async function sweepAt(at: number): Promise<void> {
  now = at;
  await new CommandHub({ database: target.database, now: () => now, steady: () => now }).sweep();
}

describe('a session that became silent in mid-turn', () => {
  it('returns from the archive unchanged: seen and not reopened', async () => {
    await starts('r1');
    await sweepAt(T0 + SILENT_MS);
    const { since } = await only();
    await see();
    now += 60_000;
    await arrange({ archived: true });
    expect(await kinds()).toEqual([]);
    now += 60_000;
    await arrange({ archived: false });
    expect(await only()).toMatchObject({ kind: 'lost-contact', since, seenAt: T0 + SILENT_MS });
    await says({ type: 'CUSTOM', name: 'marker' });
    expect(await kinds()).toEqual([]);
    await sweepAt(now + SILENT_MS);
    expect(await only()).toMatchObject({ kind: 'lost-contact', since: now, seenAt: null });
  });
});

describe('an unseen failure', () => {
  const fails = async (runId: string, message = 'No credit') => {
    await starts(runId);
    await says({ type: 'RUN_ERROR', runId, message });
  };

  it('neither closes nor reopens when its session falls silent or reports again', async () => {
    await fails('r1');
    const item = await only();
    const by = { id: 'local', name: 'Local admin' };
    await mark({ items: [{ id: item.id, updatedPosition: item.updatedPosition }], mark: 'claimed' });
    const claimed = await only();
    await sweepAt(T0 + SILENT_MS);
    expect(await only()).toEqual(claimed);
    now += 60_000;
    await says({ type: 'CUSTOM', name: 'marker' });
    expect(await only()).toEqual(claimed);
    await sweepAt(now + SILENT_MS);
    expect(await only()).toMatchObject({ kind: 'failure', title: 'No credit', since: T0, claim: { by } });
  });

  it('is the same whether the agent reports it or ingest infers it while the session is silent', async () => {
    const report = { state: 'failure', summary: 'No disk', at: 7 };
    await ingest(target, [record(++seq, { kind: 'status', sessionId: 's1', status: { report }, event: undefined })]);
    const reported = await only();
    expect(reported).toMatchObject({ kind: 'failure', title: 'No disk' });
    await sweepAt(T0 + SILENT_MS);
    expect(await only()).toEqual(reported);
  });

  it('stays seen, whether it was seen before or after its session became silent', async () => {
    for (const [runId, isBefore] of [
      ['r1', true],
      ['r2', false],
    ] as const) {
      now += 1_000;
      await fails(runId);
      if (isBefore) await see();
      await sweepAt(now + SILENT_MS);
      if (!isBefore) await see();
      expect(await kinds()).toEqual([]);
      now += 1_000;
      await says({ type: 'CUSTOM', name: 'marker' });
      expect(await kinds()).toEqual([]);
      await sweepAt(now + SILENT_MS);
      expect(await kinds()).toEqual([]);
    }
    await fails('r3', 'Again');
    expect(await only()).toMatchObject({ title: 'Again', since: now, seenAt: null });
  });

  it('becomes seen when a person views its session, on any page', async () => {
    await fails('r1');
    await sweepAt(T0 + SILENT_MS);
    const summary = (await readSession(unscoped(target.database), 's1'))?.session as SessionSummary;
    expect(isSeen(summary)).toBe(false);
    await arrange({ seenState: seenStateOf(summary) });
    expect(await kinds()).toEqual([]);
    now += 1_000;
    await says({ type: 'CUSTOM', name: 'marker' });
    expect(await kinds()).toEqual([]);
  });
});
