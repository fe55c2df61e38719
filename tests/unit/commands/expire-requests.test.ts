import { MAX_PENDING_REQUESTS, REQUEST_GRACE_MS } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { AdjustableClocks } from '@/tests/support/clocks';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Expiry of requests, with an injected clock. */
const HOUR = 3_600_000;
const WAITS_MS = 2 * HOUR;

let clocks: AdjustableClocks;
let target: InProcessTarget;
let hub: CommandHub;
let seq = 0;
beforeEach(async () => {
  clocks = new AdjustableClocks();
  seq = 0;
  target = await inProcessTarget(clocks.now);
  hub = new CommandHub({ database: target.database, now: clocks.now, steady: clocks.steady });
  await hub.sweep();
  // Its stream stays open, so only the deadline counts.
  await target.database.writes.run((transaction) =>
    connectRunner(transaction, 'a1', { id: 'r', startedAt: 1 }, 'one', clocks.now() + 1e12),
  );
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

/** @param aheadMs milliseconds that the runner's clock is ahead of the server's */
async function says(name: string, value: object, aheadMs = 0): Promise<void> {
  const occurredAt = clocks.now() + aheadMs;
  await ingest(target, [record(++seq, { event: { type: 'CUSTOM', name, value }, occurredAt })]);
}
const asks = (id: string, waitsMs: number | null, aheadMs = 0) => {
  const expiry = waitsMs === null ? {} : { expires_at: clocks.now() + aheadMs + waitsMs };
  return says('request:opened', { request_id: id, kind: 'permission', tool_name: 'Bash', ...expiry }, aheadMs);
};
const session = async () => {
  const { state, pendingRequestCount, answerBy } = (await readSession(unscoped(target.database), 's1'))?.session ?? {};
  return { state, pendingRequestCount, answerBy };
};
const outcomes = async () => {
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  const items = page?.turns.flatMap((turn) => turn.items) ?? [];
  return items.filter((item): item is RequestItem => item.kind === 'request').map(({ outcome }) => outcome);
};

describe('an expired request that its agent does not end', () => {
  it.each([0, HOUR, -HOUR])('expires when its runner’s clock is %i ms ahead', async (aheadMs) => {
    await asks('q1', WAITS_MS, aheadMs);
    expect(await session()).toMatchObject({ state: 'needs-input', answerBy: clocks.now() + WAITS_MS });
    clocks.goesBy(WAITS_MS + REQUEST_GRACE_MS - 1);
    await hub.sweep();
    expect(await outcomes()).toEqual([null]);
    clocks.goesBy(1);
    await hub.sweep();
    expect(await session()).toEqual({ state: 'unknown', pendingRequestCount: 0, answerBy: undefined });
    expect(await outcomes()).toEqual(['expired']);
  });

  it('leaves other requests open', async () => {
    await asks('q1', WAITS_MS);
    await asks('q2', 2 * WAITS_MS);
    await asks('q3', null);
    clocks.goesBy(WAITS_MS + REQUEST_GRACE_MS);
    await hub.sweep();
    expect(await outcomes()).toEqual(['expired', null, null]);
    expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 2 });
  });

  it('expires among more requests than the inbox lists', async () => {
    const ids = Array.from({ length: MAX_PENDING_REQUESTS }, (_, index) => `p${index}`);
    const event = (request_id: string) => ({ type: 'CUSTOM', name: 'request:opened', value: { request_id } });
    const records = ids.map((id) => record(++seq, { event: event(id), occurredAt: clocks.now() }));
    await ingest(target, records);
    await asks('late', WAITS_MS);
    clocks.goesBy(WAITS_MS + REQUEST_GRACE_MS);
    await hub.sweep();
    expect(await session()).toMatchObject({ pendingRequestCount: MAX_PENDING_REQUESTS, answerBy: undefined });
    expect((await outcomes()).at(-1)).toBe('expired');
  });

  it('expires by a trusted clock only', async () => {
    await asks('q1', WAITS_MS);
    clocks.isMoved(24 * HOUR);
    await hub.sweep();
    expect(await outcomes()).toEqual([null]);
  });

  it('shows the outcome that the agent reports later in its turn', async () => {
    await ingest(target, [record(++seq, { event: { type: 'RUN_STARTED', runId: 'r1' }, occurredAt: clocks.now() })]);
    await asks('q1', WAITS_MS);
    clocks.goesBy(WAITS_MS + REQUEST_GRACE_MS);
    await hub.sweep();
    await says('request:resolved', { request_id: 'q1', outcome: 'allowed' });
    expect(await outcomes()).toEqual(['allowed']);
    expect(await session()).toMatchObject({ pendingRequestCount: 0 });
  });

  it('uses the deadline that the agent reported last', async () => {
    await asks('q1', WAITS_MS);
    clocks.goesBy(HOUR);
    await asks('q1', WAITS_MS);
    clocks.goesBy(HOUR + REQUEST_GRACE_MS);
    await hub.sweep();
    expect(await outcomes()).toEqual([null]);
    expect(await session()).toMatchObject({ pendingRequestCount: 1 });
  });

  it('expires when another session can’t be read, and logs that session', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    await asks('q1', WAITS_MS);
    const other = { agentId: 'a2', sessionId: 's2', occurredAt: clocks.now() };
    const value = { request_id: 'q', kind: 'permission', expires_at: clocks.now() + WAITS_MS };
    await ingest(target, [record(1, { ...other, event: { type: 'CUSTOM', name: 'request:opened', value } })], 1, 'a2');
    await target.database.writes.run((transaction) =>
      transaction.execute(`UPDATE sessions SET body = '{"cut' WHERE id = 's2'`),
    );
    clocks.goesBy(WAITS_MS + REQUEST_GRACE_MS);
    await hub.sweep();
    expect(await outcomes()).toEqual(['expired']);
    for (const [line] of logged.mock.calls) expect(line).toMatch(/"s2" is skipped: processing failed/);
    expect(logged).toHaveBeenCalled();
  });

  it('has no deadline when that precedes the request', async () => {
    await asks('q1', -1);
    clocks.goesBy(WAITS_MS);
    await hub.sweep();
    expect(await outcomes()).toEqual([null]);
    expect((await session()).answerBy).toBeUndefined();
  });
});
