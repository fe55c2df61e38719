import type { AgUiEvent } from '../ag-ui';
import type { Observations, Observed, SelfReport } from '../agent-status';
import {
  CUSTOM,
  caption,
  contentText,
  customName,
  customValue,
  idField,
  inputUserMessages,
  pick,
  pickId,
  pickText,
} from '../event-fields';
import { textOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { CALL_SILENCE_MS, PROGRESS_MS, SILENCE_FACTOR } from '../limits';
import type { SessionSummary } from '../read-models';
import { truncateText } from '../text';
import type { TurnHeader } from '../turn-places';
import type { OpenRequests } from './open-requests';
import type { Placement } from './placement';
import type { ReportedStatus } from './reported-status';

/**
 * Assigns turns to people's messages, to decide if a self-report is current: it must follow every message, in the
 * answering turn or a later one. Messages and turns are numbered from 1.
 */
interface MessageMemory {
  /** Number of messages. */
  count: number;
  /** The newest claimed message, and the newest turn with a claim. */
  claimed: { message: number; turn: number };
  /** Unclaimed messages, oldest first, each with its likely answering turn. Bounded. */
  unclaimed: readonly { id: string; message: number; turn: number }[];
  /** Ids of the latest messages, to skip repetitions. Bounded. */
  ids: readonly string[];
}

const MAX_UNCLAIMED = 32;
const MAX_IDS = 64;

const NO_MESSAGES: MessageMemory = {
  count: 0,
  claimed: { message: 0, turn: 0 },
  unclaimed: [],
  ids: [],
};

/**
 * Adds a person's message.
 *
 * @param turn the turn that answers, or probably will
 * @param isClaimed true if that is certain
 */
function withMessage(memory: MessageMemory, id: string, turn: number, isClaimed: boolean): MessageMemory {
  if (memory.ids.includes(id)) return memory;
  const message = memory.count + 1;
  const ids = [...memory.ids, id].slice(-MAX_IDS);
  const unclaimed = [...memory.unclaimed, { id, message, turn }].slice(-MAX_UNCLAIMED);
  const known = { ...memory, count: message, ids, unclaimed };
  return isClaimed ? withClaim(known, [id], turn, false) : known;
}

/**
 * Applies the messages that a turn names. Agents receive messages in order, so the claim includes all earlier ones.
 *
 * @param isAll true if the turn answers no other message, even if it names none
 */
function withClaim(memory: MessageMemory, ids: readonly string[], turn: number, isAll: boolean): MessageMemory {
  const named = memory.unclaimed.findLast(({ id }) => ids.includes(id));
  const answersOthers = isAll || ids.length > 0;
  const left = memory.unclaimed
    .filter(({ message }) => named === undefined || message > named.message)
    .map((one) => (answersOthers && one.turn === turn ? { ...one, turn: turn + 1 } : one));
  const { claimed } = memory;
  const now = { message: Math.max(claimed.message, named?.message ?? 0), turn: Math.max(claimed.turn, turn) };
  return { ...memory, claimed: named === undefined ? claimed : now, unclaimed: left };
}

/** Removes a message that did not reach the agent. */
function withoutMessage(memory: MessageMemory, id: string): MessageMemory {
  return { ...memory, unclaimed: memory.unclaimed.filter((one) => one.id !== id) };
}

/** The turn that answers the last message. */
function answeringTurn({ claimed, unclaimed }: MessageMemory): number {
  return Math.max(claimed.turn, ...unclaimed.map(({ turn }) => turn));
}

/** True if a message is newer than a report that was made in this turn, after `after` messages. */
function isUnanswered({ claimed, unclaimed }: MessageMemory, turn: number, after: number): boolean {
  return [claimed, ...unclaimed].some((one) => one.message > after || turn < one.turn);
}

/** State for assigning a self-report to a turn and recognising a repeated one. */
export interface ObservationMemory {
  messages: MessageMemory;
  /** Ids of the latest turns, newest last, for reports that name their turn. Bounded. */
  turnIds: readonly string[];
  /** The last report: its turn number, its time according to the agent, and the number of messages before it. */
  reportTurn: number;
  reportAt: number | null;
  reportAfter: number;
  /** True once the agent has written text in the open turn. */
  hasSpoken: boolean;
  /** Ids of undelivered messages queued without a runner. Bounded. */
  waiting: readonly string[];
  /** Calls of the open turn without a result, newest last. Bounded. */
  calls: readonly { id: string; name: string }[];
}

export const NO_OBSERVATION_MEMORY: ObservationMemory = {
  messages: NO_MESSAGES,
  turnIds: [],
  reportTurn: 0,
  reportAt: null,
  reportAfter: 0,
  hasSpoken: false,
  waiting: [],
  calls: [],
};

/** Completes a stored memory, which an earlier version may have written. */
export function observationMemory(stored: Partial<ObservationMemory>): ObservationMemory {
  return { ...NO_OBSERVATION_MEMORY, ...stored, messages: { ...NO_MESSAGES, ...stored.messages } };
}

/** The fields of a session's summary that the observer reads and writes. */
type Observable = Pick<SessionSummary, 'observations' | 'openTurnId' | 'turnCount' | 'runningTaskCount'>;

const MAX_TURN_IDS = 16;
const MAX_WAITING = 64;
const MAX_CALLS = 16;
const MAX_CALL_NAME = 60;
/** Minimum interval, in milliseconds, between two observations that an agent without turns is at rest. */
const MIN_REST_INTERVAL_MS = 1_000;

/** Turn number of a report made now. For an agent without turns, a report after a message counts as the answer. */
export function reportTurnNow(turnCount: number, { messages }: ObservationMemory): number {
  return turnCount > 0 ? turnCount : answeringTurn(messages);
}

/**
 * Keeps a session's newest observation from each source (events and status records), on the server's clock.
 * Observations are immutable, so unchanged ones stay the same objects.
 */
export class Observer {
  readonly #summary: Observable;
  readonly #memory: ObservationMemory;
  /** When the record being applied happened, on the server's clock; undefined unless it was received late. */
  lateAt: number | undefined;

  /** @param summary its observations are replaced @param memory changed in place */
  constructor(summary: Observable, memory: ObservationMemory) {
    this.#summary = summary;
    this.#memory = memory;
  }

  /** Call after the summary has counted the turn. */
  turnStarted(id: string, at: number): void {
    this.#memory.hasSpoken = false;
    this.#memory.turnIds = [...this.#memory.turnIds, id].slice(-MAX_TURN_IDS);
    this.#add('turn', { observedAt: at, turnId: id, value: { state: 'running' } });
    this.#memory.calls = [];
    this.#drop('agent', 'process', 'message');
  }

  turnEnded(id: string, state: 'finished' | 'failed' | 'interrupted', message: string | null, at: number): void {
    const value = {
      state,
      ...(message === null ? {} : { message }),
      ...(state === 'finished' && !this.#memory.hasSpoken ? { isSilent: true as const } : {}),
    };
    this.#add('turn', { observedAt: at, turnId: id, value });
    this.#memory.calls = [];
    this.#drop('agent');
  }

  /** Applies the messages that the newest turn names. */
  applyClaim({ userMessageIds, kind }: Pick<TurnHeader, 'userMessageIds' | 'kind'>): void {
    const { messages } = this.#memory;
    if (messages.unclaimed.length === 0) return;
    const { turnCount } = this.#summary;
    this.#memory.messages = withClaim(messages, userMessageIds, turnCount, kind === 'between-run');
  }

  /** Applies an event, except turns, tasks and requests. */
  applyEvent({ entry: { event, receivedAt }, turns, turnId, entityId, role }: Placement): void {
    if (turnId?.startsWith('task:') === true) return;
    switch (event.type) {
      case 'CUSTOM':
        this.#applyCustom(customName(event), customValue(event), receivedAt);
        return;
      case 'RUN_STARTED': {
        const message = inputUserMessages(event).at(-1);
        if (message !== undefined) this.#applyMessage(message.id, true, receivedAt);
        return;
      }
      case 'RUN_ERROR':
        if (!turns.some(({ kind }) => kind !== 'none')) this.#observeFailure(event, receivedAt);
        return;
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_CHUNK':
      case 'TEXT_MESSAGE_CONTENT':
        if (readInterlude(event).ofSnapshot !== undefined) {
          // A snapshot may be the only report of the agent's text in this turn.
          const isInTurn = turnId !== null && turnId === this.#summary.openTurnId && role === 'assistant';
          if (isInTurn && contentText(event.delta).trim() !== '') this.#memory.hasSpoken = true;
          return;
        }
        if (role === 'user') {
          if (entityId === null || event.type === 'TEXT_MESSAGE_CONTENT') return;
          if (readInterlude(event).waits)
            this.#memory.waiting = [...this.#memory.waiting, entityId].slice(-MAX_WAITING);
          this.#applyMessage(entityId, turnId !== null && turnId === this.#summary.openTurnId, receivedAt);
        } else if (role === 'assistant') this.#observeOutput(contentText(event.delta).trim() !== '', receivedAt);
        return;
      case 'TOOL_CALL_RESULT': {
        const id = idField(event, 'toolCallId');
        this.#memory.calls = this.#memory.calls.filter((call) => call.id !== id);
        return;
      }
      case 'TOOL_CALL_START':
      case 'TOOL_CALL_CHUNK':
        this.#applyCall(idField(event, 'toolCallId'), textOf(event.toolCallName));
        if (readInterlude(event).ofSnapshot === undefined) this.#observeOutput(false, receivedAt);
        return;
      case 'REASONING_MESSAGE_START':
      case 'REASONING_MESSAGE_CHUNK':
        if (readInterlude(event).ofSnapshot === undefined) this.#observeOutput(false, receivedAt);
    }
  }

  #applyCall(id: string | null, name: string | null): void {
    if (id === null || name === null || this.#memory.calls.some((call) => call.id === id)) return;
    this.#memory.calls = [...this.#memory.calls, { id, name: truncateText(name, MAX_CALL_NAME) }].slice(-MAX_CALLS);
  }

  /** Ends a silence after output of the agent or one of its commands. */
  endSilence(): void {
    this.#drop('silence', 'cpu');
  }

  /** Records the silence of a working agent. @param usualMs 99th percentile of silences for its kind */
  noteSilence(at: number, usualMs: number): void {
    const call = this.#memory.calls.at(-1)?.name;
    const isUnseen = call !== undefined && this.#summary.observations.cpu === undefined;
    const limitMs = Math.max(isUnseen ? CALL_SILENCE_MS : PROGRESS_MS, SILENCE_FACTOR * usualMs);
    this.#put('silence', { observedAt: at, turnId: null, value: { limitMs, ...(call === undefined ? {} : { call }) } });
  }

  applyStatus(status: ReportedStatus, at: number): void {
    this.#observeProcess(status.process, at);
    this.#observeAgent(status.agent, at);
    this.#observeCpu(status.cpuSeconds, at);
    if (status.report !== null) this.#applyReport(status.report, at);
  }

  /**
   * Call after requests and tasks have changed.
   *
   * @param isAway true while there is no signal from the session: running tasks then stay as last known
   */
  settle(open: OpenRequests, at: number, isAway: boolean): void {
    const { openTurnId, runningTaskCount, observations } = this.#summary;
    const title = open.count === 0 ? null : (open.first?.title ?? 'The agent asks');
    if (title === null) this.#drop('request');
    else if (observations.request?.value !== title) {
      this.#put('request', { observedAt: at, turnId: openTurnId, value: title });
    }
    const { task } = observations;
    // Tasks of an agent without known turns.
    if (runningTaskCount > 0 && observations.turn === undefined) this.#observeRest(at);
    if (runningTaskCount <= 0) {
      if (!isAway) this.#drop('task');
    } else if (task?.value !== runningTaskCount) {
      this.#put('task', { observedAt: task?.observedAt ?? at, turnId: null, value: runningTaskCount });
    }
    this.#checkReport();
  }

  /** Clamps observation times to now, in case the clock was set back. */
  clampToNow(now: number): void {
    const entries = Object.entries(this.#summary.observations) as [keyof Observations, Observed<unknown>][];
    if (entries.every(([, { observedAt }]) => observedAt <= now)) return;
    this.#summary.observations = Object.fromEntries(
      entries.map(([source, one]) => [source, { ...one, observedAt: Math.min(one.observedAt, now) }]),
    ) as unknown as Observations;
  }

  /** Marks a report as outdated unless it was made after the last message, in the answering turn or later. */
  #checkReport(): void {
    const { report } = this.#summary.observations;
    if (report === undefined) return;
    const { messages, reportTurn, reportAfter } = this.#memory;
    const isOutdated = isUnanswered(messages, reportTurn, reportAfter);
    if (isOutdated === (report.isOutdated === true)) return;
    const { isOutdated: _, ...rest } = report;
    this.#put('report', isOutdated ? { ...rest, isOutdated } : rest);
  }

  #applyCustom(name: string | null, value: Record<string, unknown>, at: number): void {
    switch (name) {
      case CUSTOM.sessionStarted:
        this.#drop('process');
        return;
      case CUSTOM.sessionEnded: {
        const code = pick(value, 'exitCode', 'exit_code');
        const known = this.#summary.observations.process;
        const exit = {
          code: typeof code === 'number' ? code : (known?.value.code ?? null),
          signal: caption(pickText(value, 'signal')) ?? known?.value.signal ?? null,
          reason: caption(pickText(value, 'reason')) ?? known?.value.reason ?? null,
        };
        // A second report of the same exit only adds details.
        if (known === undefined) this.#add('process', { observedAt: at, turnId: null, value: exit });
        else this.#put('process', { ...known, value: exit });
        this.#drop('message');
        return;
      }
      case CUSTOM.messageDelivery: {
        const id = pickId(value, 'message_id', 'messageId');
        if (id === null) return;
        const { messages, waiting } = this.#memory;
        this.#memory.waiting = waiting.filter((one) => one !== id);
        if (value.delivery !== 'failed') {
          const isExpected = waiting.includes(id) && messages.unclaimed.some((one) => one.id === id);
          if (isExpected && value.delivery === 'delivered') this.#observeMessage(at);
          return;
        }
        if (id === messages.ids.at(-1)) this.#drop('message');
        this.#memory.messages = withoutMessage(messages, id);
      }
    }
  }

  #applyMessage(id: string, isInTurn: boolean, at: number): void {
    const { messages } = this.#memory;
    const { turnCount } = this.#summary;
    this.#memory.messages = withMessage(messages, id, isInTurn ? turnCount : turnCount + 1, isInTurn);
    const isNew = !isInTurn && this.#memory.messages !== messages;
    if (isNew && !this.#memory.waiting.includes(id)) this.#observeMessage(at);
  }

  #observeMessage(at: number): void {
    this.#put('message', { observedAt: at, turnId: null, value: null });
  }

  #observeOutput(isText: boolean, at: number): void {
    if (isText) this.#memory.hasSpoken = true;
    this.#drop('message');
    this.#observeRest(at);
  }

  /** Records that an agent without known turns is at rest after its output, at most once per MIN_REST_INTERVAL_MS. */
  #observeRest(at: number): void {
    const { turn } = this.#summary.observations;
    if (turn !== undefined && turn.turnId !== null) return;
    if (turn?.value.state === 'finished' && Math.abs(at - turn.observedAt) < MIN_REST_INTERVAL_MS) return;
    this.#add('turn', { observedAt: at, turnId: null, value: { state: 'finished' } });
  }

  /** Records the failure of an unknown run: of an agent without turns, or with a lost start. */
  #observeFailure(event: AgUiEvent, at: number): void {
    const { openTurnId, observations } = this.#summary;
    const runId = idField(event, 'runId');
    // The error concerns another run than the open one, or an ended run.
    if (openTurnId !== null || (runId !== null && this.#memory.turnIds.includes(runId))) return;
    const message = caption(textOf(event.message)) ?? 'The run failed.';
    this.#add('turn', {
      observedAt: at,
      turnId: observations.turn?.turnId ?? null,
      value: { state: 'failed', message },
    });
    this.#drop('agent', 'message');
  }

  #observeProcess(process: ReportedStatus['process'], at: number): void {
    if (process === 'there') this.#drop('process');
    else if (process !== null && this.#summary.observations.process === undefined) {
      this.#add('process', { observedAt: at, turnId: null, value: process });
    }
  }

  #observeAgent(seen: ReportedStatus['agent'], at: number): void {
    if (seen === undefined) return;
    const { agent, turn } = this.#summary.observations;
    const byTurn = turn === undefined ? null : turn.value.state === 'running' ? 'running' : 'still';
    if (seen === (agent?.value ?? byTurn)) return;
    // The turn's own observation already covers this activity.
    if (seen === 'running' && byTurn === 'running' && agent?.value !== 'still') this.#drop('agent');
    else this.#add('agent', { observedAt: at, turnId: this.#summary.openTurnId, value: seen });
  }

  #observeCpu(seconds: number | null, at: number): void {
    if (seconds === null || seconds === this.#summary.observations.cpu?.value) return;
    this.#put('cpu', { observedAt: at, turnId: null, value: seconds });
    this.#drop('silence');
  }

  /** Applies a self-report. Runners repeat it in each record, so only a changed or newer one counts. */
  #applyReport({ value, turnId, at: madeAt }: NonNullable<ReportedStatus['report']>, at: number): void {
    const memory = this.#memory;
    const { report } = this.#summary.observations;
    const { turnCount, openTurnId } = this.#summary;
    const isSame = report !== undefined && isSameReport(report.value, value);
    const named = this.#turnNumber(turnId);
    const turn = named ?? reportTurnNow(turnCount, memory);
    const isOld = named !== null && named < turnCount;
    // A late record: the agent has reported in a later turn since.
    if (report !== undefined && named !== null && named < memory.reportTurn) return;
    if (isSame && (madeAt === null ? turn === memory.reportTurn : madeAt === memory.reportAt)) return;
    memory.reportTurn = turn;
    memory.reportAt = madeAt;
    memory.reportAfter = memory.messages.count;
    const ofTurn = turnId ?? openTurnId ?? this.#summary.observations.turn?.turnId ?? null;
    this.#add('report', { observedAt: at, turnId: ofTurn, value });
    // Only a later report of the agent itself outweighs the failure of its turn.
    const { turn: seen } = this.#summary.observations;
    if (value.state === 'complete' && seen?.value.state === 'failed' && !isOld) {
      this.#put('turn', { ...seen, value: { ...seen.value, isOutweighed: true } });
    }
    if ((!isSame || madeAt !== null) && !isOld) this.#drop('message');
  }

  /** The number of a turn; null if unknown. */
  #turnNumber(turnId: string | null): number | null {
    const { turnIds } = this.#memory;
    const at = turnId === null ? -1 : turnIds.lastIndexOf(turnId);
    return at === -1 ? null : this.#summary.turnCount - (turnIds.length - 1 - at);
  }

  /** Puts an observation from the record being applied. */
  #add<Source extends keyof Observations>(source: Source, observed: NonNullable<Observations[Source]>): void {
    const { lateAt } = this;
    this.#put(source, lateAt === undefined ? observed : { ...observed, occurredAt: lateAt });
  }

  #put<Source extends keyof Observations>(source: Source, observed: Observations[Source]): void {
    this.#summary.observations = { ...this.#summary.observations, [source]: observed };
  }

  #drop(...sources: Exclude<keyof Observations, 'session'>[]): void {
    if (sources.every((source) => this.#summary.observations[source] === undefined)) return;
    const rest = { ...this.#summary.observations };
    for (const source of sources) delete rest[source];
    this.#summary.observations = rest;
  }
}

function isSameReport(a: SelfReport, b: SelfReport): boolean {
  return a.state === b.state && a.summary === b.summary && a.link === b.link;
}
