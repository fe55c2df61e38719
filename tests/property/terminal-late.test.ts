import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir';
import { type Arrival, arrivalsOf, type DayKind, mirrorDay, type Turn, turnsOf } from '../support/terminal-day';

/**
 * Terminal days with delays of up to a minute for every hook and transcript line, and identical texts in every turn.
 *
 * Excluded, because no fact distinguishes them:
 * - Lines that arrive after the mirror's wait for a turn: 5 s after its stop hook (12 s if the hook has no text), 3 s
 *   after the next prompt, 5 s after a line that ends the agent's text, 1.5 s after both if the hook has no text. By
 *   then the turn's end was emitted, once, so later lines appear outside any turn.
 * - Two final blocks of which one is a prefix of the other, if the hook reports only the last block and that block
 *   isn't written yet: the hook is identical for a turn with both.
 * - Hooks of a CLI without prompt ids that arrive out of order while the transcript is behind: a stop hook without a
 *   known prompt may belong to the open turn or the next.
 */
const LATE = { mostBehindMs: 60_000, mostLateMs: 60_000, isClocked: true };
const NEW: DayKind = { ...LATE, isNamed: true, hookSays: ['the last block', 'all'] };
const MIDDLE: DayKind = { ...LATE, isNamed: false, hookSays: ['the last block', 'all'] };
const OLD: DayKind = { ...LATE, isNamed: false, hookSays: ['nothing'] };

interface Emitted {
  runs: { id: string; outcome: string; answers: unknown }[];
  /** Emitted words by turn, and whether inside the turn. */
  words: { turn: string; isInside: boolean; word: string }[];
}

/** Line ids identify the turn. */
function emittedIn(events: AgUiEvent[]): Emitted {
  const [runs, words]: [Emitted['runs'], Emitted['words']] = [[], []];
  let open: string | null = null;
  const agents = new Set<unknown>();
  for (const { type, runId, role, messageId, delta, outcome, metadata } of events) {
    if (type === 'TEXT_MESSAGE_START' && role === 'assistant') agents.add(messageId);
    if (type === 'RUN_STARTED') open = String(runId);
    if (type === 'TEXT_MESSAGE_CONTENT' && agents.has(messageId)) {
      const its = /m-(u\d+)/.exec(String(messageId))?.[1];
      const turn: string = its === undefined ? String(open) : `run-${its}`;
      for (const word of String(delta).split(/\s+/)) words.push({ turn, isInside: open === turn, word });
      if (open !== null && open !== turn) words.push({ turn, isInside: false, word: `in ${open}` });
    }
    if (type !== 'RUN_FINISHED' && type !== 'RUN_ERROR') continue;
    const how = type === 'RUN_ERROR' ? 'failed' : (outcome as { type: string }).type;
    runs.push({ id: String(open), outcome: how, answers: metadata?.interlude?.userMessageIds });
    open = null;
  }
  return { runs, words };
}

const wordsOf = ({ calls, last }: Turn) =>
  [...calls, ...last]
    .join(' ')
    .split(/\s+/)
    .filter((word) => word !== '');

function expectRight(day: Turn[], arrivals: Arrival[], { runs, words }: Emitted): void {
  expect(runs).toEqual(
    day.map(({ isInterrupted, isWoken }, i) => ({
      id: `run-u${i}`,
      outcome: isInterrupted ? 'cancelled' : 'success',
      answers: isWoken ? [] : [`u${i}`],
    })),
  );
  for (const [i, turn] of day.entries()) {
    const its = words.filter((one) => one.turn === `run-u${i}`);
    expect(its.map(({ word }) => word).sort(), `the words of turn ${i}`).toEqual(wordsOf(turn).sort());
    if (its.every(({ isInside }) => isInside)) {
      expect(
        its.map(({ word }) => word),
        `the words of turn ${i} in their order`,
      ).toEqual(wordsOf(turn));
    }
    if (hasAllInTime(arrivals.filter(({ of }) => of === i))) {
      expect(
        its.filter(({ isInside }) => !isInside),
        `emitted outside of turn ${i}`,
      ).toEqual([]);
    }
  }
}

const isDistinct = ({ last: [first, second], hookSays }: Turn) => hookSays === 'all' || !second?.startsWith(`${first}`);
const daysOf = (kind: DayKind) => turnsOf(kind).map((day) => day.filter(isDistinct));

const KINDS: [string, DayKind][] = [
  ['with prompt ids', NEW],
  ['without prompt ids', MIDDLE],
  ['with hooks without text', OLD],
];

/** True if all of the turn's lines arrive before its wait ends. */
function hasAllInTime(arrivals: Arrival[]): boolean {
  const lines = arrivals.filter((one) => 'line' in one);
  const latest = lines.at(-1)?.at ?? 0;
  const stop = arrivals.find((one) => 'stopped' in one);
  const heldForMs = stop !== undefined && stop.stopped === null ? 1_500 : 3_000;
  const lastWord = lines.find(({ line }) => JSON.stringify(line).includes('"end_turn"'))?.at ?? latest;
  return latest < (stop?.at ?? latest) + heldForMs && latest < lastWord + 5_000;
}

test.each(KINDS)(
  'a day of a CLI %s, a minute late, emits every word once, in no other turn, and finishes every turn once',
  async (_which, kind) => {
    const file = join(await tempDir(), 's.jsonl');
    await fc.assert(
      fc.asyncProperty(daysOf(kind), fc.array(fc.nat(99), { maxLength: 3 }), async (day, swaps) => {
        const arrivals = arrivalsOf(day, kind);
        const events = await mirrorDay(arrivals, swaps, { file, settleMs: 90_000, looksEveryMs: 500 });
        expectRight(day, arrivals, emittedIn(events));
      }),
      { numRuns: 25, seed: 1 },
    );
  },
);
