import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { putArrangement } from '@/lib/commands/arrange-session';
import { CommandHub } from '@/lib/commands/command-hub';
import { postMarks } from '@/lib/commands/mark-inbox';
import type { Arrange, MarkInbox } from '@/lib/protocol/commands';
import type { InboxItem } from '@/lib/protocol/inbox';
import { SILENT_MS } from '@/lib/protocol/limits';
import { readInbox } from '@/lib/queries/read-inbox';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** What comes up in the inbox as time goes by, with the clock in hand. */
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
const inbox = async () => (await readInbox(target.database, { after: null, limit: 100 })).items;
const kinds = async () => (await inbox()).map(({ kind }) => kind);
const only = async () => {
  const items = await inbox();
  expect(items).toHaveLength(1);
  return items[0] as InboxItem;
};
const mark = (body: MarkInbox) => postMarks({ body } as Parameters<typeof postMarks>[0], target.context);
const see = async () =>
  mark({ items: [await only()].map(({ id, updatedPosition }) => ({ id, updatedPosition })), mark: 'seen' });
const arrange = (body: Arrange) =>
  putArrangement({ ids: { sessionId: 's1' }, body } as Parameters<typeof putArrangement>[0], target.context);
async function sweepAt(at: number): Promise<void> {
  now = at;
  await new CommandHub({ database: target.database, now: () => now, steady: () => now }).sweep();
}

describe('a session that has fallen silent in mid-turn', () => {
  it('comes back from the archive as it was: seen, and no news', async () => {
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
