import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { type MirrorState, parseMirrorState } from '@/lib/runner/sources/hooks/mirror-state';
import { SessionMirror } from '@/lib/runner/sources/hooks/session-mirror';
import { tempDir } from '../support/temp-dir';

/** How long a hook may take: the agent waits for it. */
const SLOWEST_HOOK_MS = 1_900;
const LOOKS_EVERY_MS = 250;
const DAWN = Date.parse('2026-11-20T12:00:00Z');

/** Mostly at once. */
const delay = (most: number) => fc.oneof(fc.constantFrom(0, 0, most), fc.nat(300), fc.nat(most));
const words = fc.oneof(
  fc.constantFrom('Done.', 'OK', 'Done.\n\nAll of it.'),
  fc.nat(99).map((n) => `Number ${n}.`),
);

/** @param mostBehindMs how far the transcript's lines may be behind the agent */
const turnsOf = (mostBehindMs: number, hookSays: string[]) =>
  fc.array(turnOf(mostBehindMs, hookSays), { minLength: 2, maxLength: 6 });
const turnOf = (mostBehindMs: number, hookSays: string[]) =>
  fc.record({
    isWoken: fc.boolean(),
    gapMs: fc.oneof(fc.constantFrom(5, 50, 15_000), fc.nat(1_000), fc.nat(8_000)),
    /** What it says before each of its tool calls; empty for nothing. */
    calls: fc.array(fc.oneof(fc.constant(''), words), { maxLength: 3 }),
    last: fc.array(words, { minLength: 1, maxLength: 2 }),
    takesMs: fc.constantFrom(5, 50, 400, 1_500),
    isInterrupted: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    /** Its end stands in the transcript. */
    isMeasured: fc.boolean(),
    hookSays: fc.constantFrom(...hookSays),
    hooksTakeMs: fc.tuple(delay(SLOWEST_HOOK_MS), delay(SLOWEST_HOOK_MS)),
    behindMs: fc.array(delay(mostBehindMs), { minLength: 1, maxLength: 10 }),
  });
type Turn = ReturnType<typeof turnOf> extends fc.Arbitrary<infer T> ? T : never;

/** No two texts are the same. */
const unlike = (turns: Turn[]): Turn[] =>
  turns.map((one, i) => ({
    ...one,
    calls: one.calls.map((text, j) => text && `${text} ${i}.${j}`),
    last: one.last.map((text, j) => `${text} ${i}:${j}`),
  }));

type Arrival = { at: number } & ({ line: object } | { prompted: true } | { stopped: string | null });

/** When each line stands in the transcript and each hook is heard: both in their order. */
function arrivalsOf(turns: Turn[]): Arrival[] {
  const out: Arrival[] = [];
  let [now, lineAt, hookAt] = [DAWN + 100, 0, 0];
  for (const [i, { isWoken, gapMs, calls, last, takesMs, behindMs, ...turn }] of turns.entries()) {
    let lines = 0;
    const line = (type: string, message: object, more: object = {}) => {
      lineAt = Math.max(lineAt, now + (behindMs[lines % behindMs.length] ?? 0));
      const uuid = `u${i}${lines === 0 ? '' : `-${lines}`}`;
      lines += 1;
      const timestamp = new Date(now).toISOString();
      out.push({ at: lineAt, line: { type, uuid, timestamp, message: { id: `m-${uuid}`, ...message }, ...more } });
    };
    const hook = (takes: number, what: { prompted: true } | { stopped: string | null }) => {
      hookAt = Math.max(hookAt, now + takes);
      out.push({ at: hookAt, ...what });
      now = hookAt + 1;
    };
    const says = (text: string, stop_reason: string | null) => {
      now += takesMs;
      line('assistant', { stop_reason, content: [{ type: 'text', text }] });
    };
    now += gapMs;
    hook(turn.hooksTakeMs[0], { prompted: true });
    now += 3;
    const task = `<task-notification>\n<task-id>t${i}</task-id>\n<status>completed</status>\n</task-notification>`;
    const kind = isWoken ? 'task-notification' : 'human';
    line('user', { role: 'user', content: isWoken ? task : 'Go' }, { origin: { kind } });
    for (const [j, text] of calls.entries()) {
      if (text !== '') says(text, 'tool_use');
      now += takesMs;
      const id = `toolu_${i}_${j}`;
      const call = { type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } };
      line('assistant', { stop_reason: 'tool_use', content: [call] });
      now += 20;
      line('user', { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'a.txt' }] });
    }
    for (const text of last) says(text, turn.isInterrupted ? null : 'end_turn');
    now += 5;
    if (turn.isInterrupted) {
      line('user', { role: 'user', content: [{ type: 'text', text: '[Request interrupted by user]' }] });
      continue;
    }
    const said = turn.hookSays === 'all' ? last.join('\n\n') : (last.at(-1) ?? null);
    hook(turn.hooksTakeMs[1], { stopped: turn.hookSays === 'nothing' ? null : said });
    now += 3;
    if (turn.isMeasured) line('system', {}, { subtype: 'turn_duration', durationMs: 5 });
  }
  return out.sort((a, b) => a.at - b.at);
}

const bare = (text: string) => text.replace(/\s+/g, '');

/** What is right: each turn's words and its end. */
const wanted = (turns: Turn[]) =>
  turns.map(({ calls, last, isInterrupted }, i) => {
    return [`run-u${i}`, bare([...calls, ...last].join('')), isInterrupted ? 'cancelled' : 'success'];
  });

/** The same by what was told. Words outside of any run stand by themselves. */
function told(events: AgUiEvent[]): (string | undefined)[][] {
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

/** @param swaps when another mirror takes over, as parts of the day */
async function mirrored(arrivals: Arrival[], swaps: number[], file: string): Promise<AgUiEvent[]> {
  writeFileSync(file, '');
  const events: AgUiEvent[] = [];
  let [now, state] = [DAWN, null as MirrorState | null];
  const follow = () =>
    new SessionMirror({
      ...{ sessionId: 's', file, state, now: () => now },
      emit: (outputs, next) => {
        events.push(...outputs.map(({ event }) => event));
        state = parseMirrorState(JSON.stringify(next));
      },
      ...{ onHandedOver: () => undefined, onTurnEnded: () => undefined, log: () => undefined },
    });
  let mirror = follow();
  mirror.began();
  await mirror.step();
  const dusk = (arrivals.at(-1)?.at ?? DAWN) + 12_000;
  const left = [...arrivals];
  const swapsAt = swaps.map((part) => DAWN + ((dusk - DAWN) * part) / 100).sort((a, b) => a - b);
  for (let tick = DAWN; tick <= dusk; tick += LOOKS_EVERY_MS) {
    for (let next = left[0]; next !== undefined && next.at <= tick; next = left[0]) {
      left.shift();
      now = next.at;
      if ('line' in next) appendFileSync(file, `${JSON.stringify(next.line)}\n`);
      else if ('prompted' in next) mirror.report('busy');
      else mirror.stopped(null, next.stopped);
      if (!('line' in next)) await mirror.step();
    }
    now = tick;
    if ((swapsAt[0] ?? Number.POSITIVE_INFINITY) <= tick) {
      swapsAt.shift();
      mirror = follow();
    }
    await mirror.step();
  }
  return events;
}

test.each([
  ['of any words, little behind', turnsOf(1_400, ['nothing', 'the last block', 'all', 'all'])],
  ['whose hooks say all, far behind', turnsOf(2_400, ['all']).map(unlike)],
])(
  'a day in the terminal %s, has every word told once, in its own turn, and every turn finished',
  {
    timeout: 60_000,
  },
  async (_which, turns) => {
    const file = join(await tempDir(), 's.jsonl');
    await fc.assert(
      fc.asyncProperty(turns, fc.array(fc.nat(99), { maxLength: 3 }), async (day, swaps) => {
        expect(told(await mirrored(arrivalsOf(day), swaps, file))).toEqual(wanted(day));
      }),
      { numRuns: 75, seed: 1 },
    );
  },
);
