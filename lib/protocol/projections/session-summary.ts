import type { CommandType } from '../commands';
import { CUSTOM, contentText, customName, customValue, inputUserMessages, pickNumber, pickTime } from '../event-fields';
import { fieldsOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { COMMAND_EXPIRY_MS, MAX_PREVIEW, MAX_TITLE } from '../limits';
import type { Arrangement, Obligation, SessionAway, SessionSummary, Task } from '../read-models';
import { hasEnded, isActiveState } from '../session-predicates';
import { truncateText } from '../text';
import { isLate } from '../time';
import type { ObligationChange } from './obligations';
import { NO_OBSERVATION_MEMORY, type ObservationMemory, Observer, observationMemory, reportTurnNow } from './observe';
import { type OpenRequest, OpenRequests } from './open-requests';
import type { Placement } from './placement';
import type { ReportedStatus } from './reported-status';
import { resolveState, stateAt } from './resolve-state';

/** A session's summary with the state of its fold between batches. */
export interface SessionFold {
  summary: SessionSummary;
  /** Source message of the title, while the title may still grow. */
  titleMessageId: string | null;
  /** Source message of `lastText`. */
  textMessageId: string | null;
  pendingRequests: OpenRequest[];
  /** True if more requests may be open than `pendingRequests` holds. */
  hasMorePending: boolean;
  observed: ObservationMemory;
  /** Set while there is no signal from the session. */
  away: SessionAway | null;
  /** Set while the runner reports the agent as unreachable. `since`, on the runner's clock, identifies the outage. */
  unreachable: { since: number; away: SessionAway } | null;
  /** The server's position when it noticed the runner's absence, which may be long before this session's event. */
  awayPosition: number | null;
  /** Time at which the server gives up the open requests of an absent runner, epoch milliseconds. */
  givesUpAt: number | null;
  /** Last record from the agent's runner about this session, heartbeats included. Epoch milliseconds. */
  seenAt: number | null;
  /** The server's position just before `seenAt`. */
  seenPosition: number | null;
}

const NOT_ARRANGED: Arrangement = { name: null, pinnedAt: null, archivedAt: null, seenState: null };

/**
 * A new session without any events.
 *
 * @param at start, epoch milliseconds on the agent's clock
 * @param receivedAt time of receipt, epoch milliseconds on the server's clock
 */
export function newSession(id: string, agentId: string, at: number, receivedAt: number = at): SessionFold {
  return {
    summary: {
      id,
      agentId,
      title: null,
      state: 'starting',
      stateReason: null,
      evidence: { rule: 15, source: 'session', observedAt: receivedAt },
      observations: { session: { observedAt: receivedAt, turnId: null, value: null } },
      stateDueAt: null,
      stateSince: receivedAt,
      openTurnId: null,
      lastTurnKind: null,
      turnCount: 0,
      runningTaskCount: 0,
      pendingRequestCount: 0,
      lostCount: 0,
      quarantinedCount: 0,
      owedCount: 0,
      overdueCount: 0,
      insightCount: 0,
      otherFailureCount: 0,
      lastText: null,
      away: null,
      arrangement: NOT_ARRANGED,
      wakeRule: null,
      startedAt: at,
      lastEventAt: receivedAt,
      lastHeardAt: receivedAt,
      updatedPosition: '0',
    },
    titleMessageId: null,
    textMessageId: null,
    pendingRequests: [],
    hasMorePending: false,
    observed: NO_OBSERVATION_MEMORY,
    away: null,
    unreachable: null,
    awayPosition: null,
    givesUpAt: null,
    seenAt: null,
    seenPosition: null,
  };
}

/**
 * Folds a session's summary placement by placement, so the server can yield in between. Copies the given fold. The caller
 * sets `summary.updatedPosition`.
 */
export class SessionLedger {
  readonly #next: SessionFold;
  readonly #open: OpenRequests;
  readonly #observer: Observer;
  readonly #receivedAt: number | null;
  readonly #skewMs: number;
  #last: Placement | null = null;
  /** True once the server has resolved a request of an absent agent. */
  #hasGivenUp = false;

  /**
   * @param receivedAt time of receipt, epoch milliseconds; null if the events don't come from the agent's runner
   * @param skewMs milliseconds that the events' clock is ahead of the server's
   */
  constructor(fold: SessionFold, receivedAt: number | null, skewMs = 0) {
    const observed = observationMemory(fold.observed);
    this.#next = { ...fold, observed, summary: { ...fold.summary } };
    this.#open = new OpenRequests(fold.pendingRequests, fold.hasMorePending);
    this.#observer = new Observer(this.#next.summary, observed);
    this.#receivedAt = receivedAt;
    this.#skewMs = skewMs;
    if (receivedAt === null) return;
    this.#next.seenAt = receivedAt;
    // Any record of the runner ends its absence.
    this.#next.away = null;
  }

  apply(placement: Placement): void {
    if (this.#receivedAt !== null) {
      this.#next.summary.lastHeardAt = this.#receivedAt;
      this.#observer.endSilence();
    }
    this.#open.apply(placement);
    this.#noteTime(placement.entry);
    apply(this.#next, placement, this.#observer);
    this.#last = placement;
    const isEnd = customName(placement.entry.event) === CUSTOM.requestResolved;
    if (isEnd && this.#receivedAt === null && this.#next.away !== null) this.#hasGivenUp = true;
  }

  /** Applies a status record in its place between placements. */
  applyStatus(status: ReportedStatus, at: number, occurredAt = at): void {
    this.#noteTime({ occurredAt, receivedAt: at });
    this.#observer.applyStatus(status, at);
    if (status.isWakeable === null) delete this.#next.summary.wakeable;
    else this.#next.summary.wakeable = status.isWakeable;
    this.#applyOutage(status.unreachable, at);
  }

  #noteTime({ occurredAt, receivedAt }: Pick<Placement['entry'], 'occurredAt' | 'receivedAt'>): void {
    const happenedAt = occurredAt - this.#skewMs;
    this.#observer.lateAt = isLate(happenedAt, receivedAt) ? happenedAt : undefined;
  }

  /** Keeps a continuing outage, so it is not announced again. */
  #applyOutage(outage: ReportedStatus['unreachable'], at: number): void {
    const next = this.#next;
    if (outage === null) next.unreachable = null;
    else if (next.unreachable?.since !== outage.since) {
      const { since, durationMs, reason } = outage;
      const { state } = resolveState({ ...next.summary, away: null }, at);
      const away = {
        since: at - durationMs,
        lastHeardAt: Math.min(next.summary.lastHeardAt, at),
        agentGoesOn: false,
        isUnreachable: true as const,
        ...(reason === null ? {} : { reason }),
        // A message in transit is not work.
        last: outage.last ?? (isActiveState(state) ? ('idle' as const) : state),
      };
      next.unreachable = { since, away };
    }
  }

  /** Updates the counts for a changed task and records a failed one. */
  countTask(before: Task | null, after: Task): void {
    if (after.status === 'failed' && before?.status !== 'failed') {
      const { id, description, exitCode, position } = after;
      const at = this.#last?.entry.receivedAt ?? this.#receivedAt ?? this.#next.summary.lastHeardAt;
      this.#next.summary.failedTask = { id, description: truncateText(description, MAX_TITLE), exitCode, position, at };
    }
    this.#next.summary.runningTaskCount += Number(after.status === 'running') - Number(before?.status === 'running');
  }

  /**
   * @param obligations the obligations changed by the same placements
   * @param now time for resolving the state, epoch milliseconds; defaults to that of the last placement
   * @param usualSilenceMs 99th percentile of silences for the agent's kind; null unless the state is due
   */
  result(obligations: readonly ObligationChange[], now?: number, usualSilenceMs: number | null = null): SessionFold {
    const next = this.#next;
    next.pendingRequests = this.#open.list();
    next.hasMorePending = this.#open.hasMore;
    const { answerBy, first } = this.#open;
    if (answerBy === undefined) delete next.summary.answerBy;
    else next.summary.answerBy = answerBy;
    const { tool = null, line = null } = first?.preview ?? {};
    const request = first === undefined || line === null ? undefined : { kind: first.kind, tool, line };
    if (request === undefined) delete next.summary.request;
    // An equal object would announce the session again.
    else if (JSON.stringify(request) !== JSON.stringify(next.summary.request)) next.summary.request = request;
    next.summary.owedCount += openDelta(obligations);
    next.summary.overdueCount += overdueDelta(obligations);
    const at = now ?? this.#last?.entry.receivedAt ?? this.#receivedAt ?? next.summary.stateSince;
    next.summary.pendingRequestCount = this.#open.count;
    this.#observer.settle(this.#open, at, next.away !== null);
    this.#observer.clampToNow(at);
    if (next.away !== null && this.#hasGivenUp && this.#open.first === undefined) {
      next.away = { ...next.away, last: 'needs-input' };
    }
    next.summary.away = hasEnded(next.summary) ? null : (next.away ?? next.unreachable?.away ?? null);
    const { away } = next.summary;
    const isWaiting = away !== null && away.last === undefined && this.#open.count > 0;
    next.givesUpAt = isWaiting ? (next.givesUpAt ?? away.since + COMMAND_EXPIRY_MS) : null;
    const { stateDueAt } = stateAt(next.summary, at);
    const isSilenceDue = usualSilenceMs !== null && stateDueAt !== null && stateDueAt <= at;
    if (isSilenceDue) this.#observer.noteSilence(at, usualSilenceMs);
    next.summary = stateAt(next.summary, at);
    return next;
  }
}

/** True if a repeated report counts as new, because another turn has started since. */
export function isReportDue({ summary, observed }: SessionFold): boolean {
  return reportTurnNow(summary.turnCount, observationMemory(observed)) !== observed.reportTurn;
}

/** Change in the number of pending replies. */
export function openDelta(changes: readonly ObligationChange[]): number {
  return countDelta(changes, ({ state }) => state === 'owed');
}

/** Change in the number of overdue replies. */
export function overdueDelta(changes: readonly ObligationChange[]): number {
  return countDelta(changes, ({ state, isOverdue }) => state === 'owed' && isOverdue);
}

function countDelta(changes: readonly ObligationChange[], counts: (obligation: Obligation) => boolean): number {
  return changes.reduce(
    (sum, { before, after }) => sum + Number(counts(after)) - Number(before !== null && counts(before)),
    0,
  );
}

/** True if the session list changes visibly, apart from growing text and newer times. */
export function differsForReaders(a: SessionFold, b: SessionFold): boolean {
  return hasDifference(a.summary, b.summary, UNANNOUNCED);
}

const UNANNOUNCED: ReadonlySet<keyof SessionSummary> = new Set([
  'lastEventAt',
  'lastOccurredAt',
  'lastHeardAt',
  'lastText',
  'stateDueAt',
  'updatedPosition',
]);

function apply(fold: SessionFold, placement: Placement, observer: Observer): void {
  const { entry } = placement;
  const { summary } = fold;
  // Command output and retention do not show progress of the agent.
  if (customName(entry.event) === CUSTOM.taskOutput) return;
  if (customName(entry.event) === CUSTOM.taskGoesOn) return;
  if (customName(entry.event) === CUSTOM.removed) {
    const { removed } = readInterlude(entry.event);
    if (removed !== undefined) summary.removed = { ...removed, at: entry.receivedAt };
    return;
  }
  // Lists sort by the server's clock, even if it was set back, because agents' clocks are unreliable.
  summary.lastEventAt = entry.receivedAt;
  if (isLate(entry.occurredAt, entry.receivedAt)) summary.lastOccurredAt = entry.occurredAt;
  else delete summary.lastOccurredAt;
  for (const turn of placement.turns) {
    if (turn.kind === 'none') continue;
    if (turn.state === 'open') {
      const isNew = summary.openTurnId !== turn.id;
      if (isNew) summary.turnCount += 1;
      summary.openTurnId = turn.id;
      summary.lastTurnKind = turn.kind;
      if (isNew) {
        delete summary.isEnding;
        observer.turnStarted(turn.id, entry.receivedAt);
      }
    } else {
      if (summary.openTurnId === turn.id) summary.openTurnId = null;
      observer.turnEnded(turn.id, turn.state, turn.error?.message ?? null, entry.receivedAt);
    }
    observer.applyClaim(turn);
  }
  observer.applyEvent(placement);
  if (placement.turnId?.startsWith('task:') !== true) applyText(fold, placement);
  if (entry.event.type === 'CUSTOM') applyCustom(fold, placement);
}

function applyText(fold: SessionFold, { entry, entityId, role }: Placement): void {
  const { summary } = fold;
  const { event } = entry;
  if (event.type === 'RUN_STARTED') {
    const [message] = inputUserMessages(event);
    if (message !== undefined && summary.title === null) setTitle(fold, message.id, message.text);
    return;
  }
  if (event.type === 'RUN_FINISHED' && fieldsOf(event.result).terminalReason === 'local_command') {
    // A local command such as /clear does not make a title.
    const isTitle = readInterlude(event).userMessageIds?.includes(fold.titleMessageId ?? '') === true;
    if (isTitle) [summary.title, fold.titleMessageId] = [null, null];
    return;
  }
  if (!/^TEXT_MESSAGE_(CONTENT|CHUNK)$/.test(event.type)) return;
  const delta = contentText(event.delta);
  const whole = readInterlude(event).whole === true;
  if (role === 'user') {
    if (summary.title === null) setTitle(fold, entityId, delta);
    else if (fold.titleMessageId === entityId) setTitle(fold, entityId, whole ? delta : summary.title + delta);
  } else if (role === 'assistant') {
    const same = fold.textMessageId === entityId && !whole;
    const text = same ? (summary.lastText ?? '') : '';
    if (!same || text.length < MAX_PREVIEW) summary.lastText = truncateText(text + delta, MAX_PREVIEW);
    fold.textMessageId = entityId;
  }
}

function setTitle(fold: SessionFold, messageId: string | null, text: string): void {
  const content = text.trimStart();
  const line = content.slice(0, MAX_TITLE + 1).split('\n', 1)[0] ?? '';
  fold.summary.title = truncateText(line, MAX_TITLE) || null;
  // The title is complete with a second line or at its maximum length.
  fold.titleMessageId = content.length > MAX_TITLE || content.includes('\n') ? null : messageId;
}

const END = 'session.end' satisfies CommandType;

function applyCustom(fold: SessionFold, { entry }: Placement): void {
  const value = customValue(entry.event);
  switch (customName(entry.event)) {
    case CUSTOM.lost: {
      const count = Math.max(1, pickNumber(value, 'count') ?? 1);
      fold.summary.lostCount = Math.min(fold.summary.lostCount + count, Number.MAX_SAFE_INTEGER);
      return;
    }
    case CUSTOM.runnerAway:
      delete fold.summary.isEnding;
      fold.away = {
        since: pickTime(value, 'since') ?? entry.occurredAt,
        lastHeardAt: Math.max(pickTime(value, 'last_heard_at') ?? 0, fold.summary.lastHeardAt),
        agentGoesOn: value.agent_goes_on === true,
        ...(value.is_silent === true ? { isSilent: true as const } : {}),
      };
      fold.awayPosition = pickNumber(value, 'since_position');
      return;
    case CUSTOM.runnerBack:
      fold.away = null;
      // The command may have been acknowledged in between, and a later runner ignores it.
      delete fold.summary.isEnding;
      return;
    case CUSTOM.commandQueued:
    case CUSTOM.commandDone:
      if (value.type === END && !hasEnded(fold.summary)) fold.summary.isEnding = true;
      return;
    case CUSTOM.commandFailed:
      if (value.type === END) delete fold.summary.isEnding;
      return;
    case CUSTOM.sessionEnded:
      fold.away = null;
      delete fold.summary.isEnding;
  }
}

/** True if two objects differ in a field other than the excepted ones. */
export function hasDifference<T extends object>(a: T, b: T, except: ReadonlySet<keyof T>): boolean {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)] as (keyof T)[]);
  for (const field of fields) if (!except.has(field) && a[field] !== b[field]) return true;
  return false;
}
