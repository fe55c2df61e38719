import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Frame } from '@interlude/protocol/frames';
import { foldTranscript, type TranscriptState, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { ReadQueue } from '@/db/reader';
import { yieldToLoop } from '@/db/yield-to-loop';
import { unscoped } from '@/lib/server/access/request-context';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { arbitraryBatchesWithSnapshots } from '../support/arbitrary-events';
import { type FrameReader, idsOf, listenTo } from '../support/frames';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../support/ingest-target';

let target: InProcessTarget;
const ends: (() => unknown)[] = [];
afterEach(cleanUp);

async function cleanUp(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** Sends one producer's requests in sequence, concurrently with everything else. */
class Writer {
  #seq = 0;
  #done: Promise<unknown> = Promise.resolve();

  write(records: Record<string, unknown>[]): void {
    // the end of an unstarted text creates no record
    if (records.length === 0) return;
    const numbered = records.map((fields) => record(++this.#seq, { agentId: 'a1', ...fields }));
    this.#done = this.#done.then(() => ingest(target, numbered));
  }

  done(): Promise<unknown> {
    return this.#done;
  }
}

const SESSIONS = ['s1', 's2'] as const;
const sessionId = fc.constantFrom(...SESSIONS);
const topicSets = [['session:s1'], ['session:s2', 'logs:a1'], ['session:s1', 'session:s2', 'logs:a1', 'fleet']];

type Write = { sessionId: string; what: 'delta' | 'end' | 'marker' | 'log' };
type Step =
  | { do: 'write'; writes: Write[] }
  | { do: 'join'; topics: number }
  | { do: 'cut'; reader: number }
  | { do: 'wait' };

const write: fc.Arbitrary<Write> = fc.record({
  sessionId,
  what: fc.constantFrom('delta', 'delta', 'delta', 'delta', 'end', 'marker', 'log'),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), writes: fc.array(write, { minLength: 1 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('join' as const), topics: fc.nat(topicSets.length - 1) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cut' as const), reader: fc.nat(5) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait' as const) }) },
);

/** A database with network latency: results may be outdated on arrival. */
function distant(database: Database, lags: readonly number[]): Database {
  let count = 0;
  const lag = async () => {
    count += 1;
    for (let turns = lags[count % lags.length] ?? 0; turns > 0; turns -= 1) await yieldToLoop();
  };
  const batch: Database['reader']['batch'] = async (statements, mode) => {
    await lag();
    const results = await database.reader.batch(statements, mode);
    await lag();
    return results;
  };
  const reader = new Proxy(database.reader, {
    get: (client, name) => (name === 'batch' ? batch : Reflect.get(client, name).bind(client)),
  });
  return { ...database, reader, reads: new ReadQueue({ concurrency: 16 }) };
}

/** Generates a session's events and the expected result of its stream. */
class Script {
  readonly texts = new Map<string, string>();
  readonly markers = new Map<string, number[]>();
  readonly logLines: string[] = [];
  #open = new Map<string, string>();
  #count = 0;

  records({ sessionId, what }: Write): Record<string, unknown>[] {
    this.#count += 1;
    if (what === 'log') {
      this.logLines.push(`line ${this.#count}`);
      return [{ kind: 'log', log: { level: 'info', component: 'c', message: `line ${this.#count}` } }];
    }
    if (what === 'marker') {
      this.markers.set(sessionId, [...(this.markers.get(sessionId) ?? []), this.#count]);
      return [{ sessionId, event: { type: 'CUSTOM', name: 'marker', value: this.#count } }];
    }
    const open = this.#open.get(sessionId);
    if (what === 'end') {
      this.#open.delete(sessionId);
      return open === undefined ? [] : [{ sessionId, event: { type: 'TEXT_MESSAGE_END', messageId: open } }];
    }
    const messageId = open ?? `m${this.#count}`;
    this.#open.set(sessionId, messageId);
    this.texts.set(messageId, `${this.texts.get(messageId) ?? ''}<${this.#count}>`);
    const start = { sessionId, event: { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' } };
    const delta = { sessionId, event: { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: `<${this.#count}>` } };
    return open === undefined ? [start, delta] : [delta];
  }
}

/** A client that resumes after its last frame when disconnected. */
class Client {
  readonly topics: readonly string[];
  readonly frames: Frame[] = [];
  readonly #fanOut: FanOut;
  #reader: FrameReader | null = null;

  constructor(fanOut: FanOut, topics: readonly string[]) {
    this.#fanOut = fanOut;
    this.topics = topics;
  }

  async connect(): Promise<void> {
    const after = idsOf(this.frames).at(-1) ?? 0;
    this.#reader = await listenTo(this.#fanOut, this.topics, { after });
  }

  async cut(): Promise<void> {
    await this.#reader?.cancel();
    this.frames.push(...(this.#reader?.frames ?? []));
    this.#reader = null;
  }

  async readUntil(isEnough: (client: Client) => boolean): Promise<void> {
    const before = [...this.frames];
    await this.#reader?.until((frames) => {
      this.frames.splice(0, Number.POSITIVE_INFINITY, ...before, ...frames);
      return isEnough(this);
    });
  }

  events(sessionId: string): AgUiEvent[] {
    return this.frames.flatMap((frame) =>
      frame.event === 'session-event' && frame.data.sessionId === sessionId ? [frame.data.event] : [],
    );
  }

  markers(sessionId: string): unknown[] {
    return this.events(sessionId).flatMap(({ name, value }) => (name === 'marker' ? [value] : []));
  }

  logLines(): string[] {
    return this.frames.flatMap((frame) => (frame.event === 'log' ? [frame.data.message] : []));
  }

  texts(sessionId: string): Map<string, string> {
    const texts = new Map<string, string>();
    for (const { type, messageId, delta, metadata } of this.events(sessionId)) {
      if (type !== 'TEXT_MESSAGE_CONTENT') continue;
      const before = metadata?.interlude?.whole ? '' : (texts.get(String(messageId)) ?? '');
      texts.set(String(messageId), before + String(delta));
    }
    return texts;
  }
}

it('a stream gives every client each row once and in order, wherever it joins and disconnects', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 60 }),
      fc.record({ rows: fc.integer({ min: 1, max: 6 }), bytes: fc.constantFrom(100, 100_000) }),
      fc.boolean(),
      fc.array(fc.constantFrom(0, 0, 0, 1, 12), { minLength: 1, maxLength: 5 }),
      async (steps, page, isElsewhere, lags) => {
        target = await inProcessTarget();
        ends.push(() => target.close());
        // rows may come from another process, without a notification
        const watched = isElsewhere ? await openDatabase({ url: target.database.url }) : target.database;
        if (isElsewhere) ends.push(() => watched.close());
        const fanOut = new FanOut(distant(watched, lags), { page, tick: page, pollMs: 2, readAheadBytes: 200 });
        ends.push(() => fanOut.close());
        const writer = new Writer();
        const script = new Script();
        const clients: Client[] = [];
        const join = async (topics: readonly string[]) => {
          const client = new Client(fanOut, topics);
          clients.push(client);
          await client.connect();
        };

        for (const one of steps) {
          if (one.do === 'write') writer.write(one.writes.flatMap((each) => script.records(each)));
          else if (one.do === 'join') await join(topicSets[one.topics] ?? []);
          else if (one.do === 'wait') await yieldToLoop();
          else {
            const client = clients[one.reader % Math.max(1, clients.length)];
            await client?.cut();
            await client?.connect();
          }
        }
        await join(topicSets.at(-1) ?? []);
        for (const session of SESSIONS) {
          writer.write(
            (['end', 'marker', 'log'] as const).flatMap((what) => script.records({ sessionId: session, what })),
          );
        }
        await writer.done();

        const lastLine = script.logLines.at(-1) ?? '';
        for (const client of clients) {
          const sessions = SESSIONS.filter((session) => client.topics.includes(`session:${session}`));
          const hasLogs = client.topics.includes('logs:a1');
          await client.readUntil(
            () =>
              sessions.every((session) => client.markers(session).at(-1) === script.markers.get(session)?.at(-1)) &&
              (!hasLogs || client.logLines().at(-1) === lastLine),
          );
          const ids = idsOf(client.frames);
          expect(ids.every((each, index) => index === 0 || each > (ids[index - 1] ?? 0))).toBe(true);
          if (hasLogs) expect(client.logLines()).toEqual(script.logLines);
          for (const session of SESSIONS) {
            const isWanted = sessions.includes(session);
            expect(client.markers(session)).toEqual(isWanted ? script.markers.get(session) : []);
            for (const [messageId, text] of client.texts(session)) expect(text).toBe(script.texts.get(messageId));
          }
          const known = sessions.flatMap((session) => [...client.texts(session).keys()]);
          if (sessions.length === SESSIONS.length) expect(known.sort()).toEqual([...script.texts.keys()].sort());
        }
        await cleanUp();
        expect(fanOut.isIdle).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

it('a page plus its later frames equals the page of any later position', async () => {
  await fc.assert(
    fc.asyncProperty(
      arbitraryBatchesWithSnapshots,
      fc.array(fc.nat(11), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 6 }),
      fc.boolean(),
      async (batches, loads, rows, isSettled) => {
        target = await inProcessTarget();
        ends.push(() => target.close());
        const fanOut = new FanOut(target.database, { page: { rows, bytes: 100_000 }, pollMs: 60_000 });
        ends.push(() => fanOut.close());
        const writer = new Writer();
        const browsers: { page: TranscriptPage; reader: FrameReader }[] = [];
        const write = (events: AgUiEvent[]) => writer.write(events.map((event) => ({ sessionId: 's1', event })));

        write([{ type: 'CUSTOM', name: 'the:first' }]);
        await writer.done();
        for (const [index, batch] of batches.entries()) {
          write(batch);
          if (isSettled) await writer.done();
          if (loads.includes(index)) {
            const page = await load();
            // more is written between page and stream
            await yieldToLoop();
            browsers.push({ page, reader: await listenTo(fanOut, ['session:s1'], { after: Number(page.position) }) });
          }
        }
        write([{ type: 'CUSTOM', name: 'the:last' }]);
        await writer.done();

        const reloaded = await load();
        for (const { page, reader } of browsers) {
          await reader.until((frames) => frames.some((frame) => isNamed(frame, 'the:last')));
          const live = follow(transcriptFromPage(page), reader.frames);
          expect(live.incomplete).toBe(false);
          expect(live.turns).toEqual(reloaded.turns);
          expect(live.places).toEqual(reloaded.places);
        }
        await cleanUp();
      },
    ),
    { numRuns: 60, examples: [[SNAPSHOT_BETWEEN_DELTAS, [0], 1, true]] },
  );
});

/** A message's deltas fold into one row at its end. That row must not hide a snapshot between the deltas. */
const SNAPSHOT_BETWEEN_DELTAS: AgUiEvent[][] = [
  [
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Hel' },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'm1', role: 'assistant', content: 'Hello ' }] },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'world' },
  ],
  [{ type: 'TEXT_MESSAGE_END', messageId: 'm1' }],
];

async function load(): Promise<TranscriptPage> {
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 200 });
  if (page === null) throw new Error('session not found');
  return page;
}

function follow(state: TranscriptState, frames: readonly Frame[]): TranscriptState {
  const entries = frames.flatMap((frame) =>
    frame.event === 'session-event' ? [{ position: frame.id ?? '', ...frame.data }] : [],
  );
  return foldTranscript(state, entries);
}

function isNamed(frame: Frame, name: string): boolean {
  return frame.event === 'session-event' && frame.data.event.name === name;
}
