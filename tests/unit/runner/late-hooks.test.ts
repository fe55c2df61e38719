import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { SessionMirror } from '@interlude/runner/sources/hooks/session-mirror';
import { beforeEach, describe, expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

let now: number;
let file: string;
let mirror: SessionMirror;
let events: AgUiEvent[];
let handed: string[][];
let parentUuid: string | null;

beforeEach(async () => {
  now = Date.parse('2026-11-20T12:00:00Z');
  file = join(await tempDir(), 's.jsonl');
  writeFileSync(file, '');
  [events, handed, parentUuid] = [[], [], null];
  mirror = new SessionMirror({
    ...{ sessionId: 's', file, state: null, now: () => now },
    emit: (outputs) => void events.push(...outputs.map(({ event }) => event)),
    onDelivered: (ids) => void handed.push(ids),
    ...{ onTurnEnded: () => undefined, log: () => undefined },
  });
});

/** @param more `promptId`, and `parentUuid` if the line does not follow the previous one */
function write(type: string, uuid: string, message: object, more: object = {}): void {
  const line = { parentUuid, type, uuid, timestamp: new Date(now).toISOString(), message, ...more };
  parentUuid = uuid;
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

const asks = (uuid: string, promptId?: string) =>
  write('user', uuid, { role: 'user', content: 'Go' }, { origin: { kind: 'human' }, promptId });
const says = (uuid: string, text: string, stop_reason: string | null = 'end_turn', more: object = {}) =>
  write('assistant', uuid, { id: `m-${uuid}`, stop_reason, content: [{ type: 'text', text }] }, more);
const over = (uuid: string, more: object = {}) =>
  write('system', uuid, {}, { subtype: 'turn_duration', durationMs: 5, ...more });
const feedback = (uuid: string, reason: string) =>
  write('user', uuid, { role: 'user', content: `Stop hook feedback:\n${reason}` }, { isMeta: true });

async function pass(ms: number): Promise<void> {
  now += ms;
  await mirror.step();
}

/** Runs and texts, in order. */
const told = () =>
  events.flatMap(({ type, delta, runId }) => {
    if (type.startsWith('RUN_')) return [`${type} ${runId}`];
    return typeof delta === 'string' && delta !== 'Go' ? [delta] : [];
  });

/** A finished turn and an open one. */
async function secondTurn(promptIds: [string?, string?] = []): Promise<void> {
  asks('u1', promptIds[0]);
  await pass(100);
  says('a1', 'Done.');
  await pass(100);
  over('o1');
  await pass(1_000);
  asks('u2', promptIds[1]);
  await pass(3_000);
}

describe('a stop hook that arrives during the next turn', () => {
  test.each([
    ['names its prompt', { at: null, promptId: 'p1' }, ['p1', 'p2']],
    ['says when it ran', { at: Date.parse('2026-11-20T12:00:00Z') + 150, promptId: null }, []],
    ['says neither, nor any words', undefined, []],
  ] as const)('does not end that turn when it %s', async (_how, claim, promptIds) => {
    await secondTurn([...promptIds]);
    mirror.stopped(null, null, claim);
    await pass(8_000);
    expect(mirror.openRunId).toBe('run-u2');
    says('a2', 'Done.');
    await pass(100);
    mirror.stopped(null, null, claim && { at: claim.at === null ? null : now, promptId: promptIds[1] ?? null });
    await pass(1_600);
    expect(told().slice(-3)).toEqual(['RUN_STARTED run-u2', 'Done.', 'RUN_FINISHED run-u2']);
  });

  test('does not end that turn, even with an equal text', async () => {
    await secondTurn(['p1', 'p2']);
    says('a2', 'Done.', null);
    await pass(100);
    mirror.stopped(null, 'Done.', { at: null, promptId: 'p1' });
    await pass(8_000);
    expect(mirror.openRunId).toBe('run-u2');
  });

  test('does not make the agent idle', async () => {
    const ranAt = now + 150;
    await secondTurn();
    mirror.prompted({ at: now - 3_000, promptId: null });
    mirror.stopped(null, 'Done.', { at: ranAt, promptId: null });
    expect(mirror.selfReport).toBe('busy');
  });
});

describe('a stop hook of a turn that is not in the transcript yet', () => {
  test('leaves the previous turn open for its late lines, and ends its own', async () => {
    asks('u1', 'p1');
    await pass(100);
    // the prompt hook of the second turn arrives last
    mirror.stopped(null, 'Two.', { at: now + 2_000, promptId: 'p2' });
    mirror.stopped(null, 'One.', { at: now, promptId: 'p1' });
    await pass(2_000);
    says('a1', 'One.');
    asks('u2', 'p2');
    await pass(10);
    says('a2', 'Two.');
    await pass(10);
    await pass(1_600);
    expect(told()).toEqual([
      ...['RUN_STARTED run-u1', 'One.', 'RUN_FINISHED run-u1'],
      ...['RUN_STARTED run-u2', 'Two.', 'RUN_FINISHED run-u2'],
    ]);
  });

  test('does not give its text to the previous turn', async () => {
    asks('u1', 'p1');
    await pass(100);
    mirror.stopped(null, 'Two.', { at: null, promptId: 'p2' });
    await pass(60_000);
    expect(told()).toEqual(['RUN_STARTED run-u1']);
    await pass(31_000);
    expect(told()).toEqual(['RUN_STARTED run-u1', 'RUN_FINISHED run-u1']);
  });
});

describe('a line after the first one of the next turn', () => {
  test.each([
    ['a turn’s end', () => over('o1', { parentUuid: 'a1' })],
    [
      'an interruption',
      () => write('user', 'i1', { role: 'user', content: '[Request interrupted by user]' }, { parentUuid: 'a1' }),
    ],
    ['words', () => says('a1b', 'Done.', 'end_turn', { parentUuid: 'a1' })],
  ])('belongs to the turn of its parent: %s', async (_what, late) => {
    asks('u1');
    says('a1', 'Done.');
    asks('u2');
    await pass(100);
    late();
    await pass(100);
    await pass(60_000);
    expect(mirror.openRunId).toBe('run-u2');
  });
});

test.each(['before', 'behind'])(
  'a turn is over by its hook’s word, whose line is made before its prompt’s hook runs and is read %s that',
  async (when) => {
    const ran = (at: number) => ({ at, promptId: null });
    if (when === 'before') asks('u1');
    now += 40;
    mirror.prompted(ran(now));
    now -= 40;
    if (when === 'behind') asks('u1');
    await pass(1_000);
    mirror.stopped(null, 'Done.', ran(now));
    await pass(5_100);
    expect(told()).toEqual(['RUN_STARTED run-u1', 'Done.', 'RUN_FINISHED run-u1']);
  },
);

test('does not take an equal text before a tool call for the final one', async () => {
  asks('u1');
  await pass(100);
  mirror.stopped(null, 'Done.\n\nAll of it.', { at: now, promptId: null });
  await pass(5_100);
  now -= 5_150;
  says('a1', 'Done.', null);
  says('a2', 'I look.', null);
  says('a3', 'Done.', null);
  says('a4', 'All of it.', null);
  now += 5_150;
  await pass(100);
  expect(told()).toEqual([...['RUN_STARTED run-u1', 'Done.\n\nAll of it.', 'RUN_FINISHED run-u1', 'Done.', 'I look.']]);
});

describe('a session', () => {
  test('is not ended after a resume by the late hook of its end', async () => {
    const leftAt = now;
    mirror.began({ at: now + 1_000, promptId: null });
    await pass(2_000);
    mirror.began({ at: now, promptId: null });
    mirror.end('left', { at: leftAt, promptId: null });
    await pass(10_000);
    expect(mirror.hasEnded).toBe(false);
  });

  test('is not interrupted when left between its stop hook and its text', async () => {
    asks('u1');
    await pass(100);
    mirror.stopped(null, null, { at: now, promptId: null });
    mirror.end('left', { at: now + 1, promptId: null });
    await pass(3_100);
    expect(told()).toEqual(['RUN_STARTED run-u1', 'RUN_FINISHED run-u1']);
  });
});

describe('messages in a stop-hook hold', () => {
  const [first, second] = [
    { messageIds: ['m1'], reason: 'Mara waits.' },
    { messageIds: ['m2'], reason: 'Ben waits.' },
  ];

  test('are each delivered when the transcript shows it, even if it lags', async () => {
    asks('u1', 'p1');
    says('a1', 'Done.');
    await pass(100);
    mirror.offer(first, { at: now, promptId: 'p1' });
    mirror.offer(second, { at: now, promptId: 'p1' });
    expect([mirror.isInFlight('m1'), mirror.isInFlight('m2')]).toEqual([true, true]);
    feedback('f1', 'Mara waits.');
    await pass(100);
    expect(handed).toEqual([['m1']]);
    feedback('f2', 'Ben waits.');
    await pass(100);
    expect(handed).toEqual([['m1'], ['m2']]);
  });

  test('are not delivered by feedback of another hook', async () => {
    asks('u1', 'p1');
    says('a1', 'Done.');
    await pass(100);
    mirror.offer(first, { at: now, promptId: 'p1' });
    feedback('f0', 'Run the tests first.');
    await pass(100);
    expect(handed).toEqual([]);
  });

  test.each([
    ['of a later turn', { at: null, promptId: 'p2' }, true],
    ['of it', { at: null, promptId: 'p1' }, false],
  ])('are in flight or not after a turn, hook %s', async (_whose, claim, isInFlight) => {
    asks('u1', 'p1');
    await pass(100);
    mirror.offer(first, claim);
    says('a1', 'Done.');
    over('o1');
    await pass(100);
    expect(mirror.isInFlight('m1')).toBe(isInFlight);
  });
});
