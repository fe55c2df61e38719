import { outageOf } from '../agent-limits';
import type { InboxKind } from '../inbox-kinds';
import type { Attention } from '../inbox-rules';
import { MAX_CAPTION, MAX_PENDING_REQUESTS } from '../limits';
import type { AgentSummary, Obligation, SessionSummary, Task } from '../read-models';
import { failedSince, failureReason, isSeen, wentSilent } from '../session-predicates';
import { truncateText } from '../text';
import type { OpenRequest } from './open-requests';

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
