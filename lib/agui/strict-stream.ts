import { endsChunks, namedChunk, withChunk, withoutChunk } from '@/lib/projections/chunks';
import type { EventEntry } from '@/lib/projections/event-entry';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { contentText, idField, pick, streamedKind, subagentTaskId } from '@/lib/protocol/event-fields';
import { isObject, textOf } from '@/lib/protocol/fields';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import type { ServedPart, ServedRun } from '@/lib/protocol/served-event';
import type { Chunked } from '@/lib/protocol/turn-places';
import type { ClientParts, Part } from './client-parts';
import { otherEvent } from './other-events';
import { RunBrackets } from './run-brackets';
import type { Dialect, Outcome, PartKind, StrictEvent } from './strict-event';

/** A run as it is begun. `interlude` becomes its `metadata.interlude`. */
export interface NewRun {
  runId: string;
  parentRunId?: string | null;
  at?: number;
  interlude?: ServedRun;
}

/** Most messages, thoughts and calls that are open at once: beyond them, the oldest is closed. */
const MOST_OPEN = 1_000;

/**
 * Writes what strict clients take, whatever it is given: it holds the state that their verifier holds, opens what is told
 * without a beginning, closes what is open before a run ends, and says nothing outside of runs. Pure.
 *
 * What the client has already is not told again: of a text that comes whole, only the rest.
 *
 * Ordering: events are written in the order in which they are taken; `drain` gives those since the last one.
 * Failure: what has no meaning here (a text without an id, the end of what never began) is left out; an event of an
 * unknown type is written as RAW.
 *
 * @see `@ag-ui/client` 0.0.59 and 1.0.0, `verifyEvents`
 */
export class StrictStream {
  readonly #threadId: string;
  readonly #dialect: Dialect;
  readonly #parts: ClientParts;
  #brackets = new RunBrackets();
  #runId: string | null = null;
  #isOutside = false;
  #hasFailed = false;
  #chunks: readonly Chunked[] | undefined;
  #out: StrictEvent[] = [];

  constructor(options: { threadId: string; dialect: Dialect; parts: ClientParts }) {
    this.#threadId = options.threadId;
    this.#dialect = options.dialect;
    this.#parts = options.parts;
  }

  /** Null between runs. */
  get runId(): string | null {
    return this.#runId;
  }

  /** Whether the open run is one that holds what stands outside the agent's own. */
  get isOutside(): boolean {
    return this.#runId !== null && this.#isOutside;
  }

  /** @returns what was written since the last call */
  drain(): StrictEvent[] {
    const written = this.#out;
    this.#out = [];
    return written;
  }

  /** A run that is open is ended before: one of the agent was broken in on. */
  begin({ runId, parentRunId, at, interlude }: NewRun): void {
    if (this.#runId !== null) this.finish({ type: this.isOutside ? 'success' : 'cancelled' }, at);
    this.#brackets = new RunBrackets();
    this.#runId = runId;
    this.#isOutside = false;
    this.#hasFailed = false;
    const metadata = interlude === undefined ? undefined : { interlude };
    this.#write(
      'RUN_STARTED',
      { threadId: this.#threadId, runId, parentRunId: parentRunId ?? undefined, metadata },
      at,
    );
  }

  finish(outcome: Outcome, at?: number, result?: unknown): void {
    const runId = this.#runId;
    if (runId === null) return;
    this.#closeAll(at);
    const isOld = this.#dialect === '0.0.59' && outcome.type === 'cancelled';
    if (isOld) this.#write('CUSTOM', { name: 'interlude:run-cancelled', value: { runId } }, at);
    const told = isOld ? { type: 'success' } : outcome;
    this.#write('RUN_FINISHED', { threadId: this.#threadId, runId, outcome: told, result: result ?? undefined }, at);
    this.#runId = null;
  }

  /** Also without a run: then it is all that the client is told. */
  fail(message: string, code?: string | null, at?: number): void {
    // Behind an error nothing may come but a run.
    if (this.#hasFailed && this.#runId === null) this.#needRun('error', at);
    if (this.#runId !== null) this.#closeAll(at);
    this.#hasFailed = true;
    this.#write('RUN_ERROR', { message, code: code ?? undefined }, at);
    this.#runId = null;
  }

  custom(name: string, value: unknown, at?: number, position = '0'): void {
    this.#needRun(position, at);
    this.#write('CUSTOM', { name, value: value ?? null }, at);
  }

  activity(messageId: string, activityType: string, content: object, at?: number, position = '0'): void {
    this.#needRun(position, at);
    this.#write('ACTIVITY_SNAPSHOT', { messageId, activityType, content, replace: true }, at);
  }

  /** Takes the place of all messages that the client has. Its caller has said to `parts` what they are. */
  messages(messages: readonly object[], at?: number): void {
    this.#needRun('0', at);
    for (const { id, toolCalls } of messages as readonly { id: string; toolCalls?: { id: string }[] }[]) {
      this.#brackets.owners.set(`text:${id}`, null);
      this.#brackets.owners.set(`reasoning:${id}`, null);
      for (const call of toolCalls ?? []) this.#brackets.owners.set(`tool:${call.id}`, null);
    }
    this.#write('MESSAGES_SNAPSHOT', { messages }, at);
  }

  /** Ends a run of what stands outside once nothing in it is open. */
  settle(): void {
    if (this.isOutside && this.#parts.openCount === 0) this.finish({ type: 'success' });
  }

  /** What happens in a run. Runs themselves begin and end by `begin`, `finish` and `fail`. */
  take(entry: EventEntry): void {
    const { position, occurredAt: at } = entry;
    const task = subagentTaskId(entry.event);
    const { event } = namedChunk(this.#chunks, entry, task);
    if (endsChunks(event)) this.#endChunks(task, at);
    const kind = streamedKind(event.type);
    if (kind !== null && this.#takePart(kind, event, task, at, position)) return;
    this.#takeOther(event, at, position);
  }

  /** @returns false for what streams no text of its own */
  #takePart(kind: PartKind, event: AgUiEvent, task: string | null, at: number, position: string): boolean {
    const verb = /_(START|CONTENT|ARGS|CHUNK|END|RESULT)$/.exec(event.type)?.[1];
    if (verb === undefined || event.type === 'REASONING_START' || event.type === 'REASONING_END') return false;
    const id = idField(event, kind === 'tool' ? 'toolCallId' : 'messageId');
    // it stands nowhere in the transcript either
    if (id === null) return true;
    if (verb === 'RESULT') {
      this.#result(id, contentText(event.content), idField(event, 'messageId'), at, position);
      return true;
    }
    const known = this.#parts.find(kind, id);
    // A snapshot that says otherwise what was told: nothing takes back a text.
    if (known !== undefined && interludeOf(event).ofSnapshot !== undefined) return true;
    if (verb === 'END') {
      if (known?.isOpen) this.#close(known, event, at);
      const result = kind === 'tool' ? pick(event, 'result') : undefined;
      if (result !== undefined) this.#result(id, contentText(result), null, at, position);
      return true;
    }
    const part = known ?? this.#parts.know(kind, id, 0, 0);
    if (verb === 'START') part.told = 0;
    // What the client has opens again only for what is new in it.
    if (known === undefined) this.#open(part, event, at, position);
    if (verb !== 'START') this.#grow(part, event, at, position);
    if (verb === 'CHUNK') this.#goOnInChunks(part, event, task, at);
    return true;
  }

  #grow(part: Part, event: AgUiEvent, at: number, position: string): void {
    const delta = textOf(event.delta) ?? '';
    const isWhole = interludeOf(event).whole === true;
    const rest = delta.slice(isWhole ? part.has : part.has - part.told);
    part.told = isWhole ? delta.length : part.told + delta.length;
    part.has = Math.max(part.has, part.told);
    if (rest === '') return;
    if (!part.isOpen) this.#open(part, event, at, position);
    this.#write(NAMES[part.kind].content, { ...nameOf(part), delta: rest }, at);
  }

  #open(part: Part, event: AgUiEvent, at: number, position: string): void {
    this.#needRun(position, at);
    const { subagentRunId } = this.#ownerOf(part, event);
    const owned = { ...nameOf(part), subagentRunId, metadata: metadataOf(event) };
    const oldest = this.#parts.openCount < MOST_OPEN ? null : this.#parts.oldestOpen;
    if (oldest !== null) this.#close(oldest, null, at);
    this.#parts.setOpen(part, true);
    if (part.kind === 'text') {
      const role = ROLES.find((known) => known === event.role) ?? 'assistant';
      this.#write('TEXT_MESSAGE_START', { ...owned, role, name: textOf(event.name) ?? undefined }, at);
    } else if (part.kind === 'reasoning') {
      this.#write('REASONING_MESSAGE_START', { ...owned, role: 'reasoning' }, at);
    } else {
      const toolCallName = textOf(event.toolCallName) ?? 'tool';
      this.#write('TOOL_CALL_START', { ...owned, toolCallName, parentMessageId: this.#parentOf(part, event) }, at);
    }
  }

  /** A part is its first speaker's for as long as the run lasts, whoever goes on with it. */
  #ownerOf({ kind, id }: Part, event: AgUiEvent): { subagentRunId: string | undefined } {
    return { subagentRunId: this.#brackets.own(`${kind}:${id}`, textOf(event.subagentRunId)) ?? undefined };
  }

  /** The message that a call belongs to, unless that is somebody else's. */
  #parentOf(part: Part, event: AgUiEvent): string | undefined {
    const parent = idField(event, 'parentMessageId');
    if (parent === null || parent === part.id) return undefined;
    const owner = this.#brackets.owners.get(`text:${parent}`);
    return owner === undefined || owner === this.#brackets.owners.get(`tool:${part.id}`) ? parent : undefined;
  }

  #close(part: Part, event: AgUiEvent | null, at?: number): void {
    this.#parts.setOpen(part, false);
    delete part.chunkedBy;
    const metadata = event === null ? undefined : metadataOf(event);
    this.#write(NAMES[part.kind].end, { ...nameOf(part), metadata }, at);
  }

  #result(toolCallId: string, content: string, messageId: string | null, at: number, position: string): void {
    const call = this.#parts.find('tool', toolCallId);
    if (call?.isOpen) this.#close(call, null, at);
    if (this.#parts.hasResult(toolCallId)) return;
    this.#needRun(position, at);
    this.#parts.knowResult(toolCallId);
    let id = messageId ?? `${toolCallId}:result`;
    while (this.#parts.hasId(id) || this.#brackets.owners.has(`text:${id}`)) id = `${id}:result`;
    this.#brackets.own(`text:${id}`, null);
    this.#write('TOOL_CALL_RESULT', { messageId: id, toolCallId, content, role: 'tool' }, at);
  }

  /** A chunk opens what it is about or goes on with it; what its speaker told in chunks before is over. */
  #goOnInChunks(part: Part, event: AgUiEvent, task: string | null, at: number): void {
    for (const other of this.#parts.open()) {
      if (other !== part && other.chunkedBy !== undefined && other.chunkedBy === task) this.#close(other, null, at);
    }
    if (interludeOf(event).ofSnapshot !== undefined) {
      if (part.isOpen) this.#close(part, null, at);
      return;
    }
    if (part.isOpen) part.chunkedBy = task;
    this.#chunks = withChunk(this.#chunks, { task, kind: part.kind, id: part.id });
  }

  #endChunks(task: string | null, at: number): void {
    this.#chunks = withoutChunk(this.#chunks, task);
    for (const part of this.#parts.open()) {
      if (part.chunkedBy !== undefined && part.chunkedBy === task) this.#close(part, null, at);
    }
  }

  #takeOther(event: AgUiEvent, at: number, position: string): void {
    // A bracket is its run's, which has to be there first.
    if (/^(STEP_STARTED|SUBAGENT_STARTED|REASONING_START)$/.test(event.type)) this.#needRun(position, at);
    const bracket = this.#brackets.take(event);
    if (bracket === 'left-out') return;
    const other = bracket === 'none' ? otherEvent(event) : bracket;
    if (other !== null) this.#needRun(position, at, other);
  }

  /** Whatever is said is said in a run. @param then written in it, once it is open */
  #needRun(position: string, at?: number, then?: StrictEvent): void {
    if (this.#runId === null) {
      this.begin({ runId: `outside-${position}`, at, interlude: { turn: 'none' } });
      this.#isOutside = true;
    }
    if (then !== undefined) this.#write(then.type, then, at);
  }

  #closeAll(at?: number): void {
    for (const part of this.#parts.open()) this.#close(part, null, at);
    for (const end of this.#brackets.ends()) this.#write(end.type, end, at);
    this.#chunks = undefined;
  }

  #write(type: string, fields: Omit<StrictEvent, 'type'>, at?: number): void {
    const timestamp = at !== undefined && Number.isSafeInteger(at) ? at : undefined;
    const said = Object.entries({ ...fields, type, timestamp }).filter(([, value]) => value !== undefined);
    this.#out.push(Object.fromEntries(said) as StrictEvent);
  }
}

const ROLES = ['developer', 'system', 'assistant', 'user'] as const;

const NAMES = {
  text: { content: 'TEXT_MESSAGE_CONTENT', end: 'TEXT_MESSAGE_END' },
  reasoning: { content: 'REASONING_MESSAGE_CONTENT', end: 'REASONING_MESSAGE_END' },
  tool: { content: 'TOOL_CALL_ARGS', end: 'TOOL_CALL_END' },
} as const;

function nameOf({ kind, id }: Part): Record<string, string> {
  return kind === 'tool' ? { toolCallId: id } : { messageId: id };
}

/** What stays on the client’s message; the rest is about the event, or is not for clients. */
function metadataOf(event: AgUiEvent): StrictEvent['metadata'] {
  if (!isObject(event.metadata)) return undefined;
  const { interlude: _, ...others } = event.metadata;
  const known = interludeOf(event);
  const said = Object.fromEntries(PART.flatMap((field) => (known[field] === undefined ? [] : [[field, known[field]]])));
  if (Object.keys(said).length > 0) return { ...others, interlude: said };
  return Object.keys(others).length === 0 ? undefined : others;
}

const PART = ['attachments', 'clientId', 'delivery', 'from', 'replyTo'] as const satisfies (keyof ServedPart)[];
