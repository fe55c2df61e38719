import type { AgUiEvent, ServedRun } from '@interlude/protocol/ag-ui';
import { contentText, idField, pick, subagentTaskId } from '@interlude/protocol/event-fields';
import { textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { bracketId, type EventInput, inputsOf, kindOf } from '@interlude/protocol/lifecycle/event-inputs';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import { chunksAfter, endsChunks, namedChunk } from '@interlude/protocol/projections/chunks';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import type { Chunked } from '@interlude/protocol/turn-places';
import { type ClientParts, isOfPart, type Part, type PartKind } from './client-parts';
import { bracketEnd, otherEvent } from './other-events';
import { contentOf, endOf, startOf } from './part-events';
import type { Dialect, Outcome, StrictEvent } from './strict-event';

/** A run as it is begun. `interlude` becomes its `metadata.interlude`. */
export interface NewRun {
  runId: string;
  parentRunId?: string | null;
  at?: number;
  interlude?: ServedRun;
  /** It holds events outside of the agent's own runs. */
  isOutside?: boolean;
}

/** Bounds per run: steps, subagents and spans beyond the open ones are left out. */
const MOST_BRACKETS = { mostOpen: 10_000, mostEnded: 10_000 };

/**
 * Writes a stream that strict clients accept from any events. The lifecycle's grammar decides what is open: a part without
 * a start gets one, open parts and brackets end before their run, and events outside of runs get a run. Pure.
 *
 * Text that the client already has is not written again: of a text that arrives whole, only the rest.
 *
 * Ordering: events are written in the order in which they are taken; `drain` returns those since the last call.
 * Failure: an event without meaning here (a text without an id, the end of a part that never began) is left out; an event
 * of an unknown type is written as RAW.
 *
 * @see `@ag-ui/client` 0.0.59 and 1.0.0, `verifyEvents`
 */
export class StrictStream {
  readonly #threadId: string;
  readonly #dialect: Dialect;
  readonly #parts: ClientParts;
  readonly #runs = new Entities<'turn', { isOutside: boolean }>('turn', { mostOpen: 1, mostEnded: 0 });
  /** Steps, subagents and spans of the open run, each with the event that began it. */
  #brackets = new Entities<'bracket', StrictEvent>('bracket', MOST_BRACKETS);
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
    return this.#runs.open[0] ?? null;
  }

  /** Whether the open run is one that holds what stands outside the agent's own. */
  get isOutside(): boolean {
    return this.#runs.about(this.runId ?? '')?.isOutside === true;
  }

  /** @returns what was written since the last call */
  drain(): StrictEvent[] {
    const written = this.#out;
    this.#out = [];
    return written;
  }

  /** Begins a run, and ends an open one first: one of the agent's as cancelled. */
  begin({ runId, parentRunId, at, interlude, isOutside = false }: NewRun): void {
    this.finish({ type: this.isOutside ? 'success' : 'cancelled' }, at);
    this.#runs.take(runId, 'begin', { isOutside });
    this.#hasFailed = false;
    const metadata = interlude === undefined ? undefined : { interlude };
    const begun = { threadId: this.#threadId, runId, parentRunId: parentRunId ?? undefined, metadata };
    this.#write({ type: 'RUN_STARTED', ...begun }, at);
  }

  finish(outcome: Outcome, at?: number, result?: unknown): void {
    const runId = this.#endRun(at);
    if (runId === null) return;
    const isOld = this.#dialect === '0.0.59' && outcome.type === 'cancelled';
    if (isOld) this.#write({ type: 'CUSTOM', name: 'interlude:run-cancelled', value: { runId } }, at);
    const told = isOld ? { type: 'success' } : outcome;
    const ended = { threadId: this.#threadId, runId, outcome: told, result: result ?? undefined };
    this.#write({ type: 'RUN_FINISHED', ...ended }, at);
  }

  /** Also without a run: then the error is all that the client gets. */
  fail(message: string, code?: string | null, at?: number): void {
    // Behind an error nothing may come but a run.
    if (this.#hasFailed) this.#needRun('error', at);
    this.#endRun(at);
    this.#hasFailed = true;
    this.#write({ type: 'RUN_ERROR', message, code: code ?? undefined }, at);
  }

  custom(name: string, value: unknown, at?: number): void {
    this.#writeInRun({ type: 'CUSTOM', name, value: value ?? null }, at);
  }

  activity(messageId: string, activityType: string, content: object, at?: number): void {
    this.#writeInRun({ type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content, replace: true }, at);
  }

  /** Takes the place of all messages that the client has. Its caller has said to `parts` what they are. */
  messages(messages: readonly object[], at?: number): void {
    this.#writeInRun({ type: 'MESSAGES_SNAPSHOT', messages }, at);
  }

  /** Ends a run of what stands outside once nothing in it is open. */
  settle(): void {
    if (this.isOutside && this.#parts.open().length === 0) this.finish({ type: 'success' });
  }

  /** What happens in a run. Runs themselves begin and end by `begin`, `finish` and `fail`. */
  take(taken: EventEntry): void {
    const speaker = subagentTaskId(taken.event);
    const entry = namedChunk(this.#chunks, taken, speaker);
    const { event, position, occurredAt: at } = entry;
    const isOfSnapshot = readInterlude(event).ofSnapshot !== undefined;
    if (!isOfSnapshot) this.#chunks = chunksAfter(this.#chunks, event, speaker);
    if (endsChunks(event)) this.#endChunks(speaker, at);
    if (kindOf(event.type) === null) {
      const other = otherEvent(event);
      if (other !== null) this.#writeInRun(other, at, position);
      return;
    }
    const inputs = inputsOf(event);
    const [said] = inputs;
    if (said?.kind === 'bracket') this.#takeBracket(said, entry);
    if (said === undefined || !isOfPart(said)) return;
    // A snapshot does not change what the client has: text can't be taken back.
    if (isOfSnapshot && said.input !== 'result' && this.#parts.of[said.kind].about(said.id) !== undefined) return;
    for (const one of inputs) if (isOfPart(one)) this.#takePart(one, entry);
    if (!event.type.endsWith('_CHUNK')) return;
    // Chunks of another part end those before them, of the same speaker.
    const part = this.#parts.of[said.kind].about(said.id);
    this.#endChunks(speaker, at, part);
    if (isOfSnapshot) this.#close(said.kind, said.id, at);
    else if (part !== undefined) part.chunkedBy = speaker;
  }

  #takeBracket({ id, input }: EventInput<'bracket'>, { event, position, occurredAt: at }: EventEntry): void {
    const begun = this.#brackets.about(id);
    const verdict = this.#brackets.verdict(id, input);
    if (verdict === 'ends' && begun !== undefined) {
      this.#brackets.take(id, input);
      this.#write(bracketEnd(begun, event), at);
    }
    // A step or a span may come again, but strict clients accept the id of a subagent once.
    const begins = verdict === 'begins' || (verdict === 'late' && event.type !== 'SUBAGENT_STARTED');
    if (!begins || this.#brackets.crowded !== null) return;
    const start: StrictEvent = { ...otherEvent(event), type: event.type };
    const { messageId, parentSubagentRunId: parent } = start;
    if (typeof messageId === 'string') start.subagentRunId = this.#ownerOf('thought', messageId, event);
    const isParentKnown = this.#brackets.about(bracketId('subagent', String(parent))) !== undefined;
    if (!isParentKnown) delete start.parentSubagentRunId;
    this.#brackets.forget(id);
    this.#brackets.take(id, 'start', start);
    this.#writeInRun(start, at, position);
  }

  #takePart(said: EventInput<PartKind>, entry: EventEntry): void {
    const { kind, id, input } = said;
    const { event, occurredAt: at } = entry;
    if (input === 'result') this.#takeResult(id, entry);
    else if (input === 'end') this.#close(kind, id, at, event);
    else {
      // Also for the arguments of a call that never began.
      const part = this.#parts.of[kind].about(id) ?? this.#open(kind, id, { has: 0, told: 0 }, entry);
      if (event.type.endsWith('_START')) part.told = 0;
      if (input !== 'start') this.#grow(said, part, entry);
    }
  }

  #grow({ kind, id, input }: EventInput<PartKind>, part: Part, entry: EventEntry): void {
    const { event, occurredAt: at } = entry;
    const delta = textOf(event.delta) ?? '';
    const isWhole = readInterlude(event).whole === true;
    const rest = delta.slice(isWhole ? part.has : part.has - part.told);
    part.told = isWhole ? delta.length : part.told + delta.length;
    part.has = Math.max(part.has, part.told);
    // A call with a result is complete.
    if (rest === '' || (kind === 'call' && this.#parts.isAnswered(id))) return;
    // A part that has ended opens again for the rest.
    if (this.#parts.of[kind].verdict(id, input) !== 'continues') this.#open(kind, id, part, entry);
    this.#write(contentOf(kind, id, rest), at);
  }

  #open(kind: PartKind, id: string, part: Part, { event, position, occurredAt: at }: EventEntry): Part {
    const parts = this.#parts.of[kind];
    this.#needRun(position, at);
    if (parts.crowded !== null) this.#close(kind, parts.crowded, at);
    const subagentRunId = this.#ownerOf(kind, id, event);
    Object.assign(part, { owner: subagentRunId ?? null, chunkedBy: undefined });
    parts.forget(id);
    parts.take(id, 'start', part);
    const parentMessageId = kind === 'call' ? this.#parentOf(id, part, event) : undefined;
    this.#write(startOf(kind, id, event, { subagentRunId, parentMessageId }), at);
    return part;
  }

  /** A part belongs to its first speaker, even if another continues it, and a thought to the speaker of its span. */
  #ownerOf(kind: PartKind, id: string, event: AgUiEvent): string | undefined {
    const owner = this.#parts.of[kind].about(id)?.owner;
    if (owner !== undefined) return owner ?? undefined;
    const span = kind === 'thought' ? this.#brackets.about(bracketId('span', id)) : undefined;
    return span === undefined ? (textOf(event.subagentRunId) ?? undefined) : span.subagentRunId;
  }

  /** The message that a call belongs to, unless another speaker said it. */
  #parentOf(id: string, { owner }: Part, event: AgUiEvent): string | undefined {
    const parent = idField(event, 'parentMessageId');
    if (parent === null || parent === id) return undefined;
    const parentOwner = this.#parts.of.text.about(parent)?.owner;
    return parentOwner === undefined || parentOwner === owner ? parent : undefined;
  }

  #close(kind: PartKind, id: string, at?: number, event: AgUiEvent | null = null): void {
    if (this.#parts.of[kind].take(id, 'cut') === 'ends') this.#write(endOf(kind, id, event), at);
  }

  #takeResult(toolCallId: string, { event, position, occurredAt: at }: EventEntry): void {
    this.#close('call', toolCallId, at);
    if (this.#parts.isAnswered(toolCallId)) return;
    this.#parts.knowResult(toolCallId);
    let messageId = idField(event, 'messageId') ?? `${toolCallId}:result`;
    while (this.#parts.hasId(messageId)) messageId = `${messageId}:result`;
    this.#parts.know('text', messageId, 0, 0, null);
    const content = contentText(pick(event, 'content', 'result'));
    this.#writeInRun({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool' }, at, position);
  }

  #endChunks(speaker: string | null, at: number, but?: Part): void {
    for (const { kind, id, part } of this.#parts.open()) {
      if (part !== but && part.chunkedBy === speaker) this.#close(kind, id, at);
    }
  }

  /** Closes everything that is open. @returns the run in which it was; null without one */
  #endRun(at?: number): string | null {
    const { runId } = this;
    if (runId === null) return null;
    for (const { kind, id } of this.#parts.open()) this.#close(kind, id, at);
    for (const [, begun] of this.#brackets.entries().reverse()) this.#write(bracketEnd(begun, null), at);
    this.#brackets = new Entities('bracket', MOST_BRACKETS);
    this.#chunks = undefined;
    this.#runs.take(runId, 'end');
    return runId;
  }

  #needRun(position: string, at?: number): void {
    if (this.runId !== null) return;
    this.begin({ runId: `outside-${position}`, at, interlude: { turn: 'none' }, isOutside: true });
  }

  #writeInRun(event: StrictEvent, at?: number, position = '0'): void {
    this.#needRun(position, at);
    this.#write(event, at);
  }

  #write(event: StrictEvent, at?: number): void {
    const timestamp = at !== undefined && Number.isSafeInteger(at) ? at : undefined;
    const said = Object.entries({ ...event, timestamp }).filter(([, value]) => value !== undefined);
    this.#out.push(Object.fromEntries(said) as StrictEvent);
  }
}
