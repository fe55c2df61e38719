import type { AgUiEvent, RequestOpenedValue, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import {
  CUSTOM,
  customName,
  customValue,
  idField,
  inputUserMessages,
  pickId,
  QUESTION_TOOL,
  subagentTaskId,
} from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { readInterlude, withInterlude } from '@interlude/protocol/interlude-metadata';
import { type EventInput, endsSession, inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import { Entities, type InputOf } from '@interlude/protocol/lifecycle/grammar';
import { type CallBounds, type OpenCall, OpenSession, turnStep } from '@interlude/protocol/lifecycle/open-session';
import { MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS } from '@interlude/protocol/limits';
import { parseArgs } from '@interlude/protocol/projections/item-draft';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { type SnapshotPart, snapshotEvent } from '@interlude/protocol/projections/snapshot-parts';
import { chunksAfter, resolveChunk } from '@interlude/protocol/projections/turns';
import type { TurnPlaces } from '@interlude/protocol/turn-places';
import { type Interrupt, inputResults, interruptsOf, resumptionsOf } from './interrupts';

const FALLBACK_TITLE = 'The agent asks';
const MOST = { mostOpen: MAX_OPEN_REQUESTS, mostEnded: MAX_PENDING_REQUESTS };
/** Maximum user message ids to remember, because later runs repeat them. */
const MAX_USER_MESSAGES = 16;
const MAX_ARGS = 32 * 1024;
/** Limits for calls without a result and calls with a request. A request beyond them has no input. */
const CALLS: CallBounds = { most: 16, mostEnded: 64, maxArgs: MAX_ARGS, maxAllArgs: 2 * MAX_ARGS, stays: isQuestion };

type Outcome = RequestResolvedValue['outcome'];

interface Open {
  id: string;
  /** The tool call that the request is about. */
  callId: string | null;
  kind: RequestOpenedValue['kind'];
  /** True for a derived request, which this class must also resolve. */
  isDerived: boolean;
}

interface DerivedRequest extends Pick<Open, 'id' | 'callId' | 'kind'> {
  call: OpenCall | undefined;
  title: string | null;
  expiresAt?: number | null;
}

/** State between batches, as JSON without empty lists. Its size is bounded by the open calls and requests. */
export interface RequestMemory {
  open?: Open[];
  /** Calls of the open run without a result. */
  calls?: Omit<OpenCall, 'by'>[];
  /** Calls that need no further request, because the agent opened one itself or the request was answered. */
  settled?: readonly string[];
  /** The newest user messages. */
  said?: readonly string[];
  /** A user turn has started without a new user message. */
  isUnsaid?: true;
  /** A user turn is open, and a request from before it may still be open. */
  isUserTurn?: true;
}

/** Number of further events that may be derived in this batch. */
export interface DerivedBudget {
  left: number;
}

/**
 * Tracks a session's requests and derives those that its agent never opens explicitly: the interrupts that end a run,
 * and AskUserQuestion calls that a run leaves without a result. Each adds a `request:opened` right after its event, as
 * if the agent had sent it, and the answer adds a `request:resolved`. So every reader of requests sees them.
 *
 * A request that the agent opens itself, before or after, replaces the derived one.
 */
export class DerivedRequests {
  /** Of the ended requests, keeps only those that were given up. */
  readonly #requests = new Entities<'request', Open>('request', MOST);
  /** State of the turn and of the agent's own calls. A call has ended once it needs no further request. */
  readonly #session: OpenSession;
  #userMessageIds: readonly string[];
  #isUnsaid: boolean;
  #isUserTurn: boolean;
  #chunks: TurnPlaces['chunks'];
  #derived: AgUiEvent[] = [];
  #budget: DerivedBudget = { left: 0 };

  /**
   * @param places the turn placement at the same point as the memory
   * @param passed requests given up by then
   */
  constructor(
    memory: RequestMemory = {},
    places: Pick<TurnPlaces, 'openTurn' | 'chunks'> | null = null,
    passed: readonly string[] = [],
  ) {
    for (const id of passed) this.#giveUp(id);
    for (const request of memory.open ?? []) this.#requests.take(request.id, 'ask', request);
    const turn = places?.openTurn ? { runId: places.openTurn.id, userMessageIds: [] } : null;
    const calls = (memory.calls ?? []).map((call) => ({ ...call, by: null }));
    this.#session = new OpenSession({ turn, tasks: [], requests: [] }, calls, CALLS);
    for (const id of memory.settled ?? []) this.#session.endCall(id);
    this.#userMessageIds = memory.said ?? [];
    this.#isUnsaid = memory.isUnsaid === true;
    this.#isUserTurn = memory.isUserTurn === true;
    this.#chunks = places?.chunks;
  }

  get memory(): RequestMemory {
    const calls = this.#session.calls.map(({ by: _, ...call }) => call);
    const lists = { open: this.#open, calls, settled: this.#session.endedCallIds, said: this.#userMessageIds };
    const kept: RequestMemory = Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
    return {
      ...kept,
      ...(this.#isUnsaid && { isUnsaid: true as const }),
      ...(this.#isUserTurn && { isUserTurn: true as const }),
    };
  }

  /** Open requests that the agent opened itself. */
  get ownIds(): string[] {
    return this.#open.filter((request) => !request.isDerived).map(({ id }) => id);
  }

  /** The agent's own requests that were given up, and that neither the agent nor its runner has mentioned since. */
  get passedIds(): string[] {
    return this.#requests.ended;
  }

  get #open(): Open[] {
    return this.#requests.entries().map(([, request]) => request);
  }

  get #openDerived(): Open[] {
    return this.#open.filter(({ isDerived }) => isDerived);
  }

  get #questions(): OpenCall[] {
    return this.#session.calls.filter(isQuestion);
  }

  /** Marks an event whose request replaces a derived one. Call before `apply`. */
  marked(event: AgUiEvent): AgUiEvent {
    const replaced = customName(event) === CUSTOM.requestOpened ? this.#replacedBy(event) : undefined;
    return replaced === undefined ? event : withInterlude(event, { replaces: replaced.id });
  }

  /**
   * @param isInferred true if the server inferred the event
   * @returns the derived events, to be written right after this one
   */
  apply(
    { entry, parts }: { entry: EventEntry; parts: readonly SnapshotPart[] },
    budget: DerivedBudget,
    isInferred = false,
  ): AgUiEvent[] {
    const by = subagentTaskId(entry.event);
    const event = namedRun(resolveChunk(this.#chunks, entry, by));
    this.#chunks = chunksAfter(this.#chunks, event, by);
    this.#budget = budget;
    this.#derived = [];
    const inputs = inputsOf(event);
    for (const input of inputs) {
      if (input.kind === 'turn') this.#applyTurn(input, event, entry.position);
      else if (input.kind === 'call') this.#applyCall(input, event);
      else if (input.kind === 'request') this.#applyRequest(input, event, isInferred);
      else if (input.kind === 'text' || input.kind === 'thought') this.#applyText(input, event);
    }
    if (event.type === 'MESSAGES_SNAPSHOT') this.#applySnapshot(parts);
    if (customName(event) === CUSTOM.messageDelivery) this.#applyDelivery(customValue(event));
    if (endsSession(event)) {
      this.#breakOff();
      for (const id of this.passedIds) this.#end(id, 'cut');
    }
    this.#follow(event, inputs);
    return this.#derived;
  }

  /** Ignores the end of a call's arguments: until its result arrives, the call may be a question. */
  #follow(event: AgUiEvent, inputs: readonly EventInput[]): void {
    const isOwn = ({ kind, input, by }: EventInput) =>
      kind === 'turn' || (by === null && kind === 'call' && (input === 'start' || input === 'args'));
    this.#session.take(event, inputs.filter(isOwn));
  }

  /** Runs before the session advances: ending the turn closes the calls that requests are derived from. */
  #applyTurn(input: EventInput<'turn'>, event: AgUiEvent, position: string): void {
    const turnId = this.#session.work.turn?.runId ?? null;
    const [, verdict] = turnStep(turnId, input);
    if (input.input === 'begin') this.#startTurn(event, verdict === 'late');
    else if (verdict === 'stray') return;
    else if (event.type !== 'RUN_ERROR' && fieldsOf(event.outcome).type !== 'cancelled') {
      // Even a run whose start is unknown may ask.
      this.#finish(event, verdict === 'ends', { turnId, position });
    } else if (verdict === 'ends') this.#breakOff();
  }

  #startTurn(event: AgUiEvent, isLate: boolean): void {
    let isAnswered = false;
    for (const { interruptId, status } of resumptionsOf(event)) {
      const named = this.#openDerived.filter(({ id }) => interruptId === null || id === interruptId);
      isAnswered ||= named.length > 0;
      for (const request of named) this.#resolve(request, status === 'cancelled' ? status : answerTo(request, status));
    }
    for (const callId of inputResults(event)) this.#applyResult(callId, false);
    const { turn, userMessageIds } = readInterlude(event);
    const isContinuation = event.input === undefined && idField(event, 'parentRunId') !== null;
    const isUserTurn = turn === 'user' || (turn === undefined && !isContinuation);
    if (isUserTurn) {
      const named = [inputUserMessages(event).at(-1)?.id, userMessageIds?.at(-1)];
      for (const id of named) {
        if (id === undefined || this.#userMessageIds.includes(id)) continue;
        isAnswered = true;
        this.#applyUserMessage(id);
      }
    }
    if (isLate) this.#breakOff();
    this.#isUserTurn = isUserTurn && this.#openDerived.length > 0;
    this.#isUnsaid = this.#isUserTurn && !isAnswered;
  }

  #finish(event: AgUiEvent, endsTurn: boolean, at: { turnId: string | null; position: string }): void {
    const interrupts = interruptsOf(event);
    // A user turn that ends without interrupts settles all earlier requests.
    if (endsTurn && this.#isUserTurn && interrupts.length === 0) this.#isUnsaid = true;
    if (endsTurn) this.#isUserTurn = false;
    this.#resume(interrupts);
    for (const [index, interrupt] of interrupts.entries()) {
      this.#interrupt(interrupt, interrupt.id ?? `interrupt:${at.position}:${index}`, at.turnId);
    }
    if (!endsTurn) return;
    for (const call of this.#questions) {
      const { id } = call;
      const hasRequest = this.#open.some((request) => isOfCall(request, id));
      if (!hasRequest) this.#openRequest({ id, callId: id, call, kind: 'question', title: null }, at.turnId);
    }
  }

  #applyText({ kind, id, by }: EventInput<'text' | 'thought'>, event: AgUiEvent): void {
    if (by !== null || !/_(START|CHUNK)$/.test(event.type)) return;
    if (kind === 'thought' || event.role !== 'user') {
      if (!this.#userMessageIds.includes(id)) this.#resume();
    } else if (readInterlude(event).delivery !== 'queued') this.#applyUserMessage(id);
  }

  #applyDelivery(value: Fields): void {
    const id = pickId(value, 'message_id', 'messageId');
    if (id !== null && value.delivery === 'delivered') this.#applyUserMessage(id);
  }

  /** A user message that reached the agent answers all of its earlier requests. */
  #applyUserMessage(id: string): void {
    if (this.#userMessageIds.includes(id)) return;
    this.#remember(id);
    for (const request of this.#openDerived) this.#resolve(request, 'answered');
    for (const call of this.#questions) this.#session.endCall(call.id);
  }

  #remember(messageId: string): void {
    if (this.#userMessageIds.includes(messageId)) return;
    this.#userMessageIds = [...this.#userMessageIds, messageId].slice(-MAX_USER_MESSAGES);
  }

  /** An agent that continues in a turn without a known cause has received its answer. */
  #resume(except: readonly Interrupt[] = []): void {
    if (!this.#isUnsaid) return;
    this.#isUnsaid = false;
    for (const request of this.#openDerived) {
      const isAskedAgain = except.some(({ id, callId }) => request.id === id || isOfCall(request, callId));
      if (!isAskedAgain) this.#resolve(request, 'unknown');
    }
  }

  #applyCall({ id, input, by }: EventInput<'call'>, event: AgUiEvent): void {
    if (input === 'result') this.#applyResult(id, event.isError === true || event.error !== undefined);
    else if (by === null && input === 'start') this.#resume();
  }

  #applyResult(callId: string, isError: boolean): void {
    this.#session.forgetCall(callId);
    for (const request of this.#openDerived) {
      if (request.callId !== callId) continue;
      this.#resolve(request, request.kind === 'permission' && isError ? 'unknown' : answerTo(request, 'resolved'));
    }
  }

  /** A snapshot is history: only parts after a call in the snapshot answer that call. */
  #applySnapshot(parts: readonly SnapshotPart[]): void {
    const before = new Set<string>();
    for (const part of parts) {
      const { kind, id, fields } = part;
      if (kind === 'result') this.#applyResult(id, fields.error !== undefined);
      else if (kind === 'call') {
        before.add(id);
        const event = snapshotEvent(part, null);
        this.#follow(event, inputsOf(event));
      } else if (kind === 'text' && fields.role === 'user') {
        this.#remember(id);
        for (const request of this.#openDerived) {
          if (before.has(request.callId ?? '')) this.#resolve(request, 'answered');
        }
        for (const call of this.#questions) if (before.has(call.id)) this.#session.endCall(call.id);
      }
    }
  }

  /** The agent opens or resolves a request itself. */
  #applyRequest({ id, input }: EventInput<'request'>, event: AgUiEvent, isInferred: boolean): void {
    if (input !== 'ask') {
      const request = this.#open.find((known) => known.id === id);
      if (input === 'pass' && isInferred && request?.isDerived !== true) this.#giveUp(id);
      else this.#end(id, input === 'pass' ? 'cut' : input);
      if (request?.callId != null) this.#session.endCall(request.callId);
      return;
    }
    const replaced = this.#replacedBy(event);
    if (replaced !== undefined) this.#end(replaced.id, 'cut');
    for (const request of this.#derivedLike(event)) this.#resolve(request, 'cancelled');
    const { callId } = namesOf(event);
    const kind = customValue(event).kind === 'question' ? 'question' : 'permission';
    if (this.#requests.isOpen(id) || this.#requests.crowded === null) {
      this.#requests.take(id, 'ask', { id, callId, kind, isDerived: false });
    }
    for (const name of new Set([id, callId ?? id])) this.#session.endCall(name);
  }

  /** Opens the request first if its opening is unknown. */
  #giveUp(id: string): void {
    if (this.#requests.stateOf(id) === 'new') {
      this.#requests.take(id, 'ask', { id, callId: null, kind: 'permission', isDerived: false });
    }
    this.#requests.take(id, 'pass');
  }

  #end(id: string, input: InputOf<'request'>): void {
    this.#requests.take(id, input);
    this.#requests.forget(id);
  }

  #interrupt({ callId, isApproval, message, reason, expiresAt }: Interrupt, id: string, turnId: string | null): void {
    const known = this.#open.filter((one) => one.id === id || (callId !== null && one.callId === callId));
    if (known.some(({ isDerived }) => !isDerived)) return;
    const call = this.#session.calls.find((one) => one.id === callId);
    // The event repeats a known request, but the call's input is no longer known.
    if (known.some((one) => one.id === id) && callId !== null && call === undefined) return;
    // An earlier run may have left the same question open without an interrupt.
    const left = id === callId ? undefined : known.find((one) => one.id === callId);
    if (left !== undefined) this.#resolve(left, 'cancelled');
    const isOfQuestion = call?.name === QUESTION_TOOL || left?.kind === 'question' || !isApproval;
    const title = message ?? (call === undefined ? reason : null);
    this.#openRequest({ id, callId, call, kind: isOfQuestion ? 'question' : 'permission', title, expiresAt }, turnId);
    if (call !== undefined) this.#session.forgetCall(call.id);
  }

  #openRequest({ id, callId, call, kind, title, expiresAt = null }: DerivedRequest, turnId: string | null): void {
    const others = this.#open.filter((one) => one.id !== id);
    if (others.length >= MAX_PENDING_REQUESTS || this.#budget.left <= 0) return;
    this.#requests.take(id, 'ask', { id, callId, kind, isDerived: true });
    const input = call === undefined || call.args === null ? undefined : (parseArgs(call.args) ?? undefined);
    const value: RequestOpenedValue = {
      request_id: id,
      kind,
      tool_use_id: callId ?? undefined,
      tool_name: call?.name,
      title: title ?? (kind === 'question' ? (questionIn(input) ?? FALLBACK_TITLE) : undefined),
      input,
      expires_at: expiresAt ?? undefined,
    };
    this.#derive(CUSTOM.requestOpened, compact(value), turnId);
  }

  #resolve({ id, callId }: Open, outcome: Outcome): void {
    if (this.#budget.left <= 0) return;
    this.#end(id, 'answer');
    if (callId !== null) this.#session.endCall(callId);
    this.#derive(CUSTOM.requestResolved, { request_id: id, outcome }, null);
  }

  #derive(name: string, value: object, turnId: string | null): void {
    this.#budget.left -= 1;
    const metadata = { interlude: { derived: { turnId } } };
    this.#derived.push({ type: 'CUSTOM', name, value, metadata });
  }

  /** The turn was cut off, so none of its requests is still pending. */
  #breakOff(): void {
    for (const request of this.#openDerived) this.#resolve(request, 'cancelled');
    for (const id of this.#requests.open) this.#end(id, 'cut');
    this.#isUnsaid = false;
    this.#isUserTurn = false;
  }

  /** Derived request that the agent's own request replaces; undefined if that one is already open. */
  #replacedBy(event: AgUiEvent): Open | undefined {
    const { id } = namesOf(event);
    const isKnown = this.#open.some((request) => !request.isDerived && request.id === id);
    const matching = isKnown ? [] : this.#derivedLike(event);
    return matching.find((request) => request.id === id) ?? matching[0];
  }

  /** Derived requests about the same question as the agent's own. */
  #derivedLike(event: AgUiEvent): Open[] {
    const { id, callId } = namesOf(event);
    return this.#openDerived.filter((one) => one.id === id || (one.callId !== null && one.callId === (callId ?? id)));
  }
}

function namesOf(event: AgUiEvent): { id: string | null; callId: string | null } {
  const value = customValue(event);
  return { id: pickId(value, 'request_id', 'requestId'), callId: pickId(value, 'tool_use_id', 'toolCallId') };
}

function isOfCall({ id, callId }: Open, other: string | null): boolean {
  return other !== null && (callId === other || id === other);
}

function isQuestion({ name }: OpenCall): boolean {
  return name === QUESTION_TOOL;
}

/** Names an unnamed run after the position of its start. */
function namedRun({ event, position }: EventEntry): AgUiEvent {
  return event.type !== 'RUN_STARTED' || idField(event, 'runId') !== null
    ? event
    : { ...event, runId: `run:${position}` };
}

function answerTo({ kind }: Open, status: 'resolved' | 'denied'): Outcome {
  if (kind === 'question') return 'answered';
  return status === 'denied' ? 'denied' : 'allowed';
}

/** The first question in the arguments of AskUserQuestion. */
function questionIn(input: unknown): string | null {
  return textOf(fieldsOf(listOf(fieldsOf(input).questions)[0]).question);
}
