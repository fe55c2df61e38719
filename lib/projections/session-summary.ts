import { CUSTOM } from '@/lib/protocol/ag-ui';
import { cutText } from '@/lib/protocol/cut-text';
import type { SessionAway, SessionState, SessionSummary, Task } from '@/lib/protocol/read-models';
import { differs } from './differs';
import {
  caption,
  contentText,
  customName,
  customValue,
  inputUserMessages,
  pick,
  pickNumber,
  pickText,
  pickTime,
} from './event-fields';
import { interludeOf } from './interlude-metadata';
import type { ObligationChange } from './obligations';
import { type OpenRequest, OpenRequests } from './open-requests';
import type { Placement } from './placement';

const TITLE_LENGTH = 120;
const PREVIEW_LENGTH = 240;

/** A session's summary, and what its fold remembers between batches. */
export interface SessionFold {
  summary: SessionSummary;
  /** The message that the title comes from, while the title may still grow. */
  titleMessageId: string | null;
  /** The message that `lastText` comes from. */
  textMessageId: string | null;
  pendingRequests: OpenRequest[];
  /** How many more are open than `pendingRequests` holds. */
  morePending: number;
  lastTurn: { state: 'finished' | 'failed' | 'interrupted'; message: string | null } | null;
  /** `at`: when the server heard of it. */
  ended: { failed: boolean; reason: string | null; at: number } | null;
  /** Set when its runner has gone, until the session is heard of again. */
  away: SessionAway | null;
  /** The server's position when the runner was missed, which may be long before the session was told. */
  awayPosition: number | null;
  /** When the agent's runner last said anything about it, if only that it is still there. */
  seenAt: number | null;
  /** The server's position just before that. */
  seenPosition: number | null;
}

/** A session about which nothing is known yet. */
export function newSession(id: string, agentId: string, at: number): SessionFold {
  return {
    summary: {
      id,
      agentId,
      title: null,
      state: 'idle',
      stateReason: null,
      stateSince: at,
      openTurnId: null,
      lastTurnKind: null,
      turnCount: 0,
      runningTaskCount: 0,
      pendingRequestCount: 0,
      lostCount: 0,
      quarantinedCount: 0,
      owedCount: 0,
      insightCount: 0,
      otherFailureCount: 0,
      lastText: null,
      away: null,
      startedAt: at,
      lastEventAt: at,
      lastHeardAt: at,
      updatedPosition: '0',
    },
    titleMessageId: null,
    textMessageId: null,
    pendingRequests: [],
    morePending: 0,
    lastTurn: null,
    ended: null,
    away: null,
    awayPosition: null,
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
  readonly #heardAt: number | null;
  #last: Placement | null = null;

  /**
   * @param heardAt when the agent itself spoke about the session, on the server's clock; null if somebody else did
   */
  constructor(fold: SessionFold, heardAt: number | null) {
    this.#next = { ...fold, summary: { ...fold.summary } };
    this.#open = new OpenRequests(fold.pendingRequests, fold.morePending);
    this.#heardAt = heardAt;
    if (heardAt === null) return;
    this.#next.seenAt = heardAt;
    // A runner that speaks about it is there.
    this.#next.away = null;
  }

  apply(placement: Placement): void {
    if (this.#heardAt !== null) this.#next.summary.lastHeardAt = this.#heardAt;
    this.#open.apply(placement);
    apply(this.#next, placement, this.#open);
    this.#last = placement;
  }

  /** Counts a task that the placements changed. */
  tell(before: Task | null, after: Task): void {
    this.#next.summary.runningTaskCount += Number(after.status === 'running') - Number(before?.status === 'running');
  }

  /** @param obligations those that the same placements changed */
  result(obligations: readonly ObligationChange[]): SessionFold {
    const next = this.#next;
    next.pendingRequests = this.#open.list();
    next.morePending = this.#open.more;
    const { answerBy } = this.#open;
    if (answerBy === undefined) delete next.summary.answerBy;
    else next.summary.answerBy = answerBy;
    next.summary.owedCount += owedDifference(obligations);
    enterState(next, this.#open, this.#last?.entry.receivedAt ?? this.#heardAt ?? next.summary.stateSince);
    return next;
  }
}

/** Whether something is going on in it whose end its runner would have to tell. */
export function isUnderWay({ summary, ended }: SessionFold): boolean {
  if (ended !== null) return false;
  return summary.openTurnId !== null || summary.runningTaskCount > 0 || summary.pendingRequestCount > 0;
}

/** How many more replies are owed than before. */
export function owedDifference(changes: readonly ObligationChange[]): number {
  return changes.reduce(
    (sum, { before, after }) => sum + Number(after.state === 'owed') - Number(before?.state === 'owed'),
    0,
  );
}

/** Whether a reader of the session list would see a difference besides a growing text or a newer time. */
export function differsForReaders(a: SessionFold, b: SessionFold): boolean {
  return differs(a.summary, b.summary, QUIET);
}

const QUIET: ReadonlySet<keyof SessionSummary> = new Set(['lastEventAt', 'lastHeardAt', 'lastText', 'updatedPosition']);

function apply(fold: SessionFold, placement: Placement, open: OpenRequests): void {
  const { entry } = placement;
  const { summary } = fold;
  // On the server's clock, even if it was set back: lists are sorted by this, and agents' clocks can't be relied on.
  summary.lastEventAt = entry.receivedAt;
  for (const turn of placement.turns) {
    if (turn.kind === 'none') continue;
    if (turn.state === 'open') {
      if (summary.openTurnId !== turn.id) summary.turnCount += 1;
      summary.openTurnId = turn.id;
      summary.lastTurnKind = turn.kind;
      fold.ended = null;
    } else {
      if (summary.openTurnId === turn.id) summary.openTurnId = null;
      fold.lastTurn = { state: turn.state, message: turn.error?.message ?? null };
    }
  }
  if (placement.turnId?.startsWith('task:') !== true) applyText(fold, placement);
  if (entry.event.type === 'CUSTOM') applyCustom(fold, placement);
  enterState(fold, open, entry.receivedAt);
}

function applyText(fold: SessionFold, { entry, entityId, role }: Placement): void {
  const { summary } = fold;
  const { event } = entry;
  if (event.type === 'RUN_STARTED') {
    const [message] = inputUserMessages(event);
    if (message !== undefined && summary.title === null) setTitle(fold, message.id, message.text);
    return;
  }
  if (!/^TEXT_MESSAGE_(CONTENT|CHUNK)$/.test(event.type)) return;
  const delta = contentText(event.delta);
  const whole = interludeOf(event).whole === true;
  if (role === 'user') {
    if (summary.title === null) setTitle(fold, entityId, delta);
    else if (fold.titleMessageId === entityId) setTitle(fold, entityId, whole ? delta : summary.title + delta);
  } else if (role === 'assistant') {
    const same = fold.textMessageId === entityId && !whole;
    const text = same ? (summary.lastText ?? '') : '';
    if (!same || text.length < PREVIEW_LENGTH) summary.lastText = cutText(text + delta, PREVIEW_LENGTH);
    fold.textMessageId = entityId;
  }
}

function setTitle(fold: SessionFold, messageId: string | null, text: string): void {
  const told = text.trimStart();
  const line = told.slice(0, TITLE_LENGTH + 1).split('\n', 1)[0] ?? '';
  fold.summary.title = cutText(line, TITLE_LENGTH) || null;
  // The first line is complete once a second one begins, or once it is longer than what is shown.
  fold.titleMessageId = told.length > TITLE_LENGTH || told.includes('\n') ? null : messageId;
}

function applyCustom(fold: SessionFold, { entry }: Placement): void {
  const value = customValue(entry.event);
  switch (customName(entry.event)) {
    case CUSTOM.lost: {
      const count = Math.max(1, pickNumber(value, 'count') ?? 1);
      fold.summary.lostCount = Math.min(fold.summary.lostCount + count, Number.MAX_SAFE_INTEGER);
      return;
    }
    case CUSTOM.quarantined:
      fold.summary.quarantinedCount += 1;
      return;
    case CUSTOM.sessionStarted:
      fold.ended = null;
      return;
    case CUSTOM.runnerAway:
      fold.away = {
        since: pickTime(value, 'since') ?? entry.occurredAt,
        lastHeardAt: Math.max(pickTime(value, 'last_heard_at') ?? 0, fold.summary.lastHeardAt),
        agentGoesOn: value.agent_goes_on === true,
      };
      fold.awayPosition = pickNumber(value, 'since_position');
      return;
    case CUSTOM.runnerBack:
      fold.away = null;
      return;
    case CUSTOM.sessionEnded: {
      const exitCode = pick(value, 'exitCode', 'exit_code');
      const failed = typeof exitCode === 'number' && exitCode !== 0;
      fold.ended = { failed, reason: caption(pickText(value, 'reason')), at: entry.receivedAt };
      fold.away = null;
    }
  }
}

function enterState(fold: SessionFold, open: OpenRequests, at: number): void {
  const { summary } = fold;
  summary.pendingRequestCount = open.count;
  const away = isMissed(fold) ? fold.away : null;
  if (summary.away?.since !== away?.since) summary.away = away;
  const [state, reason] = decide(fold, open);
  if (state !== summary.state) summary.stateSince = at;
  summary.state = state;
  summary.stateReason = reason;
}

/** Whether its runner went while something was under way. After a failed turn, running tasks alone don't count. */
function isMissed(fold: SessionFold): boolean {
  if (fold.away === null || !isUnderWay(fold)) return false;
  const { openTurnId, pendingRequestCount } = fold.summary;
  return openTurnId !== null || pendingRequestCount > 0 || fold.lastTurn?.state !== 'failed';
}

/** First match wins. */
function decide(fold: SessionFold, open: OpenRequests): [SessionState, string | null] {
  const lastTurnFailed = fold.lastTurn?.state === 'failed';
  if (fold.ended?.failed === true) return ['failed', fold.ended.reason ?? "the agent's process failed"];
  if (fold.ended !== null && !lastTurnFailed) return ['done', fold.ended.reason];
  if (fold.summary.away !== null) return fold.summary.away.agentGoesOn ? ['waiting', UNSEEN] : ['failed', gone(fold)];
  if (open.count > 0) return ['waiting', open.first?.title ?? 'The agent asks'];
  if (fold.summary.openTurnId !== null) return ['working', null];
  if (lastTurnFailed) return ['failed', fold.lastTurn?.message ?? null];
  return ['idle', null];
}

const UNSEEN = 'nobody watches its terminal: start the companion of its hooks there again';

function gone({ summary }: SessionFold): string {
  if (summary.pendingRequestCount > 0) return 'its runner has gone while it waited for an answer';
  if (summary.openTurnId !== null) return 'its runner has gone in the middle of a turn';
  return `its runner has gone while ${summary.runningTaskCount === 1 ? 'a task' : `${summary.runningTaskCount} tasks`} ran`;
}
