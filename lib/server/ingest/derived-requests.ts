import { type AgUiEvent, CUSTOM, type RequestOpenedValue, type RequestResolvedValue } from '@interlude/protocol/ag-ui';
import {
  customName,
  customValue,
  idField,
  inputUserMessages,
  pickId,
  subagentTaskId,
} from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { interludeOf } from '@interlude/protocol/interlude-metadata';
import { Entities } from '@interlude/protocol/lifecycle/entities';
import { type EventInput, endsSession, inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import type { InputOf } from '@interlude/protocol/lifecycle/grammar';
import { type CallBounds, type OpenCall, OpenSession, turnStep } from '@interlude/protocol/lifecycle/open-session';
import { MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS } from '@interlude/protocol/limits';
import { chunksAfter, namedChunk } from '@interlude/protocol/projections/chunks';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { parsedArgs } from '@interlude/protocol/projections/parsed-args';
import { type SnapshotPart, snapshotEvent } from '@interlude/protocol/projections/snapshot-parts';
import { QUESTION_TOOL } from '@interlude/protocol/request-options';
import type { TurnPlaces } from '@interlude/protocol/turn-places';
import { withInterlude } from '@interlude/protocol/with-interlude';
import { type Interrupt, inputResults, interruptsOf, resumptionsOf } from './interrupts';

const UNNAMED = 'The agent asks';
const MOST = { mostOpen: MAX_OPEN_REQUESTS, mostEnded: MAX_PENDING_REQUESTS };
/** Most messages of people that are remembered: a run names them again. */
const MAX_SAID = 16;
const MAX_ARGS = 32 * 1024;
/** Calls of a run, until they have a result, and calls that were asked about. Beyond the bounds a request has no input. */
const CALLS: CallBounds = { most: 16, mostEnded: 64, maxArgs: MAX_ARGS, maxAllArgs: 2 * MAX_ARGS, stays: isQuestion };

type Outcome = RequestResolvedValue['outcome'];

interface Open {
  id: string;
  /** The tool call that the request is about. */
  callId: string | null;
  kind: RequestOpenedValue['kind'];
  /** The request was derived here, and so is its end. */
  isDerived: boolean;
}

/** A request to derive. */
interface Asked extends Pick<Open, 'id' | 'callId' | 'kind'> {
  call: OpenCall | undefined;
  title: string | null;
  expiresAt?: number | null;
}

/** State between batches: JSON, bounded by what is open, without what is empty. */
export interface RequestMemory {
  open?: Open[];
  /** Calls of the open run that have no result yet. */
  calls?: Omit<OpenCall, 'by'>[];
  /** Calls about which nothing more is to be asked: their agent opened the request itself, or it was answered. */
  settled?: readonly string[];
  /** The newest messages of people. */
  said?: readonly string[];
  /** A person's turn has begun without a new message of that person. */
  isUnsaid?: true;
  /** A person's turn is open, and before it began something had been asked that may still be open. */
  isUserTurn?: true;
}

/** Number of events that may still be derived. */
export interface DerivedRoom {
  left: number;
}

/**
 * The requests of a session, and the events that follow for those its agent never names as such: the interrupts with which
 * a run ends, and calls of AskUserQuestion that a run leaves without a result. Each derives a `request:opened` right behind
 * its event, as if the agent had sent it, and its answer a `request:resolved`. So all readers of requests know these, too.
 *
 * A request that the agent opens itself, before or after, counts instead, and nothing is derived beside it.
 */
export class DerivedRequests {
  /** Of those that have ended only the ones that were given up are kept. */
  readonly #requests = new Entities<'request', Open>('request', MOST);
  /** Its turn, and the agent's own calls. A call has ended once nothing more is to be asked about it. */
  readonly #session: OpenSession;
  #said: readonly string[];
  #isUnsaid: boolean;
  #isUserTurn: boolean;
  #chunks: TurnPlaces['chunks'];
  #derived: AgUiEvent[] = [];
  #room: DerivedRoom = { left: 0 };

  /**
   * @param places those of the same moment as the memory
   * @param passed requests that were given up by then
   */
  constructor(
    memory: RequestMemory = {},
    places: Pick<TurnPlaces, 'openTurn' | 'chunks'> | null = null,
    passed: readonly string[] = [],
  ) {
    for (const id of passed) this.#pass(id);
    for (const request of memory.open ?? []) this.#requests.take(request.id, 'ask', request);
    const turn = places?.openTurn ? { runId: places.openTurn.id, userMessageIds: [] } : null;
    const calls = (memory.calls ?? []).map((call) => ({ ...call, by: null }));
    this.#session = new OpenSession({ turn, tasks: [], requests: [] }, calls, CALLS);
    for (const id of memory.settled ?? []) this.#session.endCall(id);
    this.#said = memory.said ?? [];
    this.#isUnsaid = memory.isUnsaid === true;
    this.#isUserTurn = memory.isUserTurn === true;
    this.#chunks = places?.chunks;
  }

  get memory(): RequestMemory {
    const calls = this.#session.calls.map(({ by: _, ...call }) => call);
    const lists = { open: this.#open, calls, settled: this.#session.endedCallIds, said: this.#said };
    const kept: RequestMemory = Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
    return {
      ...kept,
      ...(this.#isUnsaid && { isUnsaid: true as const }),
      ...(this.#isUserTurn && { isUserTurn: true as const }),
    };
  }

  /** Open requests of the agent itself. */
  get ownIds(): string[] {
    return this.#open.filter((request) => !request.isDerived).map(({ id }) => id);
  }

  /** Requests of the agent itself that were given up, and about which neither it nor its runner has said anything since. */
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

  /** To be called before `take`. @returns the event, marked if its request takes the place of a derived one */
  marked(event: AgUiEvent): AgUiEvent {
    const replaced = customName(event) === CUSTOM.requestOpened ? this.#replacedBy(event) : undefined;
    return replaced === undefined ? event : withInterlude(event, { replaces: replaced.id });
  }

  /**
   * @param isGuess the event is the server's inference
   * @returns the events that follow from this one, to stand right behind it
   */
  take(
    { entry, parts }: { entry: EventEntry; parts: readonly SnapshotPart[] },
    room: DerivedRoom,
    isGuess = false,
  ): AgUiEvent[] {
    const by = subagentTaskId(entry.event);
    const event = namedRun(namedChunk(this.#chunks, entry, by));
    this.#chunks = chunksAfter(this.#chunks, event, by);
    this.#room = room;
    this.#derived = [];
    const inputs = inputsOf(event);
    for (const said of inputs) {
      if (said.kind === 'turn') this.#takeTurn(said, event, entry.position);
      else if (said.kind === 'call') this.#takeCall(said, event);
      else if (said.kind === 'request') this.#takeRequest(said, event, isGuess);
      else if (said.kind === 'text' || said.kind === 'thought') this.#takeWords(said, event);
    }
    if (event.type === 'MESSAGES_SNAPSHOT') this.#takeSnapshot(parts);
    if (customName(event) === CUSTOM.messageDelivery) this.#takeDelivery(customValue(event));
    if (endsSession(event)) {
      this.#breakOff();
      for (const id of this.passedIds) this.#end(id, 'cut');
    }
    this.#follow(event, inputs);
    return this.#derived;
  }

  /** The end of a call's arguments is not followed: until its result comes, the call may be a question. */
  #follow(event: AgUiEvent, inputs: readonly EventInput[]): void {
    const isOwn = ({ kind, input, by }: EventInput) =>
      kind === 'turn' || (by === null && kind === 'call' && (input === 'start' || input === 'args'));
    this.#session.take(event, inputs.filter(isOwn));
  }

  /** To be called before the session moves on: the end of a turn asks about calls that are open until then. */
  #takeTurn(said: EventInput<'turn'>, event: AgUiEvent, position: string): void {
    const turnId = this.#session.work.turn?.runId ?? null;
    const [, verdict] = turnStep(turnId, said);
    if (said.input === 'begin') this.#begin(event, verdict === 'late');
    else if (verdict === 'stray') return;
    else if (event.type !== 'RUN_ERROR' && fieldsOf(event.outcome).type !== 'cancelled') {
      // A run whose beginning came too early to be known may still ask.
      this.#finish(event, verdict === 'ends', { turnId, position });
    } else if (verdict === 'ends') this.#breakOff();
  }

  #begin(event: AgUiEvent, breaksIn: boolean): void {
    let isSaid = false;
    for (const { interruptId, status } of resumptionsOf(event)) {
      const named = this.#openDerived.filter(({ id }) => interruptId === null || id === interruptId);
      isSaid ||= named.length > 0;
      for (const request of named) this.#resolve(request, status === 'cancelled' ? status : answerTo(request, status));
    }
    for (const callId of inputResults(event)) this.#takeResult(callId, false);
    const { turn, userMessageIds } = interludeOf(event);
    const byItself = event.input === undefined && idField(event, 'parentRunId') !== null;
    const isUserTurn = turn === 'user' || (turn === undefined && !byItself);
    if (isUserTurn) {
      const named = [inputUserMessages(event).at(-1)?.id, userMessageIds?.at(-1)];
      for (const id of named) {
        if (id === undefined || this.#said.includes(id)) continue;
        isSaid = true;
        this.#hearUser(id);
      }
    }
    if (breaksIn) this.#breakOff();
    this.#isUserTurn = isUserTurn && this.#openDerived.length > 0;
    this.#isUnsaid = this.#isUserTurn && !isSaid;
  }

  #finish(event: AgUiEvent, isItsEnd: boolean, at: { turnId: string | null; position: string }): void {
    const interrupts = interruptsOf(event);
    // A person's turn that ends well and asks for nothing waits for nothing that was asked before it.
    if (isItsEnd && this.#isUserTurn && interrupts.length === 0) this.#isUnsaid = true;
    if (isItsEnd) this.#isUserTurn = false;
    this.#goOn(interrupts);
    for (const [index, interrupt] of interrupts.entries()) {
      this.#interrupt(interrupt, interrupt.id ?? `interrupt:${at.position}:${index}`, at.turnId);
    }
    if (!isItsEnd) return;
    for (const call of this.#questions) {
      const { id } = call;
      const isAsked = this.#open.some((request) => isOfCall(request, id));
      if (!isAsked) this.#ask({ id, callId: id, call, kind: 'question', title: null }, at.turnId);
    }
  }

  #takeWords({ kind, id, by }: EventInput<'text' | 'thought'>, event: AgUiEvent): void {
    if (by !== null || !/_(START|CHUNK)$/.test(event.type)) return;
    if (kind === 'thought' || event.role !== 'user') {
      if (!this.#said.includes(id)) this.#goOn();
    } else if (interludeOf(event).delivery !== 'queued') this.#hearUser(id);
  }

  #takeDelivery(value: Fields): void {
    const id = pickId(value, 'message_id', 'messageId');
    if (id !== null && value.delivery === 'delivered') this.#hearUser(id);
  }

  /** A person's message has reached the agent, which then waits for nothing that it asked before. */
  #hearUser(id: string): void {
    if (this.#said.includes(id)) return;
    this.#remember(id);
    for (const request of this.#openDerived) this.#resolve(request, 'answered');
    for (const call of this.#questions) this.#session.endCall(call.id);
  }

  #remember(messageId: string): void {
    if (!this.#said.includes(messageId)) this.#said = [...this.#said, messageId].slice(-MAX_SAID);
  }

  /** The agent goes on in a turn that did not say how it came about: it has its answer. */
  #goOn(except: readonly Interrupt[] = []): void {
    if (!this.#isUnsaid) return;
    this.#isUnsaid = false;
    for (const request of this.#openDerived) {
      const isAskedAgain = except.some(({ id, callId }) => request.id === id || isOfCall(request, callId));
      if (!isAskedAgain) this.#resolve(request, 'unknown');
    }
  }

  #takeCall({ id, input, by }: EventInput<'call'>, event: AgUiEvent): void {
    if (input === 'result') this.#takeResult(id, event.isError === true || event.error !== undefined);
    else if (by === null && input === 'start') this.#goOn();
  }

  #takeResult(callId: string, isError: boolean): void {
    this.#session.forgetCall(callId);
    for (const request of this.#openDerived) {
      if (request.callId !== callId) continue;
      this.#resolve(request, request.kind === 'permission' && isError ? 'unknown' : answerTo(request, 'resolved'));
    }
  }

  /** A snapshot is history: a call in it is answered only by what follows the call there. */
  #takeSnapshot(parts: readonly SnapshotPart[]): void {
    const before = new Set<string>();
    for (const part of parts) {
      const { kind, id, fields } = part;
      if (kind === 'result') this.#takeResult(id, fields.error !== undefined);
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

  /** A request that the agent opens or resolves itself. */
  #takeRequest({ id, input }: EventInput<'request'>, event: AgUiEvent, isGuess: boolean): void {
    if (input !== 'ask') {
      const request = this.#open.find((known) => known.id === id);
      if (input === 'pass' && isGuess && request?.isDerived !== true) this.#pass(id);
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

  /** A given-up request was asked, even if its opening is not known. */
  #pass(id: string): void {
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
    // Asked again, in words that don't have the call's input any more.
    if (known.some((one) => one.id === id) && callId !== null && call === undefined) return;
    // The same question, which a run before had left open without an interrupt.
    const left = id === callId ? undefined : known.find((one) => one.id === callId);
    if (left !== undefined) this.#resolve(left, 'cancelled');
    const isOfQuestion = call?.name === QUESTION_TOOL || left?.kind === 'question' || !isApproval;
    const title = message ?? (call === undefined ? reason : null);
    this.#ask({ id, callId, call, kind: isOfQuestion ? 'question' : 'permission', title, expiresAt }, turnId);
    if (call !== undefined) this.#session.forgetCall(call.id);
  }

  #ask({ id, callId, call, kind, title, expiresAt = null }: Asked, turnId: string | null): void {
    const others = this.#open.filter((one) => one.id !== id);
    if (others.length >= MAX_PENDING_REQUESTS || this.#room.left <= 0) return;
    this.#requests.take(id, 'ask', { id, callId, kind, isDerived: true });
    const input = call === undefined || call.args === null ? undefined : (parsedArgs(call.args) ?? undefined);
    const value: RequestOpenedValue = {
      request_id: id,
      kind,
      tool_use_id: callId ?? undefined,
      tool_name: call?.name,
      title: title ?? (kind === 'question' ? (questionIn(input) ?? UNNAMED) : undefined),
      input,
      expires_at: expiresAt ?? undefined,
    };
    this.#derive(CUSTOM.requestOpened, compact(value), turnId);
  }

  #resolve({ id, callId }: Open, outcome: Outcome): void {
    if (this.#room.left <= 0) return;
    this.#end(id, 'answer');
    if (callId !== null) this.#session.endCall(callId);
    this.#derive(CUSTOM.requestResolved, { request_id: id, outcome }, null);
  }

  #derive(name: string, value: object, turnId: string | null): void {
    this.#room.left -= 1;
    const metadata = { interlude: { derived: { turnId } } };
    this.#derived.push({ type: 'CUSTOM', name, value, metadata });
  }

  /** The turn broke off: nothing that was asked is waited for any more. */
  #breakOff(): void {
    for (const request of this.#openDerived) this.#resolve(request, 'cancelled');
    for (const id of this.#requests.open) this.#end(id, 'cut');
    this.#isUnsaid = false;
    this.#isUserTurn = false;
  }

  /** The derived request whose place the agent's own takes, unless it has one already. */
  #replacedBy(event: AgUiEvent): Open | undefined {
    const { id } = namesOf(event);
    const isKnown = this.#open.some((request) => !request.isDerived && request.id === id);
    const alike = isKnown ? [] : this.#derivedLike(event);
    return alike.find((request) => request.id === id) ?? alike[0];
  }

  /** Derived requests for the same question as the agent's own. */
  #derivedLike(event: AgUiEvent): Open[] {
    const { id, callId } = namesOf(event);
    return this.#openDerived.filter((one) => one.id === id || (one.callId !== null && one.callId === (callId ?? id)));
  }
}

function namesOf(event: AgUiEvent): { id: string | null; callId: string | null } {
  const value = customValue(event);
  return { id: pickId(value, 'request_id', 'requestId'), callId: pickId(value, 'tool_use_id', 'toolCallId') };
}

function isOfCall({ id, callId }: Open, asked: string | null): boolean {
  return asked !== null && (callId === asked || id === asked);
}

function isQuestion({ name }: OpenCall): boolean {
  return name === QUESTION_TOOL;
}

/** A run without a name is named after the place of its beginning. */
function namedRun({ event, position }: EventEntry): AgUiEvent {
  return event.type !== 'RUN_STARTED' || idField(event, 'runId') !== null
    ? event
    : { ...event, runId: `run:${position}` };
}

function answerTo({ kind }: Open, status: 'resolved' | 'denied'): Outcome {
  if (kind === 'question') return 'answered';
  return status === 'denied' ? 'denied' : 'allowed';
}

/** The first question of the arguments of AskUserQuestion. */
function questionIn(input: unknown): string | null {
  return textOf(fieldsOf(listOf(fieldsOf(input).questions)[0]).question);
}
