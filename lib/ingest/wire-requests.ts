import { endsChunks, namedChunk, withChunk, withoutChunk } from '@/lib/projections/chunks';
import type { SnapshotPart } from '@/lib/projections/snapshot-parts';
import { type AgUiEvent, CUSTOM, type RequestOpenedValue, type RequestResolvedValue } from '@/lib/protocol/ag-ui';
import {
  customName,
  customValue,
  idField,
  inputUserMessages,
  pick,
  pickId,
  type StreamedKind,
  streamedKind,
  subagentTaskId,
} from '@/lib/protocol/event-fields';
import { compact, fieldsOf, listOf, textOf } from '@/lib/protocol/fields';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import { Entities } from '@/lib/protocol/lifecycle/entities';
import { MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS } from '@/lib/protocol/limits';
import type { TurnPlaces } from '@/lib/protocol/turn-places';
import { withInterlude } from '@/lib/protocol/with-interlude';
import { type Interrupt, inputResults, interruptsOf, resumptionsOf } from './interrupts';
import { type Call, type CallMemory, inputOf, OpenCalls, QUESTION_TOOL } from './open-calls';
import type { SessionEntry } from './session-batch';

/** Most messages of people that are remembered: a run names them again. */
const MAX_SAID = 16;

type Outcome = RequestResolvedValue['outcome'];

interface Open {
  id: string;
  /** The tool call that it is about. */
  callId: string | null;
  kind: RequestOpenedValue['kind'];
  /** It was derived here, and so is its end. */
  isDerived: boolean;
}

/** What is remembered between batches: JSON, and bounded by what is open. What is empty is left out. */
export interface WireMemory extends CallMemory {
  open?: Open[];
  /** The newest messages of people. */
  said?: string[];
  /** A person's turn has begun without saying anything new of that person. */
  isUnsaid?: true;
  /** A person's turn is open, and before it began something had been asked that may still be open. */
  isUserTurn?: true;
}

/** How many events a request may still derive. */
export interface DerivedRoom {
  left: number;
}

/**
 * The requests of a session that only follow from what its agent says: the interrupts with which a run ends, and calls of
 * AskUserQuestion that a run leaves without a result. Each becomes a `request:opened` right behind its event, as if the
 * agent had said so, and what answers it a `request:resolved`. So everything that knows requests knows these.
 *
 * If the agent tells of a request itself, before or after, that counts, and nothing is derived beside it.
 */
export class WireRequests {
  readonly #requests = new Entities<'request', Open>('request', { mostOpen: MAX_OPEN_REQUESTS, mostEnded: 0 });
  readonly #calls: OpenCalls;
  #said: string[];
  #isUnsaid: boolean;
  #isUserTurn: boolean;
  #runId: string | null;
  #chunks: TurnPlaces['chunks'];
  #derived: AgUiEvent[] = [];
  #room: DerivedRoom = { left: 0 };

  /** Calls of the open run that have no result yet. */
  get calls(): OpenCalls {
    return this.#calls;
  }

  /** @param places those of the same moment as the memory */
  constructor(memory: WireMemory = {}, places: Pick<TurnPlaces, 'openTurn' | 'chunks'> | null = null) {
    for (const request of memory.open ?? []) this.#requests.take(request.id, 'ask', request);
    this.#calls = new OpenCalls(memory);
    this.#said = [...(memory.said ?? [])];
    this.#isUnsaid = memory.isUnsaid === true;
    this.#isUserTurn = memory.isUserTurn === true;
    this.#runId = places?.openTurn?.id ?? null;
    this.#chunks = places?.chunks;
  }

  get #open(): Open[] {
    return this.#requests.entries().map(([, request]) => request);
  }

  /** What the agent itself has asked and waits for. */
  get toldIds(): string[] {
    return this.#open.filter((request) => !request.isDerived).map(({ id }) => id);
  }

  get memory(): WireMemory {
    const lists = { open: this.#open, ...this.#calls.memory, said: this.#said };
    const kept: WireMemory = Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
    return {
      ...kept,
      ...(this.#isUnsaid && { isUnsaid: true as const }),
      ...(this.#isUserTurn && { isUserTurn: true as const }),
    };
  }

  /** To be called before `take`. @returns the event; a request that takes the place of a derived one says so */
  marked(event: AgUiEvent): AgUiEvent {
    const replaced = customName(event) === CUSTOM.requestOpened ? this.#replacedBy(event) : undefined;
    return replaced === undefined ? event : withInterlude(event, { replaces: replaced.id });
  }

  /** @returns the events that follow from this one, to stand right behind it */
  take({ entry, parts }: Pick<SessionEntry, 'entry' | 'parts'>, room: DerivedRoom): readonly AgUiEvent[] {
    const task = subagentTaskId(entry.event);
    const { event } = namedChunk(this.#chunks, entry, task);
    this.#followChunks(event, task);
    const handle = Object.hasOwn(TAKE, event.type) ? TAKE[event.type] : undefined;
    if (handle === undefined) return NOTHING;
    this.#room = room;
    this.#derived = [];
    handle(this, event, { isSubagent: task !== null, position: entry.position, parts });
    return this.#derived;
  }

  startRun(event: AgUiEvent, position: string): void {
    const runId = idField(event, 'runId') ?? `run:${position}`;
    const breaksIn = this.#runId !== null && this.#runId !== runId;
    this.#runId = runId;
    let isSaid = false;
    for (const { interruptId, status } of resumptionsOf(event)) {
      const named = this.#open.filter(({ id, isDerived }) => isDerived && (interruptId === null || id === interruptId));
      isSaid ||= named.length > 0;
      for (const request of named) this.#resolve(request, status === 'cancelled' ? status : answerTo(request, status));
    }
    for (const callId of inputResults(event)) this.endCall(callId, false);
    const { turn, userMessageIds } = interludeOf(event);
    const byItself = event.input === undefined && idField(event, 'parentRunId') !== null;
    const isUserTurn = turn === 'user' || (turn === undefined && !byItself);
    if (isUserTurn) {
      const named = [inputUserMessages(event).at(-1)?.id, userMessageIds?.at(-1)];
      for (const id of named) {
        if (id === undefined || this.knows(id)) continue;
        isSaid = true;
        this.hearUser(id);
      }
    }
    if (breaksIn) this.#breakOff();
    this.#isUserTurn = isUserTurn && this.#open.some(isDerivedOne);
    this.#isUnsaid = this.#isUserTurn && !isSaid;
  }

  finishRun(event: AgUiEvent, position: string): void {
    const turnId = this.#runId;
    const isItsEnd = this.#endsRun(event);
    // Without its beginning, which came too early to be known, a run may still ask.
    if (!isItsEnd && turnId !== null) return;
    if (isItsEnd) this.#runId = null;
    if (fieldsOf(event.outcome).type === 'cancelled') {
      if (isItsEnd) this.#breakOff();
      return;
    }
    const interrupts = interruptsOf(event);
    if (isItsEnd) this.#settleEarlier(interrupts);
    this.goOn(interrupts);
    for (const [index, interrupt] of interrupts.entries()) {
      this.#interrupt(interrupt, interrupt.id ?? `interrupt:${position}:${index}`, turnId);
    }
    if (!isItsEnd) return;
    for (const call of this.#calls.questions) this.#ask(call, turnId);
    this.#calls.clear();
  }

  failRun(event: AgUiEvent): void {
    if (!this.#endsRun(event)) return;
    this.#runId = null;
    this.#breakOff();
  }

  endSession(): void {
    this.#runId = null;
    this.#breakOff();
  }

  /** A person's message has reached the agent, which then waits for nothing that it asked before. */
  hearUser(id: string): void {
    if (this.#said.includes(id)) return;
    this.#said = [...this.#said, id].slice(-MAX_SAID);
    for (const request of this.#open.filter(isDerivedOne)) this.#resolve(request, 'answered');
    this.#calls.settleQuestions(() => true);
  }

  knows(messageId: string): boolean {
    return this.#said.includes(messageId);
  }

  /** The agent says or does something in a turn that did not say how it came about: it has its answer. */
  goOn(except: readonly Interrupt[] = []): void {
    if (!this.#isUnsaid) return;
    this.#isUnsaid = false;
    for (const request of this.#open) {
      const isAskedAgain = except.some(({ id, callId }) => request.id === id || isOfCall(request, callId));
      if (request.isDerived && !isAskedAgain) this.#resolve(request, 'unknown');
    }
  }

  /** A person's turn that ends well and asks for nothing waits for nothing that was asked before it. */
  #settleEarlier(asked: readonly Interrupt[]): void {
    if (this.#isUserTurn && asked.length === 0) this.#isUnsaid = true;
    this.#isUserTurn = false;
  }

  endCall(callId: string, isError: boolean): void {
    this.#calls.end(callId);
    for (const request of this.#open) {
      if (!request.isDerived || request.callId !== callId) continue;
      this.#resolve(request, request.kind === 'permission' && isError ? 'unknown' : answerTo(request, 'resolved'));
    }
  }

  /** The agent tells of a request itself. */
  told(event: AgUiEvent): void {
    const { id, callId } = namesOf(event);
    if (id === null) return;
    const replaced = this.#replacedBy(event);
    const others = this.#derivedLike(event).filter((request) => request !== replaced);
    for (const request of this.#open)
      if (request === replaced || (!request.isDerived && request.id === id)) this.#requests.take(request.id, 'answer');
    for (const request of others) this.#resolve(request, 'cancelled');
    const kind = customValue(event).kind === 'question' ? 'question' : 'permission';
    if (this.#requests.crowded === null) this.#requests.take(id, 'ask', { id, callId, kind, isDerived: false });
    for (const name of new Set([id, callId ?? id])) this.#calls.settle(name);
  }

  toldResolved(event: AgUiEvent): void {
    const { id } = namesOf(event);
    const request = this.#open.find((known) => known.id === id);
    if (request !== undefined) this.#forget(request);
  }

  /** A snapshot is history: only what stands behind a call in it answers that. */
  takeSnapshot(parts: readonly SnapshotPart[]): void {
    const before = new Set<string>();
    for (const { kind, id, text, fields } of parts) {
      if (kind === 'result') this.endCall(id, fields.error !== undefined);
      else if (kind === 'call') {
        before.add(id);
        const event = { type: 'TOOL_CALL_CHUNK', toolCallName: fields.toolCallName, delta: text };
        this.#calls.continue(id, withInterlude(event, { whole: true }));
      } else if (kind === 'text' && fields.role === 'user') {
        if (!this.#said.includes(id)) this.#said = [...this.#said, id].slice(-MAX_SAID);
        for (const request of this.#open) {
          if (request.isDerived && before.has(request.callId ?? '')) this.#resolve(request, 'answered');
        }
        this.#calls.settleQuestions((call) => before.has(call.id));
      }
    }
  }

  #interrupt({ callId, isApproval, message, reason, expiresAt }: Interrupt, id: string, turnId: string | null): void {
    const known = this.#open.filter((one) => one.id === id || (callId !== null && one.callId === callId));
    if (known.some(({ isDerived }) => !isDerived)) return;
    const call = callId === null ? undefined : this.#calls.get(callId);
    // Asked again, in words that don't have the call's input any more.
    if (known.some((one) => one.id === id) && callId !== null && call === undefined) return;
    if (call !== undefined) this.#calls.end(call.id);
    const input = call === undefined ? null : inputOf(call);
    // The same question, which a run before had left open without an interrupt.
    const left = id === callId ? undefined : known.find((one) => one.id === callId);
    if (left !== undefined) this.#resolve(left, 'cancelled');
    const isQuestion = call?.name === QUESTION_TOOL || left?.kind === 'question' || !isApproval;
    const said = message ?? (isQuestion ? questionIn(input) : null) ?? (call === undefined ? reason : null);
    this.#openDerived(turnId, {
      request_id: id,
      kind: isQuestion ? 'question' : 'permission',
      tool_use_id: callId ?? undefined,
      tool_name: call?.name,
      title: said ?? (isQuestion ? UNNAMED : undefined),
      input: input ?? undefined,
      expires_at: expiresAt ?? undefined,
    });
  }

  #ask(call: Call, turnId: string | null): void {
    if (this.#open.some(({ id, callId }) => id === call.id || callId === call.id)) return;
    const input = inputOf(call);
    this.#openDerived(turnId, {
      request_id: call.id,
      kind: 'question',
      tool_use_id: call.id,
      tool_name: call.name,
      title: questionIn(input) ?? UNNAMED,
      input: input ?? undefined,
    });
  }

  #openDerived(turnId: string | null, value: RequestOpenedValue): void {
    const { request_id: id, kind, tool_use_id: callId = null } = value;
    const others = this.#open.filter((one) => one.id !== id);
    if (others.length >= MAX_PENDING_REQUESTS || this.#room.left <= 0) return;
    this.#requests.take(id, 'ask', { id, callId, kind, isDerived: true });
    this.#derive(CUSTOM.requestOpened, compact(value), turnId);
  }

  #resolve(request: Open, outcome: Outcome): void {
    if (this.#room.left <= 0) return;
    this.#forget(request);
    this.#derive(CUSTOM.requestResolved, { request_id: request.id, outcome }, null);
  }

  #forget(request: Open): void {
    this.#requests.take(request.id, 'answer');
    if (request.callId !== null) this.#calls.settle(request.callId);
  }

  #derive(name: string, value: object, turnId: string | null): void {
    this.#room.left -= 1;
    const metadata = { interlude: { derived: { turnId } } };
    this.#derived.push({ type: 'CUSTOM', name, value, metadata });
  }

  /** Nothing is waited for any more, whoever told of it. */
  #breakOff(): void {
    for (const request of this.#open.filter(isDerivedOne)) this.#resolve(request, 'cancelled');
    for (const { id } of this.#open) this.#requests.take(id, 'cut');
    this.#calls.clear();
    this.#isUnsaid = false;
    this.#isUserTurn = false;
  }

  /** The derived request whose place this one takes, unless it has one of its own. */
  #replacedBy(event: AgUiEvent): Open | undefined {
    const { id } = namesOf(event);
    const isKnown = this.#open.some((request) => !request.isDerived && request.id === id);
    const alike = isKnown ? [] : this.#derivedLike(event);
    return alike.find((request) => request.id === id) ?? alike[0];
  }

  /** The derived requests that this one, told by the agent itself, is about. */
  #derivedLike(event: AgUiEvent): Open[] {
    const { id, callId } = namesOf(event);
    return this.#open.filter(
      (request) =>
        request.isDerived && (request.id === id || (request.callId !== null && request.callId === (callId ?? id))),
    );
  }

  #endsRun(event: AgUiEvent): boolean {
    const runId = idField(event, 'runId');
    return this.#runId !== null && (runId === null || runId === this.#runId);
  }

  #followChunks(event: AgUiEvent, task: string | null): void {
    if (endsChunks(event)) this.#chunks = withoutChunk(this.#chunks, task);
    if (!event.type.endsWith('_CHUNK')) return;
    const kind = streamedKind(event.type);
    const id = kind === null ? null : idOf(kind, event);
    if (kind !== null && id !== null) this.#chunks = withChunk(this.#chunks, { task, kind, id });
  }
}

const NOTHING: readonly AgUiEvent[] = [];
const UNNAMED = 'The agent asks';

interface Around {
  isSubagent: boolean;
  position: string;
  parts: readonly SnapshotPart[];
}

type Take = (requests: WireRequests, event: AgUiEvent, around: Around) => void;

const text: Take = (requests, event, { isSubagent }) => {
  const id = idOf('text', event);
  if (isSubagent || id === null) return;
  if (event.role !== 'user') {
    if (!requests.knows(id)) requests.goOn();
  } else if (interludeOf(event).delivery !== 'queued') requests.hearUser(id);
};

const thought: Take = (requests, _, { isSubagent }) => {
  if (!isSubagent) requests.goOn();
};

const call =
  (take: (requests: WireRequests, id: string, event: AgUiEvent) => void): Take =>
  (requests, event, { isSubagent }) => {
    const id = idOf('tool', event);
    if (!isSubagent && id !== null) take(requests, id, event);
  };

const result: Take = (requests, event) => {
  const id = idOf('tool', event);
  if (id !== null) requests.endCall(id, event.isError === true || event.error !== undefined);
};

const TAKE: Record<string, Take | undefined> = {
  RUN_STARTED: (requests, event, { position }) => requests.startRun(event, position),
  RUN_FINISHED: (requests, event, { position }) => requests.finishRun(event, position),
  RUN_ERROR: (requests, event) => requests.failRun(event),
  TEXT_MESSAGE_START: text,
  TEXT_MESSAGE_CHUNK: text,
  REASONING_MESSAGE_START: thought,
  REASONING_MESSAGE_CHUNK: thought,
  TOOL_CALL_START: call((requests, id, event) => {
    requests.goOn();
    requests.calls.begin(id, textOf(event.toolCallName));
  }),
  TOOL_CALL_ARGS: call((requests, id, event) => requests.calls.addArgs(id, event)),
  TOOL_CALL_CHUNK: call((requests, id, event) => {
    requests.goOn();
    requests.calls.continue(id, event);
  }),
  TOOL_CALL_END: (requests, event, around) => {
    if (pick(event, 'result') !== undefined) result(requests, event, around);
  },
  TOOL_CALL_RESULT: result,
  MESSAGES_SNAPSHOT: (requests, _, { parts }) => requests.takeSnapshot(parts),
  CUSTOM: (requests, event) => {
    switch (customName(event)) {
      case CUSTOM.requestOpened:
        requests.told(event);
        return;
      case CUSTOM.requestResolved:
        requests.toldResolved(event);
        return;
      case CUSTOM.messageDelivery: {
        const id = pickId(customValue(event), 'message_id', 'messageId');
        if (id !== null && customValue(event).delivery === 'delivered') requests.hearUser(id);
        return;
      }
      case CUSTOM.sessionEnded:
        requests.endSession();
    }
  },
};

function idOf(kind: StreamedKind, event: AgUiEvent): string | null {
  return idField(event, kind === 'tool' ? 'toolCallId' : 'messageId');
}

function namesOf(event: AgUiEvent): { id: string | null; callId: string | null } {
  const value = customValue(event);
  return { id: pickId(value, 'request_id', 'requestId'), callId: pickId(value, 'tool_use_id', 'toolCallId') };
}

function isDerivedOne({ isDerived }: Open): boolean {
  return isDerived;
}

function isOfCall({ id, callId }: Open, asked: string | null): boolean {
  return asked !== null && (callId === asked || id === asked);
}

function answerTo({ kind }: Open, status: 'resolved' | 'denied'): Outcome {
  if (kind === 'question') return 'answered';
  return status === 'denied' ? 'denied' : 'allowed';
}

/** The first question of the arguments of AskUserQuestion. */
function questionIn(input: unknown): string | null {
  return textOf(fieldsOf(listOf(fieldsOf(input).questions)[0]).question);
}
