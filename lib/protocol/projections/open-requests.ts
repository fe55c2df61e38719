import { outageOf } from '../agent-status-view';
import { CUSTOM, caption, customName, customValue, pickId, pickText, pickTime } from '../event-fields';
import type { Attention } from '../inbox-rules';
import { readInterlude } from '../interlude-metadata';
import { MAX_CAPTION, MAX_LATE_TITLE, MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS } from '../limits';
import type { Position } from '../position';
import type { AgentSummary, Obligation, SessionSummary, Task } from '../read-models';
import { failedSince, failureReason, isSeen, wentSilent } from '../session-predicates';
import { truncateText } from '../text';
import { answerDeadline } from '../time';
import type { InboxKind } from '../vocabulary';
import type { EventEntry, Placement } from './placement';

/** A permission or question that waits for a person. */
export interface OpenRequest {
  id: string;
  title: string;
  kind: 'permission' | 'question';
  digest: string;
  openedPosition: Position;
  /** Deadline for answers, epoch milliseconds on the server's clock. Absent without expiry. */
  answerBy?: number;
}

/**
 * The open requests of an agent in the order they were opened, as a mutable copy with constant time per event. A repeated
 * request keeps its place and digest; a changed one under the same id is new. Keeps at most MAX_OPEN_REQUESTS.
 */
export class OpenRequests {
  readonly #open: Map<string, OpenRequest>;
  #hasMore: boolean;

  constructor(open: readonly OpenRequest[], hasMore = false) {
    this.#hasMore = hasMore;
    this.#open = new Map(open.map((request) => [request.id, request]));
  }

  get count(): number {
    return this.#open.size;
  }

  /** True if more requests may be open than are kept. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  get first(): OpenRequest | undefined {
    return this.#open.values().next().value;
  }

  /** Earliest deadline. */
  get answerBy(): number | undefined {
    const times = this.list().flatMap(({ answerBy }) => answerBy ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  get(id: string): OpenRequest | undefined {
    return this.#open.get(id);
  }

  list(): OpenRequest[] {
    return [...this.#open.values()];
  }

  apply({ entry, turns }: Placement): void {
    // A failed or interrupted turn has no open requests. A turn may finish in order to ask.
    if (turns.some(({ kind, state }) => kind !== 'none' && state !== 'open' && state !== 'finished')) this.#clear();
    const value = customValue(entry.event);
    const id = pickId(value, 'request_id', 'requestId');
    switch (customName(entry.event)) {
      case CUSTOM.requestOpened:
        if (id === null) return;
        this.#replace(readInterlude(entry.event).replaces, id);
        this.#put(opened(id, value, entry));
        return;
      case CUSTOM.requestResolved:
        if (id !== null) this.#open.delete(id);
        return;
      case CUSTOM.sessionEnded:
        this.#clear();
    }
  }

  #put(request: OpenRequest): void {
    const known = this.#open.get(request.id);
    if (known === undefined && this.#open.size >= MAX_OPEN_REQUESTS) {
      this.#hasMore = true;
      return;
    }
    // A repeated request keeps its place and can only extend its deadline.
    const isSame = known?.digest === request.digest;
    if (!isSame) this.#open.delete(request.id);
    const isLate = this.#open.size - Number(isSame) >= MAX_PENDING_REQUESTS;
    const kept = isLate ? Math.max(isSame ? known.title.length : 0, MAX_LATE_TITLE) : MAX_CAPTION;
    this.#open.set(request.id, { ...request, title: truncateText(request.title, kept) });
  }

  #replace(replaced: string | undefined, id: string): void {
    if (replaced !== undefined && replaced !== id) this.#open.delete(replaced);
  }

  #clear(): void {
    this.#hasMore = false;
    this.#open.clear();
  }
}

/** The truncated title of a request. */
export function requestTitle(value: Record<string, unknown>): string {
  return caption(pickText(value, 'title', 'tool_name', 'toolName')) ?? 'The agent asks';
}

function opened(id: string, value: Record<string, unknown>, entry: EventEntry): OpenRequest {
  const until = answerDeadline(pickTime(value, 'expires_at', 'expiresAt'), entry);
  return {
    id,
    title: requestTitle(value),
    kind: value.kind === 'question' ? 'question' : 'permission',
    // Ingest has written digest and position into the event.
    digest: pickText(value, 'digest') ?? '',
    openedPosition: pickText(value, 'opened_position') ?? entry.position,
    ...(until === null ? {} : { answerBy: until }),
  };
}

/** Inbox items of a session, except pending replies. */
export function attentionOfSession(session: SessionSummary, requests: readonly OpenRequest[]): Attention[] {
  const found = requests.slice(0, MAX_PENDING_REQUESTS).map((request) => ofRequest(session.id, request));
  if (session.arrangement.archivedAt !== null) return found;
  const { stateReason, away, lostCount, quarantinedCount } = session;
  const failedAt = failedSince(session);
  if (failedAt !== null && !isSeen(session)) {
    found.push(about('failure', [session.id], { title: failureReason(session), version: failedAt }));
  }
  if (away !== null && wentSilent(session)) {
    found.push(about('lost-contact', [session.id], { title: stateReason, version: away.since }));
  }
  const missing = lostCount + quarantinedCount;
  if (missing > 0) found.push(about('delivery-gap', [session.id], { count: missing, version: missing }));
  return found;
}

/** Inbox items of an agent, except those of its sessions. */
export function attentionOfAgent({ id, insightCount, parkedCount, status }: AgentSummary): Attention[] {
  const found: Attention[] = [];
  const outage = outageOf(status);
  // A session that was at work has its own item.
  if (outage !== null && !outage.wasAtWork) {
    found.push(about('lost-contact', [id], { title: outage.reason, version: outage.since }));
  }
  if (insightCount > 0) found.push(about('hook-failure', [id], { count: insightCount, version: insightCount }));
  if (parkedCount > 0) found.push(about('parked', [id], { count: parkedCount, version: parkedCount }));
  return found;
}

/** The inbox item of an overdue reply. */
export function attentionOfReply(obligation: Obligation): Attention[] {
  const { state, isOverdue, sessionId, messageId, from, text } = obligation;
  if (state !== 'owed' || !isOverdue) return [];
  return [about('overdue-reply', [sessionId, messageId], { title: firstLine(text), messageId, from })];
}

/** The inbox item of a task whose result was not delivered. */
export function attentionOfTask(task: Task): Attention[] {
  const { id, runId, sessionId, position, description, status, exitCode, unansweredSince } = task;
  if (!task.isUndelivered || unansweredSince === undefined) return [];
  const code = exitCode === null || exitCode === 0 ? '' : `, exit code ${exitCode}`;
  const title = `${firstLine(description) ?? id}: ${status}${code}`;
  return [
    about('undelivered', [sessionId, id, position], { title, task: { id, runId, position }, version: unansweredSince }),
  ];
}

function ofRequest(sessionId: string, { id, title, kind, digest, openedPosition, answerBy }: OpenRequest): Attention {
  const request = { id, digest, openedPosition, answerBy: answerBy ?? null };
  return about(kind, [sessionId, id, openedPosition], { title, request });
}

function about(kind: InboxKind, of: readonly string[], more: Partial<Attention>): Attention {
  const nothing = { title: null, count: 1, request: null, messageId: null, from: null, version: 0 };
  return { id: JSON.stringify([kind, ...of]), kind, ...nothing, ...more };
}

function firstLine(text: string): string | null {
  return truncateText(text.trim().split('\n', 1)[0] ?? '', MAX_CAPTION) || null;
}
