import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { readSession } from '@/lib/server/queries/read-sessions';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Silent working agents, with an injected clock: only those without evidence of work make no progress. */
const T0 = 1_795_170_000_000;
const RUNNER = { kind: 'claude', runner: { id: 'r' }, everyMs: 600_000 };

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
const reports = (status: object = {}) =>
  ingest(target, [record(++seq, { kind: 'status', status: { ...RUNNER, ...status }, event: undefined })]);
const starts = (runId: string) => says({ type: 'RUN_STARTED', threadId: 's1', runId });
const calls = (toolCallId: string) => says({ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'Bash' });
const results = (toolCallId: string) =>
  says({ type: 'TOOL_CALL_RESULT', toolCallId, messageId: `${toolCallId}/r`, content: 'ok' });
/** Reports before each sweep, on a new instance each time. @returns all notes */
async function passes(
  minutes: number,
  cpuSeconds?: (minute: number) => number,
  stepMinutes = 1,
): Promise<(string | undefined)[]> {
  const notes = new Set<string | undefined>();
  for (let minute = stepMinutes; minute <= minutes; minute += stepMinutes) {
    now += stepMinutes * 60_000;
    await reports({ openTurnId: 'r1', ...(cpuSeconds === undefined ? {} : { cpuSeconds: cpuSeconds(minute) }) });
    await new CommandHub({ database: target.database, now: () => now, steady: () => now }).sweep();
    notes.add((await session())?.evidence.note);
  }
  return [...notes];
}
const session = async () => (await readSession(unscoped(target.database), 's1'))?.session;

describe('a silent build of half an hour', () => {
  beforeEach(async () => {
    await reports();
    await starts('r1');
    await calls('c1');
  });

  it('raises no alarm when its processor time is unknown', async () => {
    expect(await passes(30, undefined, 5)).toEqual([undefined]);
    expect(await passes(30, undefined, 5)).toEqual([undefined, 'no-progress']);
    expect((await session())?.stateReason).toBe('no event or output while Bash runs');
  });

  it('raises none in three hours while it uses the processor', async () => {
    expect(await passes(180, (minute) => 10 * minute, 9)).toEqual([undefined]);
  });

  it('raises an alarm ten minutes after its last processor use', async () => {
    await passes(30, (minute) => Math.min(200, 10 * minute));
    expect((await session())?.evidence).toMatchObject({ note: 'no-progress', observedAt: T0 + 20 * 60_000 });
    expect((await session())?.stateReason).toBe('no event, output or processor time while Bash runs');
  });

  it('raises none while it writes output', async () => {
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    for (let part = 0; part < 9; part += 1) {
      expect(await passes(9, undefined, 3)).toEqual([undefined]);
      await says({ type: 'CUSTOM', name: 'task:output', value: { task_id: 'b1', from: part, text: '.' } });
    }
  });

  it('no longer counts as running after its result', async () => {
    await results('c1');
    expect(await passes(10)).toEqual([undefined, 'no-progress']);
    expect((await session())?.stateReason).toBe('no event or output');
  });
});

it('allows three times the 99th percentile of the kind', async () => {
  await reports();
  await starts('r1');
  for (let part = 0; part < 120; part += 1) {
    now += 5 * 60_000;
    await says({ type: 'CUSTOM', name: 'marker' });
  }
  expect(await passes(14)).toEqual([undefined]);
  expect(await passes(1)).toEqual(['no-progress']);
});
