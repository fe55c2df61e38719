import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir';
import { arrivalsOf, type DayKind, mirrorDay, type Turn, turnsOf, withUniqueTexts } from '../support/terminal-day';
import { scaled } from '../support/timeouts';

const bare = (text: string) => text.replace(/\s+/g, '');

/** Expected: each turn's words and its end. */
const expectedOf = (turns: Turn[]) =>
  turns.map(({ calls, last, isInterrupted }, i) => {
    return [`run-u${i}`, bare([...calls, ...last].join('')), isInterrupted ? 'cancelled' : 'success'];
  });

/** Actual: the same from events. Words outside any run are separate. */
function emittedIn(events: AgUiEvent[]): (string | undefined)[][] {
  const runs: (string | undefined)[][] = [];
  let isOpen = false;
  const agents = new Set<unknown>();
  for (const { type, runId, role, messageId, delta, outcome } of events) {
    if (type === 'TEXT_MESSAGE_START' && role === 'assistant') agents.add(messageId);
    if (type === 'RUN_STARTED') runs.push([String(runId), '']);
    if (type === 'RUN_STARTED') isOpen = true;
    const run = runs.at(-1);
    if (type === 'TEXT_MESSAGE_CONTENT' && agents.has(messageId)) {
      if (isOpen && run !== undefined) run[1] += bare(String(delta));
      else runs.push(['outside', bare(String(delta))]);
    }
    if (type !== 'RUN_FINISHED' && type !== 'RUN_ERROR') continue;
    run?.push(type === 'RUN_ERROR' ? 'failed' : (outcome as { type: string }).type);
    isOpen = false;
  }
  return runs;
}

const PROMPT_HOOKS = { mostLateMs: 1_900, isNamed: false, isClocked: false };
const SHORT_DELAY: DayKind = {
  ...PROMPT_HOOKS,
  mostBehindMs: 1_400,
  hookSays: ['nothing', 'the last block', 'all', 'all'],
};
const CLOCKED: DayKind = { ...SHORT_DELAY, isClocked: true };
const NAMED: DayKind = { ...CLOCKED, isNamed: true };
const LONG_DELAY: DayKind = { ...PROMPT_HOOKS, mostBehindMs: 2_400, hookSays: ['all'] };

test.each([
  ['of any words, little behind', SHORT_DELAY, turnsOf(SHORT_DELAY)],
  ['with timestamped hooks and short delays', CLOCKED, turnsOf(CLOCKED)],
  ['with prompt ids and short delays', NAMED, turnsOf(NAMED)],
  ['with complete hooks and long delays', LONG_DELAY, turnsOf(LONG_DELAY).map(withUniqueTexts)],
])('a terminal day %s emits every word once, in its own turn, and finishes every turn', async (_which, kind, turns) => {
  const file = join(await tempDir(), 's.jsonl');
  await fc.assert(
    fc.asyncProperty(turns, fc.array(fc.nat(99), { maxLength: 3 }), async (day, swaps) => {
      expect(emittedIn(await mirrorDay(arrivalsOf(day, kind), swaps, { file }))).toEqual(expectedOf(day));
    }),
    { numRuns: 50, ...scaled({ seed: 1 }, {}) },
  );
});
