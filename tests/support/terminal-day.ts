import { appendFileSync, writeFileSync } from 'node:fs';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { HookClaim } from '@interlude/runner/adapters/claude/stop-hooks';
import { type MirrorState, parseMirrorState } from '@interlude/runner/sources/hooks/mirror-state';
import { SessionMirror } from '@interlude/runner/sources/hooks/session-mirror';
import fc from 'fast-check';

/** Parameters of a simulated terminal day: hooks and transcript lines, each possibly late. */
export interface DayKind {
  /** Maximum delay of transcript lines in milliseconds. */
  mostBehindMs: number;
  /** Maximum delay of a hook in milliseconds. The agent waits for it up to a limit. */
  mostLateMs: number;
  hookSays: string[];
  /** Hooks and lines carry prompt ids. */
  isNamed: boolean;
  /** Hooks carry their time. */
  isClocked: boolean;
}

/** Milliseconds that the agent waits for a hook. */
const SLOWEST_HOOK_MS = 1_900;
const DAWN = Date.parse('2026-11-20T12:00:00Z');

/** Mostly zero. */
const delay = (most: number) => fc.oneof(fc.constantFrom(0, 0, most), fc.nat(300), fc.nat(most));
const words = fc.oneof(
  fc.constantFrom('Done.', 'OK', 'Done.\n\nAll of it.'),
  fc.nat(99).map((n) => `Number ${n}.`),
);

export const turnsOf = (kind: DayKind) => fc.array(turnOf(kind), { minLength: 2, maxLength: 6 });
const turnOf = ({ mostBehindMs, mostLateMs, hookSays }: DayKind) =>
  fc.record({
    isWoken: fc.boolean(),
    /** The session is resumed before this turn, with a hook. */
    isResumed: mostLateMs > SLOWEST_HOOK_MS ? fc.nat(4).map((n) => n === 0) : fc.constant(false),
    gapMs: fc.oneof(fc.constantFrom(5, 50, 15_000), fc.nat(1_000), fc.nat(8_000)),
    /** Texts before tool calls; empty for none. */
    calls: fc.array(fc.oneof(fc.constant(''), words), { maxLength: 3 }),
    last: fc.array(words, { minLength: 1, maxLength: 2 }),
    takesMs: fc.constantFrom(5, 50, 400, 1_500),
    isInterrupted: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    /** The transcript contains the turn's end. */
    isMeasured: fc.boolean(),
    hookSays: fc.constantFrom(...hookSays),
    hooksTakeMs: fc.tuple(delay(mostLateMs), delay(mostLateMs), delay(mostLateMs)),
    behindMs: fc.array(delay(mostBehindMs), { minLength: 1, maxLength: 10 }),
  });
export type Turn = ReturnType<typeof turnOf> extends fc.Arbitrary<infer T> ? T : never;

/** Makes all texts unique. */
export const withUniqueTexts = (turns: Turn[]): Turn[] =>
  turns.map((one, i) => ({
    ...one,
    calls: one.calls.map((text, j) => text && `${text} ${i}.${j}`),
    last: one.last.map((text, j) => `${text} ${i}:${j}`),
  }));

type Hook = { prompted: true } | { began: true } | { stopped: string | null };
/** `of` is the index of the turn. */
export type Arrival = { at: number; of: number } & ({ line: object } | (Hook & { claim: HookClaim | undefined }));

/** Arrival times of lines and hooks. Lines arrive in order. */
export function arrivalsOf(turns: Turn[], { isNamed, isClocked }: DayKind): Arrival[] {
  const out: Arrival[] = [];
  let [now, lineAt, hookAt] = [DAWN + 100, 0, 0];
  let parentUuid: string | null = null;
  for (const [i, { isWoken, isResumed, gapMs, calls, last, takesMs, behindMs, ...turn }] of turns.entries()) {
    const promptId = isNamed ? `p${i}` : null;
    let lines = 0;
    const line = (type: string, message: object, more: object = {}, madeAt = now) => {
      lineAt = Math.max(lineAt, now + (behindMs[lines % behindMs.length] ?? 0));
      const uuid = `u${i}${lines === 0 ? '' : `-${lines}`}`;
      lines += 1;
      const named = isNamed && type === 'user' ? { promptId } : {};
      const about = { parentUuid, type, uuid, timestamp: new Date(madeAt).toISOString(), ...named };
      parentUuid = uuid;
      out.push({ at: lineAt, of: i, line: { ...about, message: { id: `m-${uuid}`, ...message }, ...more } });
    };
    const hook = (late: number, what: Hook, id = promptId) => {
      // hooks without prompt ids are matched by order only
      hookAt = isNamed ? now + late : Math.max(hookAt, now + late);
      out.push({ at: hookAt, of: i, ...what, claim: isClocked ? { at: now, promptId: id } : undefined });
      now = Math.min(hookAt, now + SLOWEST_HOOK_MS) + 1;
    };
    const writeText = (text: string, stop_reason: string | null) => {
      now += takesMs;
      line('assistant', { stop_reason, content: [{ type: 'text', text }] });
    };
    now += gapMs;
    // The previous process is gone: no more lines or hooks from it.
    if (isResumed) now = Math.max(now, ...out.map(({ at }) => at + 1));
    if (isResumed) hook(turn.hooksTakeMs[2], { began: true }, null);
    // the line is created before the hook runs and written after it
    const askedAt = now;
    now += 3;
    hook(turn.hooksTakeMs[0], { prompted: true });
    const task = `<task-notification>\n<task-id>t${i}</task-id>\n<status>completed</status>\n</task-notification>`;
    const kind = isWoken ? 'task-notification' : 'human';
    line('user', { role: 'user', content: isWoken ? task : 'Go' }, { origin: { kind } }, askedAt);
    for (const [j, text] of calls.entries()) {
      if (text !== '') writeText(text, 'tool_use');
      now += takesMs;
      const id = `toolu_${i}_${j}`;
      const call = { type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } };
      line('assistant', { stop_reason: 'tool_use', content: [call] });
      now += 20;
      line('user', { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'a.txt' }] });
    }
    for (const text of last) writeText(text, turn.isInterrupted ? null : 'end_turn');
    now += 5;
    if (turn.isInterrupted) {
      line('user', { role: 'user', content: [{ type: 'text', text: '[Request interrupted by user]' }] });
      continue;
    }
    const hookText = turn.hookSays === 'all' ? last.join('\n\n') : (last.at(-1) ?? null);
    hook(turn.hooksTakeMs[1], { stopped: turn.hookSays === 'nothing' ? null : hookText });
    now += 3;
    if (turn.isMeasured) line('system', {}, { subtype: 'turn_duration', durationMs: 5 });
  }
  return out.sort((a, b) => a.at - b.at);
}

/**
 * @param swaps times at which a new mirror takes over, as fractions of the day
 * @param settleMs time after the last arrival
 */
export async function mirrorDay(
  arrivals: Arrival[],
  swaps: number[],
  { file, settleMs = 12_000, looksEveryMs = 250 }: { file: string; settleMs?: number; looksEveryMs?: number },
): Promise<AgUiEvent[]> {
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
      ...{ onDelivered: () => undefined, onTurnEnded: () => undefined, log: () => undefined },
    });
  let mirror = follow();
  mirror.began();
  await mirror.step();
  const dusk = (arrivals.at(-1)?.at ?? DAWN) + settleMs;
  const left = [...arrivals];
  const swapsAt = swaps.map((part) => DAWN + ((dusk - DAWN) * part) / 100).sort((a, b) => a - b);
  for (let tick = DAWN; tick <= dusk; tick += looksEveryMs) {
    for (let next = left[0]; next !== undefined && next.at <= tick; next = left[0]) {
      left.shift();
      now = next.at;
      if ('line' in next) appendFileSync(file, `${JSON.stringify(next.line)}\n`);
      else if ('prompted' in next) mirror.prompted(next.claim);
      else if ('began' in next) mirror.began(next.claim);
      else mirror.stopped(null, next.stopped, next.claim);
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
