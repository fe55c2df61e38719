import { parseJson } from '@interlude/protocol/fields';
import * as z from 'zod';
import type { ClosedTurn } from '../../adapters/claude/final-text';
import type { PendingStop } from '../../adapters/claude/stop-hooks';
import type { Offer } from './offers';
import type { TailPlace } from './tail-file';
import type { TerminalProcess } from './terminal-process';
import type { WaitedMessage } from './waited-messages';

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

const place: z.ZodType<TailPlace> = z.object({ ino: z.number(), offset: z.number() });
const moment = { at: time, isClocked: flag, promptId: textOrNull };
const stop: z.ZodType<PendingStop> = z
  .object({ ...moment, heardAt: orNull(time), text: textOrNull, failure: textOrNull, promptedAt: orNull(time) })
  .transform((read) => ({ ...read, heardAt: read.heardAt ?? read.at }));
const offer: z.ZodType<Offer> = z
  .object({ messageIds: list(text), reason: text, moment: z.object(moment), since: orNull(time) })
  .transform((read) => ({ ...read, since: read.since ?? read.moment.at }));
const waited: z.ZodType<WaitedMessage> = z.object({
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
const terminal: z.ZodType<TerminalProcess> = z.object({ pid: z.number(), birth: textOrNull });

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
