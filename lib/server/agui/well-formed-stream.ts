import type { AgUiEvent, ServedRun } from '@interlude/protocol/ag-ui';
import { contentText, idField, pick, subagentTaskId } from '@interlude/protocol/event-fields';
import { textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { bracketId, type EventInput, inputsOf, kindOf } from '@interlude/protocol/lifecycle/event-inputs';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { chunksAfter, interruptsChunks, resolveChunk } from '@interlude/protocol/projections/turns';
import type { Chunked } from '@interlude/protocol/turn-places';
import {
  bracketEnd,
  type ClientEvent,
  clientEvent,
  type Dialect,
  type Outcome,
  partContent,
  partEnd,
  partStart,
} from './client-events';
import { type ClientParts, isOfPart, type Part, type PartKind } from './client-parts';

/** `interlude` becomes the run's `metadata.interlude`. */
interface NewRun {
  runId: string;
  parentRunId?: string | null;
  at?: number;
  interlude?: ServedRun;
  /** True for a run of events between the agent's runs. */
  isOutside?: boolean;
}

/** Limit per run, beyond which steps, subagents and spans are dropped. */
const MAX_BRACKETS = { mostOpen: 10_000, mostEnded: 10_000 };

/**
 * Turns any events into a stream that strict clients accept. Follows the lifecycle grammar: a part without a start gets
 * one, open parts and brackets end before their run, and events between runs get a run. Pure.
 *
 * Never repeats text that the client already has: of a text that arrives whole, only the rest is written.
 *
 * Ordering: events keep the order of the calls; `drain` returns those since its last call.
 * Failure: a meaningless event (a text without an id, the end of a part that never began) is dropped; an event of an
 * unknown type becomes RAW.
 *
 * @see `@ag-ui/client` 0.0.59 and 1.0.0, `verifyEvents`
 */
export class WellFormedStream {
  readonly #threadId: string;
  readonly #dialect: Dialect;
  readonly #parts: ClientParts;
  readonly #runs = new Entities<'turn', { isOutside: boolean }>('turn', { mostOpen: 1, mostEnded: 0 });
  /** Open steps, subagents and spans of the run, each with its first event. */
  #brackets = new Entities<'bracket', ClientEvent>('bracket', MAX_BRACKETS);
  #hasFailed = false;
  #chunks: readonly Chunked[] | undefined;
  #written: ClientEvent[] = [];

  constructor(options: { threadId: string; dialect: Dialect; parts: ClientParts }) {
    this.#threadId = options.threadId;
    this.#dialect = options.dialect;
    this.#parts = options.parts;
  }

  /** Null between runs. */
  get runId(): string | null {
    return this.#runs.open[0] ?? null;
  }

  /** True while the run of events between the agent's runs is open. */
  get isOutside(): boolean {
    return this.#runs.about(this.runId ?? '')?.isOutside === true;
  }

  /** @returns the events written since the last call */
  drain(): ClientEvent[] {
    const written = this.#written;
    this.#written = [];
    return written;
  }

  /** Begins a run. First ends an open one, as cancelled if it is an agent's. */
  begin({ runId, parentRunId, at, interlude, isOutside = false }: NewRun): void {
    this.finish({ type: this.isOutside ? 'success' : 'cancelled' }, at);
    this.#runs.take(runId, 'begin', { isOutside });
    this.#hasFailed = false;
    const metadata = interlude === undefined ? undefined : { interlude };
    const started = { threadId: this.#threadId, runId, parentRunId: parentRunId ?? undefined, metadata };
    this.#emit({ type: 'RUN_STARTED', ...started }, at);
  }

  finish(outcome: Outcome, at?: number, result?: unknown): void {
    const runId = this.#endRun(at);
    if (runId === null) return;
    const isOld = this.#dialect === '0.0.59' && outcome.type === 'cancelled';
    if (isOld) this.#emit({ type: 'CUSTOM', name: 'interlude:run-cancelled', value: { runId } }, at);
    const written = isOld ? { type: 'success' } : outcome;
    const ended = { threadId: this.#threadId, runId, outcome: written, result: result ?? undefined };
    this.#emit({ type: 'RUN_FINISHED', ...ended }, at);
  }

  /** Without a run, the client gets only the error. */
  fail(message: string, code?: string | null, at?: number): void {
    // After an error, only a run may follow.
    if (this.#hasFailed) this.#needRun('error', at);
    this.#endRun(at);
    this.#hasFailed = true;
    this.#emit({ type: 'RUN_ERROR', message, code: code ?? undefined }, at);
  }

  custom(name: string, value: unknown, at?: number): void {
    this.#emitInRun({ type: 'CUSTOM', name, value: value ?? null }, at);
  }

  activity(messageId: string, activityType: string, content: object, at?: number): void {
    this.#emitInRun({ type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content, replace: true }, at);
  }

  /** Replaces all messages of the client. The caller has added them to `parts`. */
  messages(messages: readonly object[], at?: number): void {
    this.#emitInRun({ type: 'MESSAGES_SNAPSHOT', messages }, at);
  }

  /** Ends a run between the agent's runs once its parts are complete. */
  settle(): void {
    if (this.isOutside && this.#parts.open().length === 0) this.finish({ type: 'success' });
  }

  /** Writes an event of a run. `begin`, `finish` and `fail` write the runs themselves. */
  write(original: EventEntry): void {
    const speaker = subagentTaskId(original.event);
    const entry = resolveChunk(this.#chunks, original, speaker);
    const { event, position, occurredAt: at } = entry;
    const isOfSnapshot = readInterlude(event).ofSnapshot !== undefined;
    if (!isOfSnapshot) this.#chunks = chunksAfter(this.#chunks, event, speaker);
    if (interruptsChunks(event)) this.#endChunks(speaker, at);
    if (kindOf(event.type) === null) {
      const other = clientEvent(event);
      if (other !== null) this.#emitInRun(other, at, position);
      return;
    }
    const inputs = inputsOf(event);
    const [input] = inputs;
    if (input?.kind === 'bracket') this.#writeBracket(input, entry);
    if (input === undefined || !isOfPart(input)) return;
    // A snapshot does not change parts that the client has, because text can't be withdrawn.
    if (isOfSnapshot && input.input !== 'result' && this.#parts.of[input.kind].about(input.id) !== undefined) return;
    for (const one of inputs) if (isOfPart(one)) this.#writePart(one, entry);
    if (!event.type.endsWith('_CHUNK')) return;
    // A speaker's chunk for another part ends the previous part.
    const part = this.#parts.of[input.kind].about(input.id);
    this.#endChunks(speaker, at, part);
    if (isOfSnapshot) this.#close(input.kind, input.id, at);
    else if (part !== undefined) part.chunkedBy = speaker;
  }

  #writeBracket({ id, input }: EventInput<'bracket'>, { event, position, occurredAt: at }: EventEntry): void {
    const first = this.#brackets.about(id);
    const verdict = this.#brackets.verdict(id, input);
    if (verdict === 'ends' && first !== undefined) {
      this.#brackets.take(id, input);
      this.#emit(bracketEnd(first, event), at);
    }
    // Steps and spans may repeat, but strict clients accept the id of a subagent once.
    const begins = verdict === 'begins' || (verdict === 'late' && event.type !== 'SUBAGENT_STARTED');
    if (!begins || this.#brackets.crowded !== null) return;
    const start: ClientEvent = { ...clientEvent(event), type: event.type };
    const { messageId, parentSubagentRunId: parent } = start;
    if (typeof messageId === 'string') start.subagentRunId = this.#ownerOf('thought', messageId, event);
    const isParentKnown = this.#brackets.about(bracketId('subagent', String(parent))) !== undefined;
    if (!isParentKnown) delete start.parentSubagentRunId;
    this.#brackets.forget(id);
    this.#brackets.take(id, 'start', start);
    this.#emitInRun(start, at, position);
  }

  #writePart(partInput: EventInput<PartKind>, entry: EventEntry): void {
    const { kind, id, input } = partInput;
    const { event, occurredAt: at } = entry;
    if (input === 'result') this.#writeResult(id, entry);
    else if (input === 'end') this.#close(kind, id, at, event);
    else {
      // Also handles arguments of a call without a start.
      const part = this.#parts.of[kind].about(id) ?? this.#open(kind, id, { clientLength: 0, logLength: 0 }, entry);
      if (event.type.endsWith('_START')) part.logLength = 0;
      if (input !== 'start') this.#grow(partInput, part, entry);
    }
  }

  #grow({ kind, id, input }: EventInput<PartKind>, part: Part, entry: EventEntry): void {
    const { event, occurredAt: at } = entry;
    const delta = textOf(event.delta) ?? '';
    const isWhole = readInterlude(event).whole === true;
    const rest = delta.slice(isWhole ? part.clientLength : part.clientLength - part.logLength);
    part.logLength = isWhole ? delta.length : part.logLength + delta.length;
    part.clientLength = Math.max(part.clientLength, part.logLength);
    // A call with a result is complete.
    if (rest === '' || (kind === 'call' && this.#parts.isAnswered(id))) return;
    // An ended part reopens for the remaining text.
    if (this.#parts.of[kind].verdict(id, input) !== 'continues') this.#open(kind, id, part, entry);
    this.#emit(partContent(kind, id, rest), at);
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
    this.#emit(partStart(kind, id, event, { subagentRunId, parentMessageId }), at);
    return part;
  }

  /** The first speaker owns a part, even if another continues it; a thought belongs to the speaker of its span. */
  #ownerOf(kind: PartKind, id: string, event: AgUiEvent): string | undefined {
    const owner = this.#parts.of[kind].about(id)?.owner;
    if (owner !== undefined) return owner ?? undefined;
    const span = kind === 'thought' ? this.#brackets.about(bracketId('span', id)) : undefined;
    return span === undefined ? (textOf(event.subagentRunId) ?? undefined) : span.subagentRunId;
  }

  /** The parent message of a call, unless another speaker owns that message. */
  #parentOf(id: string, { owner }: Part, event: AgUiEvent): string | undefined {
    const parent = idField(event, 'parentMessageId');
    if (parent === null || parent === id) return undefined;
    const parentOwner = this.#parts.of.text.about(parent)?.owner;
    return parentOwner === undefined || parentOwner === owner ? parent : undefined;
  }

  #close(kind: PartKind, id: string, at?: number, event: AgUiEvent | null = null): void {
    if (this.#parts.of[kind].take(id, 'cut') === 'ends') this.#emit(partEnd(kind, id, event), at);
  }

  #writeResult(toolCallId: string, { event, position, occurredAt: at }: EventEntry): void {
    this.#close('call', toolCallId, at);
    if (this.#parts.isAnswered(toolCallId)) return;
    this.#parts.addResult(toolCallId);
    let messageId = idField(event, 'messageId') ?? `${toolCallId}:result`;
    while (this.#parts.hasId(messageId)) messageId = `${messageId}:result`;
    this.#parts.add('text', messageId, 0, 0, null);
    const content = contentText(pick(event, 'content', 'result'));
    this.#emitInRun({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool' }, at, position);
  }

  #endChunks(speaker: string | null, at: number, but?: Part): void {
    for (const { kind, id, part } of this.#parts.open()) {
      if (part !== but && part.chunkedBy === speaker) this.#close(kind, id, at);
    }
  }

  /** Closes everything open. @returns the id of the run; null without one */
  #endRun(at?: number): string | null {
    const { runId } = this;
    if (runId === null) return null;
    for (const { kind, id } of this.#parts.open()) this.#close(kind, id, at);
    for (const [, start] of this.#brackets.entries().reverse()) this.#emit(bracketEnd(start, null), at);
    this.#brackets = new Entities('bracket', MAX_BRACKETS);
    this.#chunks = undefined;
    this.#runs.take(runId, 'end');
    return runId;
  }

  #needRun(position: string, at?: number): void {
    if (this.runId !== null) return;
    this.begin({ runId: `outside-${position}`, at, interlude: { turn: 'none' }, isOutside: true });
  }

  #emitInRun(event: ClientEvent, at?: number, position = '0'): void {
    this.#needRun(position, at);
    this.#emit(event, at);
  }

  #emit(event: ClientEvent, at?: number): void {
    const timestamp = at !== undefined && Number.isSafeInteger(at) ? at : undefined;
    const fields = Object.entries({ ...event, timestamp }).filter(([, value]) => value !== undefined);
    this.#written.push(Object.fromEntries(fields) as ClientEvent);
  }
}
