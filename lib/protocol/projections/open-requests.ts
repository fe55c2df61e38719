import { outageOf } from '../agent-status-view';
import {
  CUSTOM,
  caption,
  customName,
  customValue,
  pickId,
  pickText,
  pickTime,
  readRequestOptions,
} from '../event-fields';
import { fieldsOf } from '../fields';
import type { RequestPreview } from '../inbox';
import type { Attention } from '../inbox-rules';
import { readInterlude } from '../interlude-metadata';
import { exceeds } from '../json';
import { MAX_CAPTION, MAX_LATE_TITLE, MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS, MAX_REQUEST_LINE } from '../limits';
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
  /** Absent for a request that the inbox does not list yet. */
  preview?: RequestPreview;
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
    const { preview, ...listed } = request;
    const shown = isLate || preview === undefined ? listed : request;
    this.#open.set(request.id, { ...shown, title: truncateText(request.title, kept) });
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

/** Fields of an input that identify it, most telling first. */
const MAIN_FIELDS = ['command', 'file_path', 'path', 'url', 'query', 'pattern', 'prompt', 'question'];
/** Maximum number of values in a short input. */
const MAX_SHORT_VALUES = 12;

/** @param value of `request:opened` */
export function requestPreview(value: Record<string, unknown>): RequestPreview {
  const { input, kind } = value;
  const tool = pickText(value, 'tool_name', 'toolName');
  const about = { tool: tool === null ? null : truncateText(tool, MAX_LATE_TITLE), line: mainText(input) };
  if (kind === 'question' || input == null || exceeds(input, MAX_REQUEST_LINE, MAX_SHORT_VALUES)) return about;
  const options = readRequestOptions(value.options);
  return { ...about, input, ...(options.length === 0 ? {} : { options }) };
}

/** The main text of an input, on one line. */
function mainText(input: unknown): string | null {
  if (typeof input === 'string') return oneLine(input);
  const fields = fieldsOf(input);
  const [question] = Array.isArray(fields.questions) ? fields.questions : [];
  const texts = [...MAIN_FIELDS.map((name) => fields[name]), fieldsOf(question).question, ...Object.values(fields)];
  const text = texts.find((one) => typeof one === 'string' && one.trim() !== '');
  return typeof text === 'string' ? oneLine(text) : null;
}

/** Reads only as much of a text as it returns. */
function oneLine(text: string): string | null {
  const start = truncateText(text, 2 * MAX_REQUEST_LINE)
    .replace(/\s+/g, ' ')
    .trim();
  return truncateText(start, MAX_REQUEST_LINE) || null;
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
    preview: requestPreview(value),
  };
}

/** Inbox items of a session, except pending replies. */
export function attentionOfSession(session: SessionSummary, requests: readonly OpenRequest[]): Attention[] {
  const found = requests.slice(0, MAX_PENDING_REQUESTS).map((request) => ofRequest(session.id, request));
  if (session.arrangement.archivedAt !== null) return found;
  const { stateReason, away, lostCount, quarantinedCount, observations } = session;
  const failedAt = failedSince(session);
  if (failedAt !== null && !isSeen(session)) {
    const { process, turn, report } = observations;
    const failure = [process, report, turn].find((one) => one?.observedAt === failedAt);
    const late = failure?.occurredAt === undefined ? {} : { occurredAt: failure.occurredAt };
    found.push(about('failure', [session.id], { title: failureReason(session), version: failedAt, ...late }));
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

function ofRequest(sessionId: string, request: OpenRequest): Attention {
  const { id, title, kind, openedPosition, digest, answerBy = null, preview } = request;
  const of = { id, digest, openedPosition, answerBy, ...(preview && { preview }) };
  return about(kind, [sessionId, id, openedPosition], { title, request: of });
}

function about(kind: InboxKind, of: readonly string[], more: Partial<Attention>): Attention {
  const nothing = { title: null, count: 1, request: null, messageId: null, from: null, version: 0 };
  return { id: JSON.stringify([kind, ...of]), kind, ...nothing, ...more };
}

function firstLine(text: string): string | null {
  return truncateText(text.trim().split('\n', 1)[0] ?? '', MAX_CAPTION) || null;
}
