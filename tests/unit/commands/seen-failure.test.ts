import { DELIVERING_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { comparePositions } from '@interlude/protocol/position';
import { isSeen } from '@interlude/protocol/session-predicates';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { putArrangement } from '@/lib/server/commands/arrange';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { postMarks } from '@/lib/server/commands/mark-inbox';
import { connectRunner, disconnectRunner, renewRunners } from '@/lib/server/commands/runner-connection';
import { postMessage } from '@/lib/server/commands/session-commands';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import { ownerContext } from '@/tests/support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** A seen failure stays seen, whatever happens to its session. */
const T0 = 1_795_170_000_000;
const DAY = 24 * 3_600_000;

let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
  await connect('one');
});
afterEach(() => target.close());

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const connect = (streamId: string) =>
  write((transaction) => connectRunner(transaction, 'a1', { id: 'r1', startedAt: 1_000 }, streamId, now));
const sweep = () => new CommandHub({ database: target.database, now: () => now, steady: () => now }).sweep();
const says = (event: object) => ingest(target, [record(++seq, { event })]);
async function fails(runId: string): Promise<void> {
  await says({ type: 'RUN_STARTED', threadId: 's1', runId });
  await says({ type: 'RUN_ERROR', runId, message: 'No credit' });
}
async function isAwayAndBack(): Promise<void> {
  await write((transaction) => disconnectRunner(transaction, 'a1', 'one', now));
  now += RUNNER_GRACE_MS;
  await sweep();
  expect(await session()).toMatchObject({ state: 'unknown', evidence: { last: 'failed' } });
  await connect('two');
  expect(await session()).toMatchObject({ state: 'failed' });
}
const session = async () => {
  const found = (await readSession(unscoped(target.database), 's1'))?.session;
  if (found === undefined) throw new Error('no session');
  return found;
};
const isLookedAt = async () =>
  putArrangement(
    { ids: { sessionId: 's1' }, body: { seenState: (await session()).stateSince } } as Parameters<
      typeof putArrangement
    >[0],
    target.context,
  );
const inbox = async () => (await readInbox(unscoped(target.database), { after: null, limit: 10 })).items;

describe('a seen failure', () => {
  it('stays seen when its runner returns', async () => {
    await fails('r1');
    await isLookedAt();
    now += 3 * DAY;
    await isAwayAndBack();
    expect(isSeen(await session())).toBe(true);
    expect((await session()).stateSince).toBe(T0);
    expect(await inbox()).toEqual([]);
  });

  it('stays seen after an undelivered message', async () => {
    await fails('r1');
    await isLookedAt();
    const request = new Request('http://localhost');
    const body = { text: 'Go on', clientId: 'c1' };
    await postMessage({ ids: { sessionId: 's1' }, body, request, ...ownerContext }, target.context);
    expect(await session()).toMatchObject({ state: 'working' });
    now += DELIVERING_MS;
    await write((transaction) => renewRunners(transaction, ['one'], now));
    await sweep();
    expect(await session()).toMatchObject({ state: 'failed', stateSince: T0 });
    expect(isSeen(await session())).toBe(true);
    expect(await inbox()).toEqual([]);
  });

  it('does not mark the next failure', async () => {
    await fails('r1');
    await isLookedAt();
    now += 1_000;
    await fails('r2');
    expect(isSeen(await session())).toBe(false);
    expect(await inbox()).toMatchObject([{ kind: 'failure', since: now }]);
    await isLookedAt();
    now += 1_000;
    const report = { state: 'failure', summary: 'No disk', at: 7 };
    await ingest(target, [record(++seq, { kind: 'status', sessionId: 's1', status: { report }, event: undefined })]);
    expect(isSeen(await session())).toBe(false);
  });
});

describe('an unseen failure', () => {
  it('stays the same inbox item when its runner returns', async () => {
    await fails('r1');
    const [failure] = await inbox();
    const by = { id: 'local', name: 'Local admin' };
    await postMarks(
      {
        ids: {},
        body: { ids: [failure?.id ?? ''], mark: 'claimed' },
        request: new Request('http://localhost'),
        ...ownerContext,
      },
      target.context,
    );
    now += 60_000;
    await isAwayAndBack();
    expect(await inbox()).toMatchObject([{ kind: 'failure', since: T0, claim: { by }, doneAt: null }]);
  });

  it('keeps since and openedPosition when its retry is not delivered within 60 s', async () => {
    await fails('r1');
    const [failure] = await inbox();
    now += 1_000;
    const request = new Request('http://localhost');
    const body = { text: 'Try again', clientId: 'c1' };
    await postMessage({ ids: { sessionId: 's1' }, body, request, ...ownerContext }, target.context);
    expect(await inbox()).toEqual([]);
    now += DELIVERING_MS;
    await write((transaction) => renewRunners(transaction, ['one'], now));
    await sweep();
    const [again] = await inbox();
    const session = { title: 'Try again', name: null };
    expect(again).toEqual({ ...failure, session, updatedPosition: again?.updatedPosition });
    expect(comparePositions(again?.updatedPosition ?? '', failure?.updatedPosition ?? '')).toBeGreaterThan(0);
  });

  it('is one item when the turn ends after the report', async () => {
    await says({ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' });
    const report = { state: 'failure', summary: 'No credit', at: 7, turnId: 'r1' };
    const status = { report, openTurnId: 'r1' };
    await ingest(target, [record(++seq, { kind: 'status', sessionId: 's1', status, event: undefined })]);
    await isLookedAt();
    now += 6_000;
    await write((transaction) => renewRunners(transaction, ['one'], now));
    await sweep();
    expect(await session()).toMatchObject({ state: 'working' });
    await says({ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' });
    expect(await session()).toMatchObject({ state: 'failed', stateSince: T0 });
    expect(isSeen(await session())).toBe(true);
  });
});
