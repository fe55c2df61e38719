import { COMMAND_EXPIRY_MS, RUNNER_GRACE_MS, SILENT_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { postRequestAnswer } from '@/lib/server/commands/answer-request';
import { putRetirement } from '@/lib/server/commands/arrange';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner, disconnectRunner } from '@/lib/server/commands/runner-connection';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { ownerContext } from '@/tests/support/call-route';
import { AdjustableClocks } from '@/tests/support/clocks';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Requests of a runner that does not return. */
const RUNNER = { id: 'r1', startedAt: 1_000 };

let clocks: AdjustableClocks;
let target: InProcessTarget;
let hub: CommandHub;
let seq = 0;
beforeEach(async () => {
  clocks = new AdjustableClocks();
  seq = 0;
  target = await inProcessTarget(clocks.now, clocks.steady);
  starts();
  await hub.sweep();
});
afterEach(() => target.close());

/** A restarted server. */
function starts(): void {
  hub = new CommandHub({ database: target.database, now: clocks.now, steady: clocks.steady });
}
const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const connect = (streamId = 'one') =>
  write((transaction) => connectRunner(transaction, 'a1', RUNNER, streamId, clocks.now()));
const leave = () => write((transaction) => disconnectRunner(transaction, 'a1', 'one', clocks.now()));
const says = (event: object) => ingest(target, [record(++seq, { event })]);
const asks = (id: string) =>
  says({ type: 'CUSTOM', name: 'request:opened', value: { request_id: id, tool_name: 'Bash', input: { id } } });
/** A request in a turn whose runner has been marked as away. */
async function goesWhileItAsks(...ids: string[]): Promise<void> {
  await connect();
  await says({ type: 'RUN_STARTED', threadId: 's1', runId: 't1' });
  for (const id of ids) await asks(id);
  await leave();
  clocks.goesBy(RUNNER_GRACE_MS);
  await hub.sweep();
}
const session = async () => (await readSession(unscoped(target.database), 's1'))?.session;
const inbox = async () =>
  (await readInbox(unscoped(target.database), { after: null, limit: 10 })).items.map(({ kind }) => kind);
const outcomes = async () => {
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  const items = page?.turns.flatMap((turn) => turn.items) ?? [];
  return items.flatMap((item) => (item.kind === 'request' ? [item.outcome] : []));
};
const retires = () =>
  putRetirement(
    { ids: { agentId: 'a1' }, body: { retired: true } } as Parameters<typeof putRetirement>[0],
    target.context,
  );

describe('a request whose runner does not come back', () => {
  it('can be answered for ten minutes, then ends', async () => {
    await goesWhileItAsks('q1', 'q2');
    clocks.goesBy(COMMAND_EXPIRY_MS - RUNNER_GRACE_MS - 1);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 2 });
    clocks.goesBy(1);
    await hub.sweep();
    expect(await session()).toMatchObject({
      state: 'unknown',
      stateReason: 'its runner has gone while it waited for an answer',
      evidence: { rule: 3, last: 'needs-input' },
      pendingRequestCount: 0,
    });
    expect(await outcomes()).toEqual(['unknown', 'unknown']);
    expect(await inbox()).toEqual(['lost-contact']);
  });

  it('is abandoned once, by any server, also after a restart', async () => {
    await goesWhileItAsks('q1');
    clocks.goesBy(COMMAND_EXPIRY_MS / 2);
    await hub.sweep();
    await target.restart();
    starts();
    await hub.sweep();
    clocks.goesBy(COMMAND_EXPIRY_MS / 2);
    const other = new CommandHub({ database: target.database, now: clocks.now, steady: clocks.steady });
    await Promise.all([hub.sweep(), other.sweep()]);
    const told = (await session())?.updatedPosition;
    clocks.goesBy(COMMAND_EXPIRY_MS);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'unknown', updatedPosition: told });
    const { rows } = await target.database.reader.execute(
      "SELECT count(*) AS n FROM events WHERE name = 'request:resolved'",
    );
    expect(Number(rows[0]?.n)).toBe(1);
  });

  it('stays open while its runner is connected, and reopens when reported again', async () => {
    await connect();
    await asks('q1');
    clocks.goesBy(COMMAND_EXPIRY_MS * 2);
    await write((transaction) =>
      transaction.execute({ sql: 'UPDATE runners SET alive_until = ?', args: [clocks.now() + 1_000] }),
    );
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'needs-input' });
    await leave();
    clocks.goesBy(RUNNER_GRACE_MS);
    await hub.sweep();
    clocks.goesBy(COMMAND_EXPIRY_MS);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'unknown', pendingRequestCount: 0 });
    await connect('two');
    await asks('q1');
    expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1, away: null });
    clocks.goesBy(1_000);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'needs-input' });
  });

  it('reopens when a runner that slept returns and lists it', async () => {
    const lists = (...requests: string[]) =>
      ingest(target, [
        record(++seq, { kind: 'status', sessionId: 's1', status: { openTurnId: 't1', requests }, event: undefined }),
      ]);
    await connect();
    await lists('q1', 'q2');
    await goesWhileItAsks('q1', 'q2');
    clocks.goesBy(COMMAND_EXPIRY_MS);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'unknown', pendingRequestCount: 0 });
    await lists('q1');
    await connect('two');
    expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1, away: null });
    const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
    const asked = page?.turns.flatMap(({ items }) => items).findLast(({ id }) => id === 'q1');
    expect(asked).toMatchObject({ kind: 'request', outcome: null, toolName: 'Bash', input: { id: 'q1' } });
    const answered = await postRequestAnswer(
      {
        ids: { sessionId: 's1', requestId: 'q1' },
        body: { behavior: 'allow' },
        request: new Request('http://localhost'),
        ...ownerContext,
      },
      target.context,
    );
    expect(answered).toMatchObject({ state: 'queued' });
    await says({ type: 'CUSTOM', name: 'request:resolved', value: { request_id: 'q1', outcome: 'allowed' } });
    await lists('q1');
    expect(await session()).toMatchObject({ pendingRequestCount: 0 });
  });

  it('is abandoned when an agent without a stream is silent', async () => {
    await asks('q1');
    clocks.goesBy(SILENT_MS);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'needs-input', away: { isSilent: true } });
    clocks.goesBy(COMMAND_EXPIRY_MS);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'unknown', evidence: { last: 'needs-input' } });
  });

  it('is not abandoned early when the clock is set ahead', async () => {
    await goesWhileItAsks('q1');
    clocks.isMoved(24 * 3_600_000);
    await hub.sweep();
    await says({ type: 'CUSTOM', name: 'marker' });
    expect(await session()).toMatchObject({ state: 'needs-input' });
  });

  it('does not prevent retiring its agent', async () => {
    await goesWhileItAsks('q1');
    expect(await retires()).toMatchObject({ retiredAt: clocks.now() });
  });
});
