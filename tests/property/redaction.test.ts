import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Frame } from '@interlude/protocol/frames';
import { foldTranscript, type TranscriptState, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { TaskOutputDetail, TranscriptPage } from '@interlude/protocol/read-models';
import { EVERYTHING } from '@interlude/protocol/scope';
import { foldTaskOutput } from '@interlude/protocol/task-output';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { yieldToLoop } from '@/db/yield-to-loop';
import { readScope } from '@/lib/server/access/request-context';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { readTaskOutput } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { arbitraryBatchesWithSnapshots } from '../support/arbitrary-events';
import { type FrameReader, idsOf, listenTo } from '../support/frames';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../support/ingest-target';
import { leakedIn, type SecretText, secretText, splitAt } from '../support/secrets';

const TOPICS = ['session:s1', 'fleet', 'logs:a1'];

let target: InProcessTarget;
const ends: (() => unknown)[] = [];
afterEach(cleanUp);

async function cleanUp(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** A redacted reader with its page and the frames after it. */
class Reader {
  readonly #fanOut: FanOut;
  readonly page: TranscriptPage;
  readonly output: TaskOutputDetail | null;
  readonly frames: Frame[] = [];
  #stream: FrameReader | null = null;

  static async join(fanOut: FanOut): Promise<Reader> {
    const [page, output] = [await load(), await loadOutput()];
    const reader = new Reader(fanOut, page, output);
    await yieldToLoop();
    await reader.resume();
    return reader;
  }

  constructor(fanOut: FanOut, page: TranscriptPage, output: TaskOutputDetail | null) {
    this.#fanOut = fanOut;
    this.page = page;
    this.output = output;
  }

  async resume(): Promise<void> {
    await this.#stream?.cancel();
    this.frames.push(...(this.#stream?.frames ?? []));
    const after = idsOf(this.frames).at(-1) ?? Number(this.page.position);
    this.#stream = await listenTo(this.#fanOut, TOPICS, { redacts: true, after });
  }

  async until(position: number): Promise<void> {
    await this.#stream?.until((frames) => (idsOf(frames).at(-1) ?? 0) >= position);
    this.frames.push(...(this.#stream?.frames ?? []));
    await this.#stream?.cancel();
    this.#stream = null;
  }

  get entries() {
    return this.frames.flatMap((frame) =>
      frame.event === 'session-event' ? [{ position: frame.id ?? '', ...frame.data }] : [],
    );
  }

  get transcript(): TranscriptState {
    return foldTranscript(transcriptFromPage(this.page), this.entries);
  }
}

const scope = () => readScope(target.database, EVERYTHING, true);

async function load(): Promise<TranscriptPage> {
  const page = await readTranscript(scope(), 's1', { before: null, limit: 200 });
  if (page === null) throw new Error('session not found');
  return page;
}

const loadOutput = () => readTaskOutput(scope(), 's1', 'k1', { runId: null, position: null });

async function newestPosition(): Promise<number> {
  const { rows } = await target.database.reader.execute(
    `SELECT max(position) AS position FROM events WHERE session_id = 's1'`,
  );
  return Number(rows[0]?.position);
}

class Writer {
  #seq = 0;
  #done: Promise<unknown> = Promise.resolve();

  write(events: readonly AgUiEvent[], others: Record<string, unknown>[] = []): Promise<unknown> {
    const records = [...events.map((event) => ({ sessionId: 's1', event })), ...others];
    const numbered = records.map((fields) => record(++this.#seq, { agentId: 'a1', ...fields }));
    if (numbered.length > 0) this.#done = this.#done.then(() => ingest(target, numbered));
    return this.#done;
  }
}

const OF = {
  text: ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
  chunk: [null, 'TEXT_MESSAGE_CHUNK', null],
  reasoning: ['REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END'],
  args: ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END'],
} as const;
type Kind = keyof typeof OF | 'result' | 'output' | 'input' | 'unknown';
interface Action {
  kind: Kind;
  content: SecretText;
  cuts: number[];
  ends: boolean;
}

const action: fc.Arbitrary<Action> = fc.record({
  kind: fc.constantFrom<Kind>('text', 'text', 'chunk', 'reasoning', 'args', 'result', 'output', 'input', 'unknown'),
  content: secretText,
  cuts: fc.array(fc.nat(), { maxLength: 6 }),
  ends: fc.boolean(),
});

/** The events of an action, in order. */
function eventsOf({ kind, content: { text }, cuts, ends }: Action, number: number): AgUiEvent[] {
  const id = `id${number}`;
  if (kind === 'result') return [{ type: 'TOOL_CALL_RESULT', messageId: `r-${id}`, toolCallId: id, content: text }];
  if (kind === 'input') {
    const value = { request_id: id, kind: 'permission', title: text, input: { command: text, [text]: [text] } };
    return [{ type: 'CUSTOM', name: 'request:opened', value }];
  }
  if (kind === 'unknown') {
    return [
      { type: 'CUSTOM', name: 'somebody:s', value: { id: text, list: [{ runId: text }], [text]: 1 }, tokenId: text },
    ];
  }
  const pieces = splitAt(text, cuts);
  if (kind === 'output') {
    // All outputs of the task are one text, in which a token directly behind a word is not recognizable.
    return [...pieces, ' '].map((piece) => ({
      type: 'CUSTOM',
      name: 'task:output',
      value: { task_id: 'k1', text: piece },
    }));
  }
  const [start, content, end] = OF[kind];
  const named = kind === 'args' ? { toolCallId: id, toolCallName: 'Bash' } : { messageId: id, role: 'assistant' };
  return [
    ...(start === null ? [] : [{ type: start, ...named }]),
    ...pieces.map((delta) => ({ type: content, ...named, delta })),
    ...(end === null || !ends ? [] : [{ type: end, ...named }]),
  ];
}

const KEY = secretOf(
  '-----BEGIN RSA PRIVATE KEY-----',
  'A9AAA5AjAA+AAAfTAAAJAAAL3mAAAAAAmAAAAAAAhAAtAAAAAAAA7AAOAAXQAAAA',
);
/** A reader resumes while a partially received text is being folded. */
const FOLDED_MEANWHILE: [Action[], ('join' | 'cut' | 'turn' | 'write')[], number, number] = [
  [{ kind: 'text', content: KEY, cuts: [31], ends: true }],
  ['write', 'join', 'join', 'write', 'cut', 'write', 'write', 'join', 'join', 'join'],
  1,
  1,
];

function secretOf(sign: string, secret: string): SecretText {
  return { text: `${sign}\n${secret}\n`, secrets: [secret] };
}

const TASK: AgUiEvent = { type: 'CUSTOM', name: 'task:started', value: { task_id: 'k1', description: 'a task' } };

it('a redacted reader receives no secret, and live equals reloaded, wherever it joins or disconnects', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 1, maxLength: 5 }),
      fc.array(fc.constantFrom('join', 'cut', 'turn', 'write', 'write', 'write'), { minLength: 4, maxLength: 30 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 6 }),
      async (actions, steps, size, rows) => {
        target = await inProcessTarget();
        ends.push(() => target.close());
        const limits = { rows, bytes: 100_000 };
        const fanOut = new FanOut(target.database, { page: limits, tick: limits, pollMs: 60_000 });
        ends.push(() => fanOut.close());
        const writer = new Writer();
        const secrets = actions.flatMap(({ content }) => content.secrets);
        const events = actions.flatMap(eventsOf);
        const readers: Reader[] = [];
        const logs = actions.map(({ content }) => ({
          kind: 'log',
          log: { level: 'info', component: 'c', message: content.text.replaceAll('\n', ' ') },
        }));
        await writer.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r0' }, TASK]);
        for (const [index, step] of steps.entries()) {
          if (step === 'write') await writer.write(events.splice(0, size));
          if (step === 'join') readers.push(await Reader.join(fanOut));
          if (step === 'cut') await readers[index % Math.max(1, readers.length)]?.resume();
          // with chunks, the same id in another run starts a new text
          if (step === 'turn' && !events[0]?.type.endsWith('_CHUNK')) {
            const runId = `r${index}`;
            await writer.write([
              { type: 'RUN_FINISHED', threadId: 's1', runId: 'r0' },
              { type: 'RUN_STARTED', threadId: 's1', runId },
            ]);
          }
        }
        readers.push(await Reader.join(fanOut));
        await writer.write(events);
        const hidden = logs.filter((_, index) => !/PRIVATE/.test(actions[index]?.content.text ?? ''));
        await writer.write([{ type: 'CUSTOM', name: 'the:last' }], hidden);

        const last = await newestPosition();
        const [page, output] = [await load(), await loadOutput()];
        expect(leakedIn(JSON.stringify([page, output]), secrets)).toBeNull();
        for (const reader of readers) {
          await reader.until(last);
          expect(leakedIn(JSON.stringify(reader.frames), secrets)).toBeNull();
          expect(leakedIn(JSON.stringify(reader.transcript), secrets)).toBeNull();
          const ids = idsOf(reader.frames);
          expect(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? 0))).toBe(true);
          expect(reader.transcript.turns).toEqual(page.turns);
          const known = reader.output;
          if (known === null || output === null) continue;
          const after = reader.entries.filter(({ position }) => Number(position) > Number(known.position));
          expect(foldTaskOutput(known, after).output).toEqual(output.output);
        }
        await cleanUp();
      },
    ),
    { numRuns: 80, examples: Array.from({ length: 6 }, () => FOLDED_MEANWHILE) },
  );
});

it('live equals reloaded for a redacted reader, whatever agents send', async () => {
  await fc.assert(
    fc.asyncProperty(
      arbitraryBatchesWithSnapshots,
      fc.array(fc.nat(11), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 6 }),
      async (batches, loads, rows) => {
        target = await inProcessTarget();
        ends.push(() => target.close());
        const fanOut = new FanOut(target.database, { page: { rows, bytes: 100_000 }, pollMs: 60_000 });
        ends.push(() => fanOut.close());
        const writer = new Writer();
        await writer.write([{ type: 'CUSTOM', name: 'the:first' }]);
        const readers: Reader[] = [];
        for (const [index, batch] of batches.entries()) {
          await writer.write(batch);
          if (loads.includes(index)) readers.push(await Reader.join(fanOut));
        }
        await writer.write([{ type: 'CUSTOM', name: 'the:last' }]);
        const last = await newestPosition();
        const page = await load();
        for (const reader of readers) {
          await reader.until(last);
          expect(reader.transcript.turns).toEqual(page.turns);
          expect(reader.transcript.places).toEqual(page.places);
        }
        await cleanUp();
      },
    ),
    { numRuns: 60 },
  );
});
