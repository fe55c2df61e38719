import { fieldsOf, listOf, numberOf, textOf, textsOf } from '@/lib/adapters/claude/fields';
import type { HeardStop } from '@/lib/adapters/claude/heard-stops';
import type { ClosedTurn } from '@/lib/adapters/claude/last-words';
import type { Offer } from './offers';
import type { TailPlace } from './tail-file';
import type { TerminalProcess } from './terminal-process';

/** How far a session has been mirrored: the cursor that is stored with the events it gave. JSON. */
export interface MirrorState {
  file: string;
  main: TailPlace | null;
  /** By the subagent's id. */
  subagents: Record<string, TailPlace>;
  /** The line that was read last, by its name. */
  last: string | null;
  /** A run is open in what was told. */
  open: boolean;
  /** Stop hooks that ran and are ahead of the transcript. Oldest first. */
  stops: HeardStop[];
  /** What was said last by turns that are over and whose stop hooks were not heard. Oldest first. */
  unheard: string[][];
  /** When prompts were heard of that no line has come up to. Oldest first. */
  prompts: number[];
  /** The turn that a stop hook closed last: lines of it may still come. */
  closed: ClosedTurn | null;
  /** The session was left, and why; what it still writes is waited for. */
  ending: SessionEnding | null;
  /** When the session was begun last, or resumed: what ran before ends nothing. */
  began: number;
  /** The session was told to have ended. */
  ended: boolean;
  /** Requests that stood in the terminal. */
  asks: { tool: string; input: unknown }[];
  /** What our stop hook holds the agent with and the transcript does not say yet. */
  offers: readonly Offer[];
  /** Messages put before the agent in the open turn. */
  handed: string[];
  /** Whose hooks have called. Null before the first, and where it is not known. */
  process: TerminalProcess | null;
}

/** Why a session is over, and whether somebody wanted it to be. */
export interface SessionEnding {
  reason: string;
  isAsked: boolean;
}

export function newMirrorState(file: string): MirrorState {
  const [open, ended] = [false, false];
  return {
    file,
    main: null,
    subagents: {},
    last: null,
    open,
    stops: [],
    unheard: [],
    prompts: [],
    closed: null,
    ending: null,
    began: 0,
    ended,
    asks: [],
    offers: [],
    handed: [],
    process: null,
  };
}

/** @returns null for what no mirror has written */
export function parseMirrorState(text: string): MirrorState | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const fields = fieldsOf(value);
  const file = textOf(fields.file);
  if (file === null) return null;
  const subagents = Object.entries(fieldsOf(fields.subagents)).flatMap(([id, place]) => {
    const parsed = placeOf(place);
    return parsed === null ? [] : [[id, parsed] as const];
  });
  const asks = listOf(fields.asks)
    .map(fieldsOf)
    .map(({ tool, input }) => ({ tool: `${tool}`, input }));
  return {
    file,
    main: placeOf(fields.main),
    subagents: Object.fromEntries(subagents),
    last: textOf(fields.last),
    open: fields.open === true,
    stops: listOf(fields.stops).flatMap(stopOf),
    unheard: listOf(fields.unheard).map(textsOf),
    prompts: listOf(fields.prompts).flatMap((at) => numberOf(at) ?? []),
    closed: closedOf(fields.closed),
    ending: endingOf(fields.ending),
    began: numberOf(fields.began) ?? 0,
    ended: fields.ended === true,
    asks,
    offers: listOf(fields.offers).flatMap(offerOf),
    handed: textsOf(fields.handed),
    process: processOf(fields.process),
  };
}

function endingOf(value: unknown): SessionEnding | null {
  const { reason, isAsked } = fieldsOf(value);
  const said = textOf(reason);
  return said === null ? null : { reason: said, isAsked: isAsked === true };
}

function stopOf(value: unknown): HeardStop[] {
  const { at, heardAt, isClocked, promptId, text, failure, promptedAt } = fieldsOf(value);
  const known = numberOf(at);
  if (known === null) return [];
  const moment = { at: known, heardAt: numberOf(heardAt) ?? known, isClocked: isClocked === true };
  const prompts = {
    promptId: textOf(promptId),
    promptedAt: numberOf(promptedAt),
  };
  return [{ ...moment, text: textOf(text), failure: textOf(failure), ...prompts }];
}

function offerOf(value: unknown): Offer[] {
  const { messageIds, reason, moment, since } = fieldsOf(value);
  const { at, isClocked, promptId } = fieldsOf(moment);
  const [known, said] = [numberOf(at), textOf(reason)];
  if (known === null || said === null) return [];
  const ran = { at: known, isClocked: isClocked === true, promptId: textOf(promptId) };
  return [{ messageIds: textsOf(messageIds), reason: said, moment: ran, since: numberOf(since) ?? known }];
}

function closedOf(value: unknown): ClosedTurn | null {
  const { at, text, taken } = fieldsOf(value);
  const known = numberOf(at);
  return known === null ? null : { at: known, text: textOf(text), taken: listOf(taken).map(fieldsOf) };
}

function processOf(value: unknown): TerminalProcess | null {
  const { pid, birth } = fieldsOf(value);
  const known = numberOf(pid);
  return known === null ? null : { pid: known, birth: textOf(birth) };
}

function placeOf(value: unknown): TailPlace | null {
  const { ino, offset } = fieldsOf(value);
  const [i, o] = [numberOf(ino), numberOf(offset)];
  return i === null || o === null ? null : { ino: i, offset: o };
}
