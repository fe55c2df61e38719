import { parseJson } from '@interlude/protocol/fields';
import * as z from 'zod';
import type { HeardStop } from '../../adapters/claude/heard-stops';
import type { ClosedTurn } from '../../adapters/claude/last-words';
import type { ProcessIdentity } from '../../host/process-lookup';
import type { StopHookHold, WaitMessage } from './message-tracker';
import type { FilePosition } from './transcript-files';

/** Why a session is over, and whether somebody wanted it to be. */
export interface SessionEnding {
  reason: string;
  isAsked: boolean;
}

const time = z.number();
const text = z.string();
const textOrNull = z.string().min(1).nullable().catch(null);
const flag = z.boolean().catch(false);
const orNull = <Type extends z.ZodType>(type: Type) => type.nullable().catch(null);
/** What of a list is whole. */
const list = <Type extends z.ZodType>(type: Type) =>
  z
    .array(z.unknown())
    .catch([])
    .transform((items) => items.flatMap((item) => type.safeParse(item).data ?? []));

const place: z.ZodType<FilePosition> = z.object({ ino: z.number(), offset: z.number() });
const moment = { at: time, isClocked: flag, promptId: textOrNull };
const stop: z.ZodType<HeardStop> = z
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

/** How far a session has been mirrored: the cursor that is stored with the events it gave. What is not whole is absent. */
const mirrorState = z.object({
  file: text.min(1),
  main: orNull(place),
  /** By the subagent's id. */
  subagents: z
    .record(z.string(), orNull(place))
    .catch({})
    .transform((places) =>
      Object.fromEntries(Object.entries(places).flatMap(([id, at]) => (at === null ? [] : [[id, at]]))),
    ),
  /** The line of the session's own file that was read last, by its name; and those of its subagents' files. */
  last: textOrNull,
  lastOf: z.record(z.string(), z.string()).catch({}),
  /** A run is open in what was told. */
  open: flag,
  /** Stop hooks that ran and are ahead of the transcript. Oldest first. */
  stops: list(stop),
  /** What was said last by turns that are over and whose stop hooks were not heard. Oldest first. */
  unheard: list(list(text)),
  /** When prompts were heard of that no line has come up to. Oldest first. */
  prompts: list(time),
  /** The hook of the prompt that opened the turn was heard: the next one is of another turn. */
  isPromptHeard: flag,
  /** The turn that a stop hook closed last: lines of it may still come. */
  closed: orNull(closed),
  /** The last command that was emitted though no line followed it. */
  settled: textOrNull,
  /** The session was left, and why; what it still writes is waited for. */
  ending: orNull(ending),
  /** When the session was begun last, or resumed: what ran before ends nothing. */
  began: time.catch(0),
  /** The session was told to have ended. */
  ended: flag,
  /** Requests that stood in the terminal. */
  asks: list(z.object({ tool: text, input: z.unknown(), isHeld: flag })),
  /** What our stop hook holds the agent with and the transcript does not say yet. */
  offers: list(offer),
  /** What a wait of the agent's was handed, until the transcript says that the agent has heard of its end. */
  waited: list(waited),
  /** The agent was told that it can listen while it is idle, and nobody has missed that since. */
  wasOffered: flag,
  /** Messages put before the agent in the open turn. */
  handed: list(text),
  /** The process whose hooks have called. Null before the first, and where it is not known. */
  process: orNull(terminal),
  /** When the last hook of that process ran. */
  heardAt: time.catch(0),
  /** Tasks that a stop hook did not list, until it is clear that nothing reports how they ended. */
  unlisted: orNull(z.object({ ids: list(text), at: time })),
  /** Tasks that were presumed lost for that reason. */
  lost: list(text),
});

export type MirrorState = z.output<typeof mirrorState>;

export function newMirrorState(file: string): MirrorState {
  return mirrorState.parse({ file });
}

/** @returns null for what no mirror has written */
export function parseMirrorState(stored: string): MirrorState | null {
  return mirrorState.safeParse(parseJson(stored)).data ?? null;
}

/** How long the transcript must be still after the last hook of a turn, before the turn is held to be over. */
const STILL_MS = 1_500;
/**
 * How long a turn is held for the text that its stop hook brought and the transcript has not: past it the hook's word
 * is taken. Shorter, once the next prompt was heard of. Longer, where the hook brought none: only the transcript has
 * it.
 */
const LAST_LINE_MS = { most: 5_000, prompted: 3_000, wordless: 12_000 };
/**
 * How long a turn is held whose lines are behind those of a hook of a later one: the transcript has them, and brings
 * them before that. And how long such a hook waits for its turn.
 */
const BEHIND_MS = 90_000;
/** How long a session that has ended may still write. */
const LAST_WORDS_MS = { still: 500, most: 3_000 };
/**
 * For this long `busy` without an open turn, or nothing behind a turn's last word: the hook that would have said idle
 * was killed, or nobody was there to hear it. Ours takes 2 s at most.
 */
const STUCK_MS = 5_000;
/** How long what a stop hook answered may take to reach the transcript: other people's hooks run beside it. */
const HELD_MS = 70_000;

/** What is known of a session at a look. Epoch milliseconds. */
export interface QuietPeriods {
  now: number;
  lastLineAt: number;
  /** When the agent said last what it does. */
  reportedAt: number;
  /** When the session was left; null if it goes on. */
  leftAt: number | null;
  /** The stop hook's word is not in the transcript; or it brought none, and nothing there ends the turn. */
  lacksLastWords: boolean;
  /** A stop hook's answer is on its way to the agent. */
  isHeld: boolean;
  /** Since when such an answer to the open turn's hook has been looked for; null for none. */
  heldSince: number | null;
  /** When the transcript said last that one reached the agent: what follows it is behind by as much. */
  handedAt: number;
}

/** Whether a session that was left has said all it had to say, or has had its time. */
export function isEndingOver({ now, lastLineAt, leftAt, lacksLastWords, heldSince }: QuietPeriods): boolean {
  if (leftAt === null) return false;
  const isStill = now - Math.max(lastLineAt, leftAt) >= LAST_WORDS_MS.still;
  const hasSaid = isStill && !lacksLastWords && heldSince === null;
  return hasSaid || now - leftAt >= LAST_WORDS_MS.most;
}

/** A command is over once the transcript has been still for long enough to hold its output. */
export function isCommandOver({ now, lastLineAt, reportedAt }: QuietPeriods): boolean {
  return now - Math.max(lastLineAt, reportedAt) >= STILL_MS;
}

/** Whether the turn goes on by an answer of our stop hook that the transcript has not come to. */
function isHoldActive({ now, heldSince, leftAt }: QuietPeriods): boolean {
  return heldSince !== null && leftAt === null && now - heldSince < HELD_MS;
}

/** Whether the turn whose stop hook ran has said all it had to say, or has had its time. */
export function isTurnOver({ heardAt, promptedAt, text, failure }: HeardStop, still: QuietPeriods): boolean {
  const { now, lastLineAt, leftAt, lacksLastWords, handedAt } = still;
  if (isHoldActive(still)) return false;
  if (!lacksLastWords) return isEndingOver(still) || now - Math.max(lastLineAt, heardAt) >= STILL_MS;
  const since = Math.max(heardAt, handedAt);
  if (promptedAt !== null && now - Math.max(promptedAt, since) >= LAST_LINE_MS.prompted) return true;
  const most = text === null && failure === null ? LAST_LINE_MS.wordless : LAST_LINE_MS.most;
  return (leftAt !== null && now - leftAt >= LAST_WORDS_MS.most) || now - since >= most;
}

/** Whether the transcript would have come to the hook's turn by now. What the hook itself does not say is not sure. */
export function isStopUnmatched({ heardAt, isClocked, promptId }: HeardStop, still: QuietPeriods): boolean {
  const { now } = still;
  if (isHoldActive(still)) return false;
  return now - heardAt >= (isClocked || promptId !== null ? BEHIND_MS : LAST_LINE_MS.most);
}

/**
 * Whether the hook that ends a turn which has said its last word would have been heard by now, and whether an agent
 * that said it was busy would have begun a turn.
 */
export function isHookOverdue({ now, lastLineAt, reportedAt, isHeld }: QuietPeriods): boolean {
  return now - Math.max(reportedAt, lastLineAt) >= (isHeld ? HELD_MS : STUCK_MS);
}

/** What an agent says of itself, by its hooks. */
export type AgentActivity = 'starting' | 'busy' | 'idle' | 'compacting';

/** What the agent said last. A hook that is heard behind later ones changes nothing they said. */
export class SelfReport {
  #says: AgentActivity = 'starting';
  /** When that hook ran. */
  #ranAt = 0;
  #heardAt: number;

  constructor(now: number) {
    this.#heardAt = now;
  }

  get says(): AgentActivity {
    return this.#says;
  }

  get heardAt(): number {
    return this.#heardAt;
  }

  heard(says: AgentActivity, ranAt: number, now: number): void {
    if (ranAt < this.#ranAt) return;
    this.#ranAt = ranAt;
    this.#says = says;
    this.#heardAt = now;
  }

  /** The agent does nothing, though no hook said so. */
  concluded(now: number): void {
    this.heard('idle', this.#ranAt, now);
  }
}
