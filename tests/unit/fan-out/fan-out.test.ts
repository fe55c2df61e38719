import { LibsqlError } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openDatabase } from '@/db/client';
import { FanOut, type FanOutOptions, resume } from '@/lib/server/fan-out/fan-out';
import { deltas, insertRows } from '@/tests/support/database';
import { listenTo, streamOf } from '@/tests/support/frames';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { alwaysYield } from '../../support/event-loop';
import { FrameReader, idsOf } from '../../support/frames';

let database: TestDatabase;
let fanOut: FanOut;

const open = (names: string[], wish?: Parameters<typeof streamOf>[2]) => streamOf(fanOut, names, wish);
const listen = (names: string[], after: number | null = 0) => listenTo(fanOut, names, { after });

function fanOutWith(options: Partial<FanOutOptions>): void {
  fanOut = new FanOut(database, { pollMs: 60_000, ...options });
}

beforeEach(async () => {
  database = await temporaryDatabase();
  fanOutWith({});
});

afterEach(async () => {
  fanOut.close();
  await database.dispose();
});

describe('a stream', () => {
  test('sends hello, replays missed rows in order, then a caught-up frame, then live rows', async () => {
    await insertRows(database, deltas(3));
    const reader = await listen(['session:s1'], 1);
    await reader.frame('up-to-date');
    await insertRows(database, deltas(2));
    await reader.frame('session-event', 4);
    expect(reader.frames.map((frame) => frame.event)).toEqual([
      'hello',
      'session-event',
      'session-event',
      'up-to-date',
      'session-event',
      'session-event',
    ]);
    expect(reader.frames[0]?.data).toEqual({ resume: 'ok', position: '1' });
    expect((await reader.frame('up-to-date')).data).toEqual({ position: '3' });
    expect(idsOf(reader.frames)).toEqual([2, 3, 4, 5]);
  });

  test('starts at the newest position when none is named', async () => {
    await insertRows(database, deltas(3));
    const reader = await listen(['session:s1'], null);
    await reader.frame('up-to-date');
    await insertRows(database, deltas(1));
    await reader.frame('session-event');
    expect(reader.frames[0]?.data).toEqual({ resume: 'ok', position: '3' });
    expect(idsOf(reader.frames)).toEqual([4]);
  });

  test('carries its topics only', async () => {
    await insertRows(database, [{ log: 'one' }, { session: 's1' }]);
    const reader = await listen(['session:s1', 'logs:a1']);
    await reader.frame('up-to-date');
    await insertRows(database, [
      ...deltas(1, 's2'),
      { log: 'other', agentId: 'a2' },
      { session: 's1' },
      { log: 'two' },
    ]);
    await insertRows(database, deltas(1, 's1'));
    await reader.frame('session-event');
    const ids = idsOf(reader.frames);
    expect(ids).toEqual([1, 6, 7]);
  });

  test('merges all kinds of rows by position, page by page', async () => {
    fanOutWith({ page: { rows: 3, bytes: 1_000_000 } });
    const rows = Array.from({ length: 30 }, (_, index) =>
      [{ log: `line ${index}` }, ...deltas(1, 's1'), ...deltas(1, 's2'), { task: `t${index}` }].slice(
        0,
        (index % 4) + 1,
      ),
    ).flat();
    const positions = await insertRows(database, rows);
    const reader = await listen(['fleet', 'session:s1', 'session:s2', 'logs:a1']);
    await reader.frame('up-to-date');
    expect(idsOf(reader.frames)).toEqual(positions);
  });

  test('reads few rows at a time when they are a megabyte each', async () => {
    fanOutWith({ page: { rows: 500, bytes: 100_000 } });
    const positions = await insertRows(database, deltas(10, 's1', 'x'.repeat(60_000)));
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    expect(idsOf(reader.frames)).toEqual(positions);
    expect(reader.chunkCount).toBeGreaterThanOrEqual(6);
  });

  test('replays a read model once, in its latest version', async () => {
    await insertRows(database, [{ session: 's1', title: 'old' }, { session: 's2' }]);
    await insertRows(database, [{ session: 's1', title: 'new' }]);
    const reader = await listen(['fleet']);
    await reader.frame('up-to-date');
    const sessions = reader.frames.filter((frame) => frame.event === 'session');
    expect(sessions.map((frame) => [frame.id, frame.data.id, frame.data.title])).toEqual([
      ['2', 's2', null],
      ['3', 's1', 'new'],
    ]);
  });

  test('sends the rows of one commit as one chunk', async () => {
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    const before = reader.chunkCount;
    await insertRows(database, deltas(20));
    await reader.frame('session-event', 20);
    expect(reader.chunkCount).toBe(before + 1);
  });

  test('receives rows that another process wrote', async () => {
    fanOutWith({ pollMs: 5 });
    const other = await openDatabase({ url: database.url });
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    await insertRows(other, deltas(2));
    await reader.frame('session-event', 2);
    expect(idsOf(reader.frames)).toEqual([1, 2]);
    await other.close();
  });

  test('keeps an event’s JSON as stored, except line breaks between its tokens', async () => {
    await insertRows(database, deltas(1, 's1', 'a\nb\u2028c'));
    await database.writes.run((transaction) =>
      transaction.execute(`UPDATE events SET payload = '{"type":"RAW",\n\r\n "odd": "\\u0000" }'`),
    );
    await insertRows(database, deltas(1, 's1', 'a\nb\u2028c'));
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    const [first, second] = reader.frames.flatMap((frame) => (frame.event === 'session-event' ? [frame.data] : []));
    expect(first?.event).toEqual({ type: 'RAW', odd: '\0' });
    expect(second).toEqual({
      sessionId: 's1',
      agentId: 'a1',
      seq: 2,
      occurredAt: 1000,
      receivedAt: 1001,
      event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'a\nb\u2028c' },
    });
  });
});

describe('resuming', () => {
  test('is a gap when the position belongs to another database, and continues at the newest position', async () => {
    await insertRows(database, deltas(2));
    const reader = await listen(['session:s1'], 99);
    await reader.frame('up-to-date');
    expect(reader.frames[0]?.data).toEqual({ resume: 'gap', position: '2' });
    expect(idsOf(reader.frames)).toEqual([]);
  });

  test('is a gap when the rows after the position were pruned', () => {
    const bounds = { oldest: 10, latest: 20, newest: 20, removedUpTo: 0 };
    expect(resume(9, bounds)).toMatchObject({ resume: 'gap', after: 20 });
    expect(resume(10, bounds)).toMatchObject({ resume: 'ok', after: 10 });
    expect(resume(20, bounds)).toMatchObject({ resume: 'ok', after: 20 });
    expect(resume(21, bounds)).toMatchObject({ resume: 'gap', after: 20 });
  });
});

describe('catching up', () => {
  test('reads again while a replica lags behind the tailer', async () => {
    const replica = await temporaryDatabase();
    const first = await listen(['session:s1']);
    await insertRows(database, deltas(3));
    await first.frame('session-event', 3);
    const read = database.reader.batch.bind(database.reader);
    // the bounds, and two pages
    let behind = 3;
    const batch = vi.spyOn(database.reader, 'batch').mockImplementation((statements) => {
      behind -= 1;
      return behind < 0 ? read(statements, 'read') : replica.reader.batch(statements, 'read');
    });
    const second = await listen(['session:s1']);
    await second.frame('up-to-date');
    expect(idsOf(second.frames)).toEqual([1, 2, 3]);
    expect(behind).toBe(-1);
    batch.mockRestore();
    await replica.dispose();
  });

  /** Rows are written around the next reader's first page, and a live reader receives them. */
  function aroundPage(
    live: FrameReader,
    around: (write: () => Promise<void>, read: () => Promise<void>) => Promise<void>,
  ) {
    const batch = database.reader.batch.bind(database.reader);
    let calls = 0;
    vi.spyOn(database.reader, 'batch').mockImplementation(async (statements) => {
      calls += 1;
      let rows: Awaited<ReturnType<typeof batch>> = [];
      const read = async () => {
        rows = await batch(statements, 'read');
      };
      const write = async () => {
        const before = idsOf(live.frames).length;
        await insertRows(database, deltas(1));
        await live.frame('session-event', before + 1);
      };
      // the first call reads the bounds
      if (calls === 2) await around(write, read);
      else await read();
      return rows;
    });
    return () => calls;
  }

  test.each<[string, Parameters<typeof aroundPage>[1]]>([
    ['after its last page was read', async (write, read) => read().then(write)],
    ['before its last page was read', async (write, read) => write().then(read)],
  ])('misses nothing that is published %s', async (_, around) => {
    const live = await listen(['session:s1']);
    await insertRows(database, deltas(2));
    await live.frame('session-event', 2);
    const calls = aroundPage(live, around);
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    await insertRows(database, deltas(1));
    await reader.until((frames) => idsOf(frames).includes(4));
    expect(idsOf(reader.frames)).toEqual([1, 2, 3, 4]);
    expect(calls()).toBe(2);
    vi.restoreAllMocks();
  });
});

describe('the event loop is yielded', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test('between the rows of a page, which are sent as they are encoded', async () => {
    await insertRows(database, deltas(5));
    alwaysYield();
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    expect(idsOf(reader.frames)).toEqual([1, 2, 3, 4, 5]);
    expect(reader.chunkCount).toBe(7);
  });

  test('between chunks of a page of large rows', async () => {
    await insertRows(database, deltas(5, 's1', 'x'.repeat(200_000)));
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    expect(reader.chunkCount).toBeGreaterThanOrEqual(5);
  });

  test('between the rows of a commit, which are sent together', async () => {
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    const before = reader.chunkCount;
    const turns = alwaysYield();
    await insertRows(database, deltas(50));
    await reader.frame('session-event', 50);
    expect(turns()).toBeGreaterThanOrEqual(50);
    expect(reader.chunkCount - before).toBe(1);
  });
});

describe('the end of a stream', () => {
  test('is a bye when its time limit is reached', async () => {
    const stream = await open(['fleet'], { maxMs: 20 });
    const frames = await new FrameReader(stream).end();
    expect(frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'planned' } });
    expect(fanOut.isIdle).toBe(true);
  });

  test('is a bye when the server stops, which then accepts no new stream', async () => {
    const reader = await listen(['fleet']);
    await reader.frame('up-to-date');
    fanOut.close();
    const frames = await reader.end();
    expect(frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } });
    await expect(listen(['fleet'])).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('reaches a stalled live reader after its backlog, and affects no other reader', async () => {
    fanOutWith({ maxBacklogBytes: 5_000, readAheadBytes: 1_000 });
    const slow = await open(['session:s1'], { after: null });
    const quick = await listen(['session:s1'], null);
    await quick.frame('up-to-date');
    const positions: number[] = [];
    while (fanOut.subscriberCount > 1) {
      positions.push(...(await insertRows(database, deltas(5))));
      await quick.until((frames) => idsOf(frames).at(-1) === positions.at(-1));
    }
    const frames = await new FrameReader(slow).end();
    expect(frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'slow' } });
    const received = idsOf(frames);
    expect(received).toEqual(positions.slice(0, received.length));
    expect(idsOf(quick.frames)).toEqual(positions);
  });

  test('drops the backlog of a reader that never reads again', async () => {
    fanOutWith({ maxBacklogBytes: 2_000, readAheadBytes: 1_000, lingerMs: 5 });
    const slow = await open(['session:s1'], { after: null });
    while (fanOut.subscriberCount > 0) await insertRows(database, deltas(5));
    await vi.waitFor(async () => {
      const reader = slow.getReader();
      try {
        await expect(reader.closed).rejects.toThrow('did not fetch');
      } finally {
        reader.releaseLock();
      }
    });
  });

  test('frees everything when the request is aborted or the reader cancels', async () => {
    const gone = new AbortController();
    await open(['fleet', 'session:s1'], { signal: gone.signal, maxMs: 60_000 });
    const reader = await listen(['logs:a1']);
    expect(fanOut.subscriberCount).toBe(2);
    expect(fanOut.isIdle).toBe(false);
    gone.abort();
    expect(fanOut.subscriberCount).toBe(1);
    await reader.cancel();
    expect(fanOut.subscriberCount).toBe(0);
    expect(fanOut.isIdle).toBe(true);
  });

  test('frees everything when the request was aborted before it started', async () => {
    await open(['fleet'], { signal: AbortSignal.abort() });
    expect(fanOut.subscriberCount).toBe(0);
    expect(fanOut.isIdle).toBe(true);
  });

  /** Under this name, a framework that pipes the stream logs nothing. */
  const ABORTED = expect.objectContaining({ name: 'AbortError' });

  test.each([
    ['fails', 1, async () => database.close()],
    [
      'is damaged, which is logged elsewhere',
      0,
      async () => database.damage.record(new LibsqlError('', 'SQLITE_CORRUPT')),
    ],
  ])('is logged once without a stack for all readers whose database %s', async (_, expected, fail) => {
    fanOutWith({ page: { rows: 5, bytes: 1_000_000 }, readAheadBytes: 10 });
    await insertRows(database, deltas(50));
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const bodies = [];
    for (let count = 0; count < 3; count += 1) {
      bodies.push(await open(['session:s1']));
    }
    await fail();
    logged.mockClear();
    await database.close();
    for (const body of bodies) await expect(new FrameReader(body).end()).rejects.toThrow(ABORTED);
    expect(logged.mock.calls).toEqual(Array(expected).fill([expect.stringMatching(/^\[interlude\] [^\n]+$/)]));
    logged.mockRestore();
  });

  test('is an error when the database fails during catch-up', async () => {
    fanOutWith({ page: { rows: 5, bytes: 1_000_000 }, readAheadBytes: 10 });
    await insertRows(database, deltas(50));
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const body = await open(['session:s1']);
    await database.close();
    await expect(new FrameReader(body).end()).rejects.toThrow();
    expect(logged).toHaveBeenCalled();
    logged.mockRestore();
    expect(fanOut.subscriberCount).toBe(0);
  });

  test('does not come to a reader that only catches up slowly', async () => {
    fanOutWith({ maxBacklogBytes: 1_000, readAheadBytes: 100, page: { rows: 20, bytes: 1_000_000 } });
    const positions = await insertRows(database, deltas(200));
    const body = await open(['session:s1']);
    // rows arrive before the stream is read; later pages include them
    positions.push(...(await insertRows(database, deltas(200))));
    const reader = new FrameReader(body);
    await reader.until((frames) => idsOf(frames).length === positions.length);
    expect(idsOf(reader.frames)).toEqual(positions);
  });
});

describe('a heartbeat', () => {
  test('is an SSE comment', async () => {
    fanOutWith({ heartbeatMs: 5 });
    const reader = await listen(['fleet']);
    expect(await reader.comment()).toBe('hb');
  });
});

describe('the tailer', () => {
  test('resumes at its position after the database failed', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    fanOutWith({ pollMs: 5 });
    const reader = await listen(['session:s1']);
    await reader.frame('up-to-date');
    const batch = vi.spyOn(database.tail, 'batch').mockRejectedValue(new Error('the disk is away'));
    await insertRows(database, deltas(3));
    await vi.waitFor(() => expect(batch.mock.calls.length).toBeGreaterThan(2));
    batch.mockRestore();
    await reader.frame('session-event', 3);
    expect(idsOf(reader.frames)).toEqual([1, 2, 3]);
    expect(logged).toHaveBeenCalledTimes(1);
    logged.mockRestore();
  });
});
