import { parseJson } from '@interlude/protocol/fields';
import * as z from 'zod';
import type { ClosedTurn } from '../../adapters/claude/final-text';
import type { HookMoment, PendingStop } from '../../adapters/claude/stop-hooks';
import type { ProcessIdentity } from '../../host/process-lookup';
import type { FilePosition } from './transcript-files';

/** The end of a session. `isAsked`: a person closed the session on purpose. */
export interface SessionEnding {
  reason: string;
  isAsked: boolean;
}

/** A hold: messages in the response of a stop hook. Stored as JSON, because a hold outlives the companion. */
export interface StopHookHold {
  messageIds: readonly string[];
  /** Text for the agent. */
  reason: string;
  moment: HookMoment;
  /** Start of the search in the transcript, epoch milliseconds. */
  since: number;
}

/** A handoff to a wait. Stored as JSON, because a handoff outlives the companion. */
export interface WaitMessage {
  claim: string;
  messageIds: readonly string[];
  /** Time of the handoff, or of its confirmation. Epoch milliseconds. */
  at: number;
  isShown: boolean;
}

const time = z.number();
const text = z.string();
const textOrNull = z.string().min(1).nullable().catch(null);
const flag = z.boolean().catch(false);
const orNull = <Type extends z.ZodType>(type: Type) => type.nullable().catch(null);
/** Keeps the valid items of a list. */
const list = <Type extends z.ZodType>(type: Type) =>
  z
    .array(z.unknown())
    .catch([])
    .transform((items) => items.flatMap((item) => type.safeParse(item).data ?? []));

const place: z.ZodType<FilePosition> = z.object({ ino: z.number(), offset: z.number() });
const moment = { at: time, isClocked: flag, promptId: textOrNull };
const stop: z.ZodType<PendingStop> = z
  .object({ ...moment, heardAt: orNull(time), text: textOrNull, failure: textOrNull, promptedAt: orNull(time) })
  .transform((read) => ({ ...read, heardAt: read.heardAt ?? read.at }));
const offer: z.ZodType<StopHookHold> = z
  .object({ messageIds: list(text), reason: text, moment: z.object(moment), since: orNull(time) })
  .transform((read) => ({ ...read, since: read.since ?? read.moment.at }));
const waited: z.ZodType<WaitMessage> = z.object({
  claim: text,
  messageIds: list(text),
  at: time,
  isShown: flag,
});
const closed: z.ZodType<ClosedTurn> = z.object({
  at: time,
  text: textOrNull,
  taken: list(z.record(z.string(), z.unknown())),
});
const ending: z.ZodType<SessionEnding> = z.object({ reason: text, isAsked: flag });
const terminal: z.ZodType<ProcessIdentity> = z.object({ pid: z.number(), birth: textOrNull });

/** Stored state of a mirror, saved with its events. Invalid fields fall back to their defaults. */
const mirrorState = z.object({
  file: text.min(1),
  main: orNull(place),
  subagents: z
    .record(z.string(), orNull(place))
    .catch({})
    .transform((places) =>
      Object.fromEntries(Object.entries(places).flatMap(([id, at]) => (at === null ? [] : [[id, at]]))),
    ),
  /** Key of the last line read, of the session and of its subagents. */
  last: textOrNull,
  lastOf: z.record(z.string(), z.string()).catch({}),
  /** True if a run is open in the emitted events. */
  open: flag,
  /** Stop hooks ahead of the transcript, oldest first. */
  stops: list(stop),
  /** Last texts of ended turns without a stop hook, oldest first. */
  unheard: list(list(text)),
  /** Times of prompts ahead of the transcript, oldest first. */
  prompts: list(time),
  /** True if the prompt hook of the open turn has arrived: the next one belongs to another turn. */
  isPromptHeard: flag,
  /** The last turn closed by a stop hook, which may still receive lines. */
  closed: orNull(closed),
  /** The last command settled without a following line. */
  settled: textOrNull,
  /** Set while a closed terminal session may still write. */
  ending: orNull(ending),
  /** Last start of the session. Earlier hooks do not end a turn. */
  began: time.catch(0),
  /** True if the end of the session was emitted. */
  ended: flag,
  /** Open requests of the terminal. */
  asks: list(z.object({ tool: text, input: z.unknown(), isHeld: flag })),
  /** Holds of our stop hook that the transcript does not show yet. */
  offers: list(offer),
  /** Messages handed to a `wait` that the transcript doesn't show as finished. */
  waited: list(waited),
  /** True if the agent got the hint about listening, and has missed no message since. */
  wasOffered: flag,
  /** Messages given to the agent in the open turn. */
  handed: list(text),
  /** Process of the last hook; null if unknown. */
  process: orNull(terminal),
  /** Time of the process's last hook. */
  heardAt: time.catch(0),
  /** Tasks missing from a stop hook, until nothing else reports their end. */
  unlisted: orNull(z.object({ ids: list(text), at: time })),
  /** Tasks presumed lost because they stayed unlisted. */
  lost: list(text),
});

export type MirrorState = z.output<typeof mirrorState>;

export function newMirrorState(file: string): MirrorState {
  return mirrorState.parse({ file });
}

/** @returns null for an invalid value */
export function parseMirrorState(stored: string): MirrorState | null {
  return mirrorState.safeParse(parseJson(stored)).data ?? null;
}

/** Silence of the transcript that ends a turn after its last hook. */
const QUIET_MS = 1_500;
/**
 * Time for which a turn waits for its stop hook's text to appear in the transcript, before it takes the text from the
 * hook. Shorter after the next prompt, longer if the hook had no text.
 */
const LAST_LINE_MS = { most: 5_000, prompted: 3_000, textless: 12_000 };
/**
 * Time for which a turn waits for its lines after a hook of a later turn, and for which that hook waits for its turn.
 */
const BEHIND_MS = 90_000;
/** Time for which an ended session may still write. */
const LAST_WRITES_MS = { quiet: 500, most: 3_000 };
/**
 * Silence after which an expected hook counts as killed or missed: in `busy` without a turn, or after the last text of
 * a turn. Our hook takes 2 s at most.
 */
const STUCK_MS = 5_000;
/** Time for the response of a stop hook to reach the transcript, which waits for hooks that run beside it. */
const HELD_MS = 70_000;

/** Times used to infer the state of a silent session. Epoch milliseconds. */
export interface QuietPeriods {
  now: number;
  lastLineAt: number;
  /** Time of the last activity report. */
  reportedAt: number;
  /** Time at which the session was left; null if it continues. */
  leftAt: number | null;
  /** True if the transcript lacks the text from the stop hook, or any sign of the turn's end. */
  lacksFinalText: boolean;
  /** True if the response of a stop hook is in transit. */
  isHeld: boolean;
  /** Start of the search for a hold of the open turn; null without one. */
  heldSince: number | null;
  /** Time of the last hold that reached the agent, which delays everything after it. */
  handedAt: number;
}

/** True if a closed terminal session has finished writing. */
export function isEndingOver({ now, lastLineAt, leftAt, lacksFinalText, heldSince }: QuietPeriods): boolean {
  if (leftAt === null) return false;
  const isQuiet = now - Math.max(lastLineAt, leftAt) >= LAST_WRITES_MS.quiet;
  const isComplete = isQuiet && !lacksFinalText && heldSince === null;
  return isComplete || now - leftAt >= LAST_WRITES_MS.most;
}

/** True if a command has ended: the transcript has been silent long enough for its output. */
export function isCommandOver({ now, lastLineAt, reportedAt }: QuietPeriods): boolean {
  return now - Math.max(lastLineAt, reportedAt) >= QUIET_MS;
}

/** True if a hold may continue the turn. */
function isHoldActive({ now, heldSince, leftAt }: QuietPeriods): boolean {
  return heldSince !== null && leftAt === null && now - heldSince < HELD_MS;
}

/** True if a turn is complete after its stop hook. */
export function isTurnOver({ heardAt, promptedAt, text, failure }: PendingStop, periods: QuietPeriods): boolean {
  const { now, lastLineAt, leftAt, lacksFinalText, handedAt } = periods;
  if (isHoldActive(periods)) return false;
  if (!lacksFinalText) return isEndingOver(periods) || now - Math.max(lastLineAt, heardAt) >= QUIET_MS;
  const since = Math.max(heardAt, handedAt);
  if (promptedAt !== null && now - Math.max(promptedAt, since) >= LAST_LINE_MS.prompted) return true;
  const most = text === null && failure === null ? LAST_LINE_MS.textless : LAST_LINE_MS.most;
  return (leftAt !== null && now - leftAt >= LAST_WRITES_MS.most) || now - since >= most;
}

/**
 * True if a stop hook will never match a turn in the transcript. A hook without a time or prompt id is given up sooner.
 */
export function isStopUnmatched({ heardAt, isClocked, promptId }: PendingStop, periods: QuietPeriods): boolean {
  const { now } = periods;
  if (isHoldActive(periods)) return false;
  return now - heardAt >= (isClocked || promptId !== null ? BEHIND_MS : LAST_LINE_MS.most);
}

/** True if an expected hook is overdue: the end of a finished turn, or the start of a turn after `busy`. */
export function isHookOverdue({ now, lastLineAt, reportedAt, isHeld }: QuietPeriods): boolean {
  return now - Math.max(reportedAt, lastLineAt) >= (isHeld ? HELD_MS : STUCK_MS);
}

/** Activity reported by hooks. */
export type AgentActivity = 'starting' | 'busy' | 'idle' | 'compacting';

/** The latest activity report. Out-of-order hooks are ignored. */
export class SelfReport {
  #activity: AgentActivity = 'starting';
  /** Time of the reporting hook. */
  #ranAt = 0;
  #heardAt: number;

  constructor(now: number) {
    this.#heardAt = now;
  }

  get activity(): AgentActivity {
    return this.#activity;
  }

  get heardAt(): number {
    return this.#heardAt;
  }

  update(activity: AgentActivity, ranAt: number, now: number): void {
    if (ranAt < this.#ranAt) return;
    this.#ranAt = ranAt;
    this.#activity = activity;
    this.#heardAt = now;
  }

  /** Infers from silence that the agent is idle. */
  inferIdle(now: number): void {
    this.update('idle', this.#ranAt, now);
  }
}
