import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir';
import { type Arrival, arrivalsOf, type DayKind, mirrored, type Turn, turnsOf } from '../support/terminal-day';

/**
 * Days on which everything is late: any hook is heard up to a minute after it ran, any line is written up to a minute
 * after it was made, and the agent says the same in every turn.
 *
 * Left out, for no fact tells them apart:
 * - What a transcript brings of a turn that was held for it long enough: 5 s behind its stop hook (12 s, where that says
 *   nothing), 3 s behind the next prompt, 5 s behind a line that ends the agent's talk, 1.5 s behind both where the hook
 *   says nothing. By then the turn was told to be over, which is told once: the rest is told outside of any turn.
 * - Two blocks at the end of a turn of which one begins with the other, where the hook says the last block only and that
 *   is not written yet: the same hook says as much of a turn that says it in both.
 * - Hooks of a CLI without prompt ids that are heard in another order than they ran in, while the transcript is behind: a
 *   stop hook whose prompt was not heard of may be the open turn's or the next one's.
 */
const LATE = { mostBehindMs: 60_000, mostLateMs: 60_000, isClocked: true };
const NEW: DayKind = { ...LATE, isNamed: true, hookSays: ['the last block', 'all'] };
const MIDDLE: DayKind = { ...LATE, isNamed: false, hookSays: ['the last block', 'all'] };
const OLD: DayKind = { ...LATE, isNamed: false, hookSays: ['nothing'] };

interface Told {
  runs: { id: string; outcome: string; answers: unknown }[];
  /** By turn: what was told of it, word for word, and whether in the turn itself. */
  words: { turn: string; isInside: boolean; word: string }[];
}

/** The lines' ids say whose words they are. */
function toldOf(events: AgUiEvent[]): Told {
  const [runs, words]: [Told['runs'], Told['words']] = [[], []];
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

function expectRight(day: Turn[], arrivals: Arrival[], { runs, words }: Told): void {
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
        `told outside of turn ${i}`,
      ).toEqual([]);
    }
  }
}

const isTold = ({ last: [first, second], hookSays }: Turn) => hookSays === 'all' || !second?.startsWith(`${first}`);
const daysOf = (kind: DayKind) => turnsOf(kind).map((day) => day.filter(isTold));

const KINDS: [string, DayKind][] = [
  ['that names its prompts', NEW],
  ['that names no prompts', MIDDLE],
  ['whose hooks say nothing', OLD],
];

/** What the turn says is there before the turn is held to be over. */
function hasAllInTime(arrivals: Arrival[]): boolean {
  const lines = arrivals.filter((one) => 'line' in one);
  const latest = lines.at(-1)?.at ?? 0;
  const stop = arrivals.find((one) => 'stopped' in one);
  const heldForMs = stop !== undefined && stop.stopped === null ? 1_500 : 3_000;
  const lastWord = lines.find(({ line }) => JSON.stringify(line).includes('"end_turn"'))?.at ?? latest;
  return latest < (stop?.at ?? latest) + heldForMs && latest < lastWord + 5_000;
}

test.each(KINDS)(
  'a day with a CLI %s, hooks and lines a minute late, has every word told once, in no other turn than its own, and every turn finished once',
  async (_which, kind) => {
    const file = join(await tempDir(), 's.jsonl');
    await fc.assert(
      fc.asyncProperty(daysOf(kind), fc.array(fc.nat(99), { maxLength: 3 }), async (day, swaps) => {
        const arrivals = arrivalsOf(day, kind);
        const events = await mirrored(arrivals, swaps, { file, settleMs: 90_000, looksEveryMs: 500 });
        expectRight(day, arrivals, toldOf(events));
      }),
      { numRuns: 25, seed: 1 },
    );
  },
);
