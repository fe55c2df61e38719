import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { Frame } from '@interlude/protocol/frames';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { FanOut, type FanOutOptions } from '@/lib/server/fan-out/fan-out';
import { insertRows } from '@/tests/support/database';
import { listenTo, streamOf } from '@/tests/support/frames';
import { FrameReader } from '../../support/frames';
import { DAY_MS, RetainedServer } from '../../support/retained-server';
import { taskStarted, userTurn } from '../../support/turn-events';

let server: RetainedServer;
let fanOut: FanOut;
const ends: (() => unknown)[] = [];

beforeEach(async () => {
  server = await RetainedServer.start();
  ends.push(() => server.close());
  fanOut = fanOutOver(server.target.database);
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function fanOutOver(database: ConstructorParameters<typeof FanOut>[0], options: Partial<FanOutOptions> = {}): FanOut {
  const opened = new FanOut(database, { pollMs: 60_000, ...options });
  ends.push(() => opened.close());
  return opened;
}

const turn = (id: string, sessionId = 's1') => server.write(userTurn(id, `${id}?`, `${id}.`), sessionId);
const position = async () => Number((await server.rows('SELECT position FROM counter'))[0]?.position);
const listen = (after: number, topics = ['session:s1']) => listenTo(fanOut, topics, { after });
const sessionOf = (frames: readonly Frame[], sessionId = 's1') =>
  frames.flatMap((frame) =>
    frame.event === 'session-event' && frame.data.sessionId === sessionId
      ? [{ position: String(frame.id), ...frame.data }]
      : [],
  );
const page = async () => (await server.page()) as TranscriptPage;

/** Everything so far has expired. */
async function removeAll(): Promise<void> {
  server.now += 11 * DAY_MS;
  await server.retain();
}

/** @returns a position within the removed range, and the one after it */
async function cutBetween(): Promise<{ inside: number; behind: number }> {
  await turn('r1');
  const inside = await position();
  await turn('r2');
  const behind = await position();
  await removeAll();
  await turn('r3');
  return { inside, behind };
}

describe('a stream of a session whose oldest turns were removed', () => {
  test('is a gap from before the rest, and continues at the newest position', async () => {
    const { inside } = await cutBetween();
    const reader = await listen(inside);
    await reader.frame('up-to-date');
    expect(reader.frames[0]?.data).toEqual({ resume: 'gap', position: String(await position()) });
    expect(sessionOf(reader.frames)).toEqual([]);
  });

  test('resumes after the removed range without loss or duplicates', async () => {
    await turn('r1');
    const before = await page();
    await removeAll();
    await turn('r2');
    const reader = await listen(Number(before.position));
    await reader.frame('up-to-date');
    expect(reader.frames[0]?.data).toEqual({ resume: 'ok', position: before.position });
    const live = foldTranscript(transcriptFromPage(before), sessionOf(reader.frames));
    const { turns, removed } = await page();
    expect([live.turns, live.removed]).toEqual([turns, removed]);
  });

  test('replays the rest from the start', async () => {
    await cutBetween();
    const reader = await listen(0);
    await reader.frame('up-to-date');
    expect(reader.frames[0]?.data).toEqual({ resume: 'ok', position: '0' });
    const { rows } = await server.target.database.reader.execute('SELECT position FROM events ORDER BY position');
    expect(sessionOf(reader.frames).map((entry) => entry.position)).toEqual(rows.map((row) => String(row.position)));
  });

  test('is a gap for a reader of two sessions, and none for a reader of the other one', async () => {
    await turn('q1', 's2');
    const { inside } = await cutBetween();
    const both = await listen(inside, ['session:s2', 'session:s1']);
    expect((await both.frame('hello')).data.resume).toBe('gap');
    const log = await listen(inside, ['logs:a1']);
    expect((await log.frame('hello')).data.resume).toBe('ok');
    await turn('q2', 's3');
    const other = await listen(inside, ['session:s3']);
    await other.frame('up-to-date');
    expect(other.frames[0]?.data).toEqual({ resume: 'ok', position: String(inside) });
    expect(sessionOf(other.frames, 's3').length).toBeGreaterThan(0);
  });

  test('is a gap for a reader of that session alone, and starts at its newest position', async () => {
    const { inside, behind } = await cutBetween();
    const own = await position();
    await turn('q1', 's2');
    const scope = { kind: 'session' as const, sessionId: 's1' };
    const gap = await listenTo(fanOut, ['session:s1'], { after: inside, scope });
    await gap.frame('up-to-date');
    const { resume, position: at } = (await gap.frame('hello')).data;
    expect([resume, Number(at) > behind, Number(at) <= own]).toEqual(['gap', true, true]);
    const ok = await listenTo(fanOut, ['session:s1'], { after: Number(at), scope });
    await ok.frame('up-to-date');
    expect((await ok.frame('hello')).data.resume).toBe('ok');
  });
});

test('a fleet stream sends a running task without the turn that started it', async () => {
  await server.write(userTurn('r1', 'Go', [taskStarted('job', 'A long job')]));
  const reader = await listen(await position(), ['fleet']);
  await reader.frame('up-to-date');
  await removeAll();
  expect((await reader.frame('task')).data).toMatchObject({ id: 'job', status: 'running', startedInTurnId: null });
});

describe('a fleet stream after an ended item was removed', () => {
  const asks = (name: string, value: object): AgUiEvent => ({
    type: 'CUSTOM',
    name,
    value: { request_id: 'q1', ...value },
  });

  /** @returns a position at which a request is open, and the one after its end */
  async function removed(): Promise<{ open: number; ended: number }> {
    await server.write(userTurn('r1', 'One?', [asks(CUSTOM.requestOpened, { title: 'May I?' })]));
    const open = await position();
    await server.write([asks(CUSTOM.requestResolved, { outcome: 'allowed' })]);
    const ended = await position();
    await server.later(5);
    await server.later(6);
    await server.retain();
    expect(await server.rows('SELECT id FROM inbox')).toEqual([]);
    return { open, ended };
  }

  test('is a gap for a reader that may believe it is open, and for no other', async () => {
    const { open, ended } = await removed();
    const hello = async (after: number) => (await (await listen(after, ['fleet'])).frame('hello')).data.resume;
    expect([await hello(open), await hello(ended), await hello(0)]).toEqual(['gap', 'ok', 'ok']);
  });

  test('is no gap for a reader in another scope, which receives all of its rows', async () => {
    await turn('own', 's2');
    await removed();
    const scope = { kind: 'session' as const, sessionId: 's2' };
    const first = await listenTo(fanOut, ['fleet'], { after: 1, scope });
    await first.frame('up-to-date');
    const { resume, position: at } = (await first.frame('hello')).data;
    const again = await listenTo(fanOut, ['fleet'], { after: Number(at), scope });
    await again.frame('up-to-date');
    expect([resume, (await again.frame('hello')).data]).toEqual(['gap', { resume: 'ok', position: at }]);
  });

  test('ends when its process stalled during the removal', async () => {
    await server.write(userTurn('r1', 'One?', [asks(CUSTOM.requestOpened, { title: 'May I?' })]));
    const other = await openDatabase({ url: server.target.database.url });
    ends.push(() => other.close());
    fanOut = fanOutOver(other);
    const reader = await listen(await position(), ['fleet']);
    const log = await listen(await position(), ['logs:a1']);
    await Promise.all([reader.frame('up-to-date'), log.frame('up-to-date')]);
    await server.write([asks(CUSTOM.requestResolved, { outcome: 'allowed' })]);
    await server.later(5);
    await server.later(6);
    await server.retain();
    await insertRows(other, [{ log: 'awake' }]);
    expect((await reader.end()).at(-1)).toEqual({ event: 'bye', data: { reason: 'planned' } });
    await log.frame('log');
  });

  test('ends when the item was removed while the stream lagged', async () => {
    fanOut = fanOutOver(server.target.database, { page: { rows: 1, bytes: 100_000 }, readAheadBytes: 1 });
    await server.write(userTurn('r1', 'One?', [asks(CUSTOM.requestOpened, { title: 'May I?' })]));
    const open = await position();
    for (const id of ['r2', 'r3', 'r4']) await turn(id, `session of ${id}`);
    await server.write([asks(CUSTOM.requestResolved, { outcome: 'allowed' })]);
    const [hold, rest] = held(await streamOf(fanOut, ['fleet'], { after: open }));
    await hold;
    await removeAll();
    await server.later(1);
    await server.later(11);
    await server.retain();
    expect(await server.rows('SELECT id FROM inbox')).toEqual([]);
    const frames = await new FrameReader(rest()).end();
    expect(frames.at(-1)).toEqual({ event: 'bye', data: { reason: 'planned' } });
    expect(frames.filter(({ event }) => event === 'inbox')).toEqual([]);
  });
});

describe('a stream during the removal of turns', () => {
  test('reports the removal if it had sent all of them', async () => {
    await turn('r1');
    const before = await page();
    const reader = await listen(Number(before.position));
    await reader.frame('up-to-date');
    await removeAll();
    await turn('r2');
    const { turns, removed, position: at } = await page();
    const last = Math.max(...(await server.rows('SELECT position FROM events')).map((row) => Number(row.position)));
    const frames = await reader.until((all) => all.some(({ id }) => Number(id) === last));
    const live = foldTranscript(transcriptFromPage(before), sessionOf(frames));
    expect(Number(at)).toBeGreaterThanOrEqual(last);
    expect([live.turns, live.removed]).toEqual([turns, removed]);
  });

  test('ends if it had sent some of them, and resumes with a gap', async () => {
    fanOut = fanOutOver(server.target.database, { page: { rows: 2, bytes: 100_000 }, readAheadBytes: 1 });
    await turn('r0');
    const { position: after } = await page();
    for (const id of ['r1', 'r2', 'r3']) await turn(id);
    // its reader takes one frame at a time, so the other turns are removed meanwhile
    const body = await streamOf(fanOut, ['session:s1'], { after: Number(after) });
    const [hold, rest] = held(body);
    await hold;
    await removeAll();
    await turn('r4');
    const frames = await new FrameReader(rest()).end();
    expect(frames.at(-1)).toEqual({ event: 'bye', data: { reason: 'planned' } });
    const told = sessionOf(frames);
    expect(told.map(({ event }) => event.type)).not.toContain('RUN_FINISHED');
    const again = await listen(Number(told.at(-1)?.position ?? after));
    expect((await again.frame('hello')).data.resume).toBe('gap');
  });

  test('ends if its process stalled during the removal', async () => {
    await turn('r1');
    // this process sees a commit of another one only at its next poll
    const other = await openDatabase({ url: server.target.database.url });
    ends.push(() => other.close());
    fanOut = fanOutOver(other);
    const reader = await listen(await position());
    const sibling = await listen(await position(), ['session:s2']);
    await Promise.all([reader.frame('up-to-date'), sibling.frame('up-to-date')]);
    await turn('r2');
    await removeAll();
    await turn('q1', 's2');
    await insertRows(other, [{ log: 'awake' }]);
    const frames = await reader.end();
    expect(frames.at(-1)).toEqual({ event: 'bye', data: { reason: 'planned' } });
    expect(sessionOf(frames)).toEqual([]);
    expect(sessionOf(await sibling.until((all) => sessionOf(all, 's2').length > 0), 's2')).not.toEqual([]);
  });
});

/** @returns a promise for the first part, and a function that gives the whole body */
function held(body: ReadableStream<Uint8Array>): [Promise<unknown>, () => ReadableStream<Uint8Array>] {
  const reader = body.getReader();
  const first = reader.read();
  const rest = () =>
    new ReadableStream<Uint8Array>({
      start: async (controller) => {
        const { value } = await first;
        if (value !== undefined) controller.enqueue(value);
      },
      pull: async (controller) => {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
  return [first, rest];
}
