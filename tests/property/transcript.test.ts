import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { comparePositions } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import {
  awaitOlder,
  foldTranscript,
  prependTurns,
  type TranscriptState,
  transcriptFromPage,
} from '@interlude/protocol/projections/transcript';
import { placeEvents } from '@interlude/protocol/projections/turns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryBatches } from '../support/arbitrary-events';
import { MemoryLog } from '../support/memory-log';

const visible = ({ turns, removed }: Pick<TranscriptState, 'turns' | 'removed'>) => ({ turns, removed });

/** Batches after which the oldest turns are removed, with the percentage of positions. */
const cuts = fc.array(
  fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 100 }) }),
  { maxLength: 12 },
);

/** @returns what a live subscriber receives */
function apply(log: MemoryLog, batch: readonly AgUiEvent[], percent = 0): EventEntry[] {
  return [...log.append(batch), ...(percent === 0 ? [] : log.remove(percent))];
}

/** A waiting user message, and another message with the same id that continues when a turn answers the first. */
const NAMED_TWICE: AgUiEvent[][] = [
  [
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', role: 'user', delta: '' },
    { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
    {
      type: 'RUN_STARTED',
      threadId: 's1',
      runId: 'r1',
      metadata: { interlude: { turn: 'user', userMessageIds: [] } },
    },
  ],
  [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: ' ' }],
  [
    { type: 'RUN_STARTED', threadId: 's1', runId: 'r2' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '' },
    { type: 'CUSTOM', name: 'session:ended', value: {} },
  ],
];

const taskEnded: AgUiEvent = { type: 'CUSTOM', name: 'task:completed', value: { task_id: 'task1' } };
const woken = (runId: string, taskIds: string[]): AgUiEvent => ({
  type: 'RUN_STARTED',
  threadId: 's1',
  runId,
  metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds } } },
});
/** A task ends again in the turn that reports its first end, which is on a page not yet loaded. */
const REPORTED_TWICE: AgUiEvent[][] = [
  [taskEnded],
  [woken('r1', [])],
  [{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' }],
  [{ type: 'TOOL_CALL_RESULT', messageId: 'm0', toolCallId: 't1', content: '' }],
  [woken('r2', ['task1']), taskEnded, { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' }],
  [woken('r3', ['task1'])],
];

/** The oldest loaded turn loses its only message, then older turns are removed. */
const OLDEST_MOVED_OUT: AgUiEvent[][] = [
  [{ type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'Bash' }],
  [
    {
      type: 'TEXT_MESSAGE_CHUNK',
      messageId: 'u1',
      role: 'user',
      delta: '',
      metadata: { interlude: { delivery: 'queued' } },
    },
    { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' },
  ],
  [
    {
      type: 'RUN_STARTED',
      threadId: 's1',
      runId: 'r2',
      metadata: { interlude: { turn: 'user', userMessageIds: ['u1'] } },
    },
  ],
  [{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r2' }],
];

/** A task starts, its turn is removed, and its start is repeated to a client that reconnected in between. */
const REPEATED_AFTER_REMOVAL: AgUiEvent[][] = [
  [{ type: 'CUSTOM', name: 'task:started', value: { task_id: 'task1', description: 'poll' } }, { type: 'RAW' }],
  [{ type: 'CUSTOM', name: 'task:started', value: { task_id: 'task1', description: 'poll' } }],
];

/** A task's end is repeated before its turn is removed, then a client reads the log from the start. */
const REPEATED_BEFORE_REMOVAL: AgUiEvent[][] = [
  [
    { type: 'CUSTOM', name: 'task:completed', value: { task_id: 'task1', description: 'poll', status: 'running' } },
    { type: 'CUSTOM', name: 'task:completed', value: { task_id: 'task1', description: 'poll', status: 'running' } },
    { type: 'CUSTOM', name: 'session:ended', value: { reason: 'exit', exitCode: 0 } },
  ],
  [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '' }],
];

/** A task ends twice with different results before a run without a cause, and the first end's turn is removed. */
const ENDED_TWICE: AgUiEvent[][] = [
  [
    { type: 'CUSTOM', name: 'task:completed', value: { task_id: 'task1', status: 'killed' } },
    { type: 'CUSTOM', name: 'task:completed', value: { task_id: 'task1', status: 'completed' } },
  ],
  [
    { type: 'RUN_STARTED', threadId: 's1', parentRunId: 'r1', runId: 'r1' },
    { type: 'TOOL_CALL_RESULT', toolCallId: 't1', content: '' },
  ],
  [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '' }],
];

describe('the transcript', () => {
  it('folded live equals a reload at the same position, wherever the client joined', () => {
    fc.assert(
      fc.property(arbitraryBatches, cuts, fc.nat(12), (batches, cuts, cameIn) => {
        const log = new MemoryLog();
        for (const [index, batch] of batches.slice(0, cameIn).entries()) apply(log, batch, cuts[index]);
        let live = transcriptFromPage(log.page());
        for (const [index, batch] of batches.slice(cameIn).entries()) {
          live = foldTranscript(live, apply(log, batch, cuts[cameIn + index]));
        }
        expect(visible(live)).toEqual(visible(transcriptFromPage(log.page())));
      }),
      { numRuns: 1000 },
    );
  });

  it('ends the same for a client that disconnected and resumed anywhere', () => {
    fc.assert(
      fc.property(arbitraryBatches, cuts, fc.nat(12), fc.nat(12), (batches, cuts, a, b) => {
        const log = new MemoryLog();
        const [cutAt, backAt] = [Math.min(a, b), Math.max(a, b)];
        let client = transcriptFromPage(log.page());
        const resume = () => {
          const isGap = log.hasGapAfter(client.position);
          client = isGap ? transcriptFromPage(log.page()) : foldTranscript(client, log.after(client.position));
        };
        for (const [index, batch] of batches.entries()) {
          const frames = apply(log, batch, cuts[index]);
          if (index < cutAt || index > backAt) client = foldTranscript(client, frames);
          else if (index === backAt) resume();
        }
        resume();
        expect(visible(client)).toEqual(visible(transcriptFromPage(log.page())));
      }),
      {
        numRuns: 1000,
        examples: [
          [NAMED_TWICE, [], 2, 2],
          [REPEATED_AFTER_REMOVAL, [40], 0, 0],
          [REPEATED_BEFORE_REMOVAL, [17], 0, 0],
          [ENDED_TWICE, [0, 15], 0, 1],
        ],
      },
    );
  });

  it('equals a reload, or requests one, for any timing of an older page', () => {
    const moments = fc.tuple(fc.nat(8), fc.nat(3), fc.nat(4), fc.nat(4));
    const limits = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(1, 2, 200));
    fc.assert(
      fc.property(arbitraryBatches, cuts, moments, limits, (history, cuts, moments, [limit, olderLimit]) => {
        const batches = history.map((batch, index) => ({ batch, percent: cuts[index] }));
        const [cameIn, until, untilRead, untilCome] = moments;
        const log = new MemoryLog();
        const append = (count: number) =>
          batches.splice(0, count).map(({ batch, percent }) => apply(log, batch, percent));
        append(cameIn);
        let live = transcriptFromPage(log.page({ limit }));
        const fold = (frames: EventEntry[][]) => {
          for (const entries of frames) live = foldTranscript(live, entries);
        };
        fold(append(until));
        const [oldest] = live.turns;
        if (!live.hasMore || oldest === undefined) return;
        const wasWhole = !live.incomplete;
        live = awaitOlder(live);
        const onTheWay = append(untilRead);
        const page = log.page({ before: oldest.position, limit: olderLimit });
        onTheWay.push(...append(untilCome));
        fold(onTheWay.splice(0, untilCome));
        live = prependTurns(live, page);
        fold([...onTheWay, ...append(batches.length)]);
        // A page of the same age as its request contains all items that moved, if it reaches the start.
        if (wasWhole && untilRead === 0 && !page.hasMore) expect(live.incomplete).toBe(false);
        if (live.incomplete) return;
        const { turns, removed } = log.page();
        const [first] = page.turns;
        // everything after the cut is loaded
        if (removed !== undefined && first !== undefined && comparePositions(first.position, removed.upTo) <= 0)
          expect(live.hasMore).toBe(false);
        const shown = live.hasMore ? turns.slice(turns.length - live.turns.length) : turns;
        expect(visible(live)).toEqual({ turns: shown, removed });
      }),
      {
        numRuns: 3000,
        examples: [
          [REPORTED_TWICE, [], [4, 0, 0, 2], [1, 200]],
          [OLDEST_MOVED_OUT, [0, 0, 0, 30], [2, 0, 0, 0], [1, 1]],
        ],
      },
    );
  });

  it('ignores events already folded', () => {
    fc.assert(
      fc.property(arbitraryBatches, (batches) => {
        const log = new MemoryLog();
        let live = transcriptFromPage(log.page());
        for (const batch of batches) live = foldTranscript(live, log.append(batch));
        expect(foldTranscript(live, log.after('0'))).toBe(live);
      }),
    );
  });

  it('places events the same one by one or in batches', () => {
    fc.assert(
      fc.property(arbitraryBatches, (batches) => {
        const entries = new MemoryLog().append(batches.flat());
        const whole = placeEvents(NO_PLACES, entries);
        let places = NO_PLACES;
        const single = entries.flatMap((entry) => {
          const step = placeEvents(places, [entry]);
          places = step.places;
          return step.placements;
        });
        expect(single).toEqual(whole.placements);
        expect(places).toEqual(whole.places);
      }),
    );
  });

  it('shows each moved message in exactly one turn', () => {
    fc.assert(
      fc.property(arbitraryBatches, (batches) => {
        const log = new MemoryLog();
        for (const batch of batches) log.append(batch);
        const rows = log.rows.filter((row) => row.turnId !== null && !row.turnId.startsWith('task:'));
        for (const row of rows) expect(log.headers.has(row.turnId as string)).toBe(true);
      }),
    );
  });
});
