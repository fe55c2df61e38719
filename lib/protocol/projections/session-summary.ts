import { CUSTOM, contentText, customName, customValue, inputUserMessages, pickNumber, pickTime } from '../event-fields';
import { fieldsOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { COMMAND_EXPIRY_MS, MAX_PREVIEW, MAX_TITLE } from '../limits';
import type { Arrangement, Obligation, SessionAway, SessionSummary, Task } from '../read-models';
import { hasEnded, isActiveState } from '../session-predicates';
import { truncateText } from '../text';
import type { ObligationChange } from './obligations';
import { NO_MEMORY, type ObservationMemory, Observer, reportTurnNow } from './observe';
import { type OpenRequest, OpenRequests } from './open-requests';
import type { Placement } from './placement';
import { resolveState, stateAt } from './resolve-state';
import type { StatusTold } from './status-told';

/** A session's summary, and what its fold remembers between batches. */
export interface SessionFold {
  summary: SessionSummary;
  /** The message that the title comes from, while the title may still grow. */
  titleMessageId: string | null;
  /** The message that `lastText` comes from. */
  textMessageId: string | null;
  pendingRequests: OpenRequest[];
  /** Whether more may be open than `pendingRequests` holds. */
  hasMorePending: boolean;
  observed: ObservationMemory;
  /** Set when nothing is heard of it any more, until something is. */
  away: SessionAway | null;
  /** Set while its runner says that the agent can't be reached; `since` on the runner's clock tells outages apart. */
  unreachable: { since: number; away: SessionAway } | null;
  /** The server's position when the runner was missed, which may be long before the session was told. */
  awayPosition: number | null;
  /** When its open requests are given up, while nothing is heard of it. */
  givesUpAt: number | null;
  /** When the agent's runner last said anything about it, if only that it is still there. */
  seenAt: number | null;
  /** The server's position just before that. */
  seenPosition: number | null;
}

const NOT_ARRANGED: Arrangement = { name: null, pinnedAt: null, archivedAt: null, seenState: null };

/**
 * A session about which nothing is known yet.
 * @param at when it began, on the agent's clock
 * @param heardAt when the server learned of it
 */
export function newSession(id: string, agentId: string, at: number, heardAt: number = at): SessionFold {
  return {
    summary: {
      id,
      agentId,
      title: null,
      state: 'starting',
      stateReason: null,
      evidence: { rule: 15, source: 'session', observedAt: heardAt },
      observations: { session: { observedAt: heardAt, turnId: null, value: null } },
      stateDueAt: null,
      stateSince: heardAt,
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
      lastEventAt: heardAt,
      lastHeardAt: heardAt,
      updatedPosition: '0',
    },
    titleMessageId: null,
    textMessageId: null,
    pendingRequests: [],
    hasMorePending: false,
    observed: NO_MEMORY,
    away: null,
    unreachable: null,
    awayPosition: null,
    givesUpAt: null,
    seenAt: null,
    seenPosition: null,
  };
}

/**
 * A session's summary, fed placement by placement, so that a server can let others run in between. The given fold is not
 * changed; `summary.updatedPosition` is left to the caller, who allots positions.
 */
export class SessionLedger {
  readonly #next: SessionFold;
  readonly #open: OpenRequests;
  readonly #observer: Observer;
  readonly #heardAt: number | null;
  #last: Placement | null = null;
  /** The server has said of a request how it ended, though nothing is heard of the agent. */
  #gaveUp = false;

  /**
   * @param heardAt when the agent itself spoke about the session, on the server's clock; null if somebody else did
   */
  constructor(fold: SessionFold, heardAt: number | null) {
    const observed = { ...NO_MEMORY, ...fold.observed };
    this.#next = { ...fold, observed, summary: { ...fold.summary } };
    this.#open = new OpenRequests(fold.pendingRequests, fold.hasMorePending);
    this.#observer = new Observer(this.#next.summary, observed);
    this.#heardAt = heardAt;
    if (heardAt === null) return;
    this.#next.seenAt = heardAt;
    // A runner that speaks about it is there.
    this.#next.away = null;
  }

  apply(placement: Placement): void {
    if (this.#heardAt !== null) {
      this.#next.summary.lastHeardAt = this.#heardAt;
      this.#observer.endSilence();
    }
    this.#open.apply(placement);
    apply(this.#next, placement, this.#observer);
    this.#last = placement;
    const isEnd = customName(placement.entry.event) === CUSTOM.requestResolved;
    if (isEnd && this.#heardAt === null && this.#next.away !== null) this.#gaveUp = true;
  }

  /** What a status record tells of it, between the placements before and after it. */
  hear(told: StatusTold, at: number): void {
    this.#observer.hear(told, at);
    if (told.isWakeable === null) delete this.#next.summary.wakeable;
    else this.#next.summary.wakeable = told.isWakeable;
    this.#hearOfOutage(told.unreachable, at);
  }

  /** An outage that goes on is the same one, so that nobody is told of it again. */
  #hearOfOutage(told: StatusTold['unreachable'], at: number): void {
    const next = this.#next;
    if (told === null) next.unreachable = null;
    else if (next.unreachable?.since !== told.since) {
      const { since, forMs, reason } = told;
      const { state } = resolveState({ ...next.summary, away: null }, at);
      const away = {
        since: at - forMs,
        lastHeardAt: Math.min(next.summary.lastHeardAt, at),
        agentGoesOn: false,
        isUnreachable: true as const,
        ...(reason === null ? {} : { reason }),
        // a message on its way is no work
        last: told.last ?? (isActiveState(state) ? ('idle' as const) : state),
      };
      next.unreachable = { since, away };
    }
  }

  /** Counts a changed task, and notes one that has failed. */
  tell(before: Task | null, after: Task): void {
    if (after.status === 'failed' && before?.status !== 'failed') {
      const { id, description, exitCode, position } = after;
      const at = this.#last?.entry.receivedAt ?? this.#heardAt ?? this.#next.summary.lastHeardAt;
      this.#next.summary.failedTask = { id, description: truncateText(description, MAX_TITLE), exitCode, position, at };
    }
    this.#next.summary.runningTaskCount += Number(after.status === 'running') - Number(before?.status === 'running');
  }

  /**
   * @param obligations those that the same placements changed
   * @param now the time by which its state is resolved; by default that of the last placement
   * @param usualSilenceMs the 99th percentile of its kind's silences; null unless the state was due
   */
  result(obligations: readonly ObligationChange[], now?: number, usualSilenceMs: number | null = null): SessionFold {
    const next = this.#next;
    next.pendingRequests = this.#open.list();
    next.hasMorePending = this.#open.hasMore;
    const { answerBy } = this.#open;
    if (answerBy === undefined) delete next.summary.answerBy;
    else next.summary.answerBy = answerBy;
    next.summary.owedCount += owedDifference(obligations);
    next.summary.overdueCount += overdueDifference(obligations);
    const at = now ?? this.#last?.entry.receivedAt ?? this.#heardAt ?? next.summary.stateSince;
    next.summary.pendingRequestCount = this.#open.count;
    this.#observer.settle(this.#open, at, next.away !== null);
    this.#observer.cut(at);
    if (next.away !== null && this.#gaveUp && this.#open.first === undefined) {
      next.away = { ...next.away, last: 'needs-input' };
    }
    next.summary.away = hasEnded(next.summary) ? null : (next.away ?? next.unreachable?.away ?? null);
    const { away } = next.summary;
    const isWaiting = away !== null && away.last === undefined && this.#open.count > 0;
    next.givesUpAt = isWaiting ? (next.givesUpAt ?? away.since + COMMAND_EXPIRY_MS) : null;
    const { stateDueAt } = stateAt(next.summary, at);
    const isCue = usualSilenceMs !== null && stateDueAt !== null && stateDueAt <= at;
    if (isCue) this.#observer.noteSilence(at, usualSilenceMs);
    next.summary = stateAt(next.summary, at);
    return next;
  }
}

/** Whether the same report would be a new one: another turn has begun since it was made. */
export function isReportDue({ summary, observed }: SessionFold): boolean {
  return reportTurnNow(summary.turnCount, observed) !== observed.reportTurn;
}

/** How many more replies are owed than before. */
export function owedDifference(changes: readonly ObligationChange[]): number {
  return difference(changes, ({ state }) => state === 'owed');
}

/** How many more are owed for too long than before. */
export function overdueDifference(changes: readonly ObligationChange[]): number {
  return difference(changes, ({ state, isOverdue }) => state === 'owed' && isOverdue);
}

function difference(changes: readonly ObligationChange[], counts: (obligation: Obligation) => boolean): number {
  return changes.reduce(
    (sum, { before, after }) => sum + Number(counts(after)) - Number(before !== null && counts(before)),
    0,
  );
}

/** Whether a reader of the session list would see a difference besides a growing text or a newer time. */
export function differsForReaders(a: SessionFold, b: SessionFold): boolean {
  return differs(a.summary, b.summary, QUIET);
}

const QUIET: ReadonlySet<keyof SessionSummary> = new Set([
  'lastEventAt',
  'lastHeardAt',
  'lastText',
  'stateDueAt',
  'updatedPosition',
]);

function apply(fold: SessionFold, placement: Placement, observer: Observer): void {
  const { entry } = placement;
  const { summary } = fold;
  // What a command writes says nothing of its agent's progress.
  if (customName(entry.event) === CUSTOM.taskOutput) return;
  // and what retention does, nothing of anybody
  if (customName(entry.event) === CUSTOM.taskGoesOn) return;
  if (customName(entry.event) === CUSTOM.removed) {
    const { removed } = readInterlude(entry.event);
    if (removed !== undefined) summary.removed = { ...removed, at: entry.receivedAt };
    return;
  }
  // On the server's clock, even if it was set back: lists are sorted by this, and agents' clocks can't be relied on.
  summary.lastEventAt = entry.receivedAt;
  for (const turn of placement.turns) {
    if (turn.kind === 'none') continue;
    if (turn.state === 'open') {
      const isNew = summary.openTurnId !== turn.id;
      if (isNew) summary.turnCount += 1;
      summary.openTurnId = turn.id;
      summary.lastTurnKind = turn.kind;
      if (isNew) observer.turnBegan(turn.id, entry.receivedAt);
    } else {
      if (summary.openTurnId === turn.id) summary.openTurnId = null;
      observer.turnEnded(turn.id, turn.state, turn.error?.message ?? null, entry.receivedAt);
    }
    observer.claimed(turn);
  }
  observer.see(placement);
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
    // A command that asked no model, such as /clear, names no session.
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
  const told = text.trimStart();
  const line = told.slice(0, MAX_TITLE + 1).split('\n', 1)[0] ?? '';
  fold.summary.title = truncateText(line, MAX_TITLE) || null;
  // The first line is complete once a second one begins, or once it is longer than what is shown.
  fold.titleMessageId = told.length > MAX_TITLE || told.includes('\n') ? null : messageId;
}

function applyCustom(fold: SessionFold, { entry }: Placement): void {
  const value = customValue(entry.event);
  switch (customName(entry.event)) {
    case CUSTOM.lost: {
      const count = Math.max(1, pickNumber(value, 'count') ?? 1);
      fold.summary.lostCount = Math.min(fold.summary.lostCount + count, Number.MAX_SAFE_INTEGER);
      return;
    }
    case CUSTOM.runnerAway:
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
      return;
    case CUSTOM.sessionEnded:
      fold.away = null;
  }
}

/** Whether two objects differ in a field, or one lacks it, apart from the excepted fields. */
export function differs<T extends object>(a: T, b: T, except: ReadonlySet<keyof T>): boolean {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)] as (keyof T)[]);
  for (const field of fields) if (!except.has(field) && a[field] !== b[field]) return true;
  return false;
}
