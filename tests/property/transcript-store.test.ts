import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { comparePositions } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RowFrame } from '@/components/live/row-frame';
import { type ReadPage, TranscriptStore } from '@/components/transcript/transcript-store';
import { arbitraryBatches } from '../support/arbitrary-events';
import { MemoryLog } from '../support/memory-log';

/** Page size, small enough to leave older turns. */
const PAGE = 2;

type Step =
  /** Appends events. */
  | 'append'
  /** Removes the oldest half. */
  | 'remove'
  /** Delivers pending frames; `some`: only a part. */
  | 'stream'
  | 'some'
  /** Reloads the transcript. */
  | 'ask'
  | 'ask-older'
  /** The server executes the oldest request; `behind`: a lagging replica does. */
  | 'read'
  | 'read-behind'
  /** Delivers a read result. */
  | 'answer'
  | 'gap';
const steps = fc.array(
  fc.constantFrom<Step>(
    ...(['append', 'append', 'stream', 'some', 'ask', 'ask-older', 'read', 'read', 'answer', 'answer'] as const),
    ...(['read-behind', 'gap', 'remove'] as const),
  ),
  { minLength: 5, maxLength: 40 },
);

interface Request {
  range: { before?: string; limit: number };
  page: TranscriptPage | null;
  answer: (page: TranscriptPage) => void;
}

/** A server with a session and a page that shows it, with arbitrary delays in between. */
class Scene {
  readonly log = new MemoryLog();
  /** A replica with an older state of the log. */
  readonly #behind = new MemoryLog();
  readonly #history: ((log: MemoryLog) => EventEntry[])[] = [];
  #copied = 0;
  readonly #requests: Request[] = [];
  #onTheWay: EventEntry[] = [];
  #isFollowing = true;
  #fails = 0;
  readonly #batches: AgUiEvent[][];
  readonly store: TranscriptStore;
  readonly seen = new Set<string>();

  constructor(batches: readonly AgUiEvent[][], cameIn: number) {
    this.#batches = [...batches];
    for (let index = 0; index < cameIn; index++) this.append();
    const readPage: ReadPage = (_, range) =>
      new Promise((answer) => void this.#requests.push({ range, page: null, answer }));
    this.store = new TranscriptStore('s1', this.log.page({ limit: PAGE }), readPage);
    this.#onTheWay = [];
  }

  append(): boolean {
    const batch = this.#batches.shift();
    if (batch === undefined) return false;
    this.#append((log) => log.append(batch));
    return true;
  }

  #append(what: (log: MemoryLog) => EventEntry[]): void {
    this.#history.push(what);
    this.#onTheWay.push(...what(this.log));
  }

  async take(step: Step): Promise<void> {
    const { log, store } = this;
    switch (step) {
      case 'append':
        this.append();
        break;
      case 'remove':
        this.#append((log) => log.remove(50));
        break;
      case 'stream':
      case 'some':
        this.#deliver(step === 'some' ? 2 : Number.POSITIVE_INFINITY);
        break;
      case 'ask':
        this.#ask();
        break;
      case 'ask-older':
        void store.loadOlder();
        break;
      case 'read':
        this.#read(log);
        break;
      case 'read-behind':
        for (const what of this.#history.slice(this.#copied, -1)) what(this.#behind);
        this.#copied = Math.max(this.#copied, this.#history.length - 1);
        if (this.#copied > 0) this.#read(this.#behind);
        break;
      case 'answer': {
        const [first] = this.#requests;
        if (first?.page != null) this.#requests.shift()?.answer(first.page);
        break;
      }
      case 'gap':
        this.#startAgain();
        break;
    }
    await new Promise(setImmediate);
    if (!this.#isFollowing && store.position !== null) this.#follow(store.position);
    for (const { id } of store.value?.turns ?? []) this.seen.add(id);
  }

  /** Runs until nothing is in transit. */
  async settle(): Promise<void> {
    do {
      while (this.#requests.length > 0) {
        await this.take('read');
        await this.take('answer');
      }
      await this.take('stream');
      // Failed reads are retried.
      const isToBeRead = this.store.position === null || this.store.value?.incomplete;
      if (isToBeRead && this.#requests.length === 0) await this.take('ask');
      this.#fails += 1;
      expect(this.#fails).toBeLessThan(50);
    } while (this.#requests.length > 0 || this.store.position === null);
  }

  /** Starts the stream after the snapshot, unless later events were removed meanwhile. */
  #follow(position: string): void {
    this.#isFollowing = true;
    this.#onTheWay = this.log.after(position);
    if (this.log.hasGapAfter(position)) this.#startAgain();
  }

  #startAgain(): void {
    this.#onTheWay = [];
    this.#isFollowing = false;
    this.store.reset();
    this.#ask();
  }

  #ask(): void {
    this.store.read(new AbortController().signal).catch(() => undefined);
  }

  #read(log: MemoryLog): void {
    const next = this.#requests.find(({ page }) => page === null);
    if (next) next.page = log.page({ before: next.range.before ?? null, limit: PAGE });
  }

  #deliver(count: number): void {
    if (this.#isFollowing) this.store.applyFrames(this.#onTheWay.splice(0, count).map(frameOf));
  }
}

const frameOf = ({ position, ...entry }: EventEntry): RowFrame => ({
  event: 'session-event',
  id: position,
  data: { sessionId: 's1', agentId: 'a1', seq: 1, ...entry },
});

/** After a gap, the first of two snapshots comes from a replica older than the page. */
const LAGGING_SNAPSHOT: [AgUiEvent[][], number, Step[]] = [
  [
    [{ type: 'CUSTOM', name: 'message:delivery', value: { message_id: 'u1', delivery: 'delivered' } }],
    [{ type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'Bash' }],
    [
      { type: 'TEXT_MESSAGE_START', messageId: 'u1', role: 'user' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'u1', delta: '' },
      { type: 'TEXT_MESSAGE_END', messageId: 'u1' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '' },
      { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' },
    ],
  ],
  2,
  ['gap', 'read-behind', 'ask', 'append', 'append', 'append', 'append', 'append'],
];

/** More turns than a page holds arrive in an empty session, followed by a gap. */
const EMPTY_AT_FIRST: [AgUiEvent[][], number, Step[]] = [
  [['r1', 'r2', 'r3'].map((runId) => ({ type: 'RUN_STARTED', threadId: 's1', runId }))],
  0,
  ['append', 'stream', 'gap'],
];

it('the transcript store equals a reload, as far back as loaded, with arrivals in any order', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryBatches, fc.nat(6), steps, async (batches, cameIn, chosen) => {
      const scene = new Scene(batches, cameIn);
      let position = '0';
      for (const step of chosen) {
        await scene.take(step);
        // After a gap, earlier pages may differ.
        const now = scene.store.position ?? '0';
        if (now !== '0') expect(comparePositions(now, position)).toBeGreaterThanOrEqual(0);
        position = now;
      }
      while (scene.append());
      await scene.settle();
      const { turns } = scene.log.page();
      const { value } = scene.store;
      expect(value?.incomplete).toBe(false);
      expect(value?.turns).toEqual(value?.hasMore ? turns.slice(turns.length - value.turns.length) : turns);
      const loaded = new Set(value?.turns.map(({ id }) => id));
      expect(turns.filter(({ id }) => scene.seen.has(id) && !loaded.has(id))).toEqual([]);
    }),
    { numRuns: 1_000, examples: [LAGGING_SNAPSHOT, EMPTY_AT_FIRST] },
  );
});
