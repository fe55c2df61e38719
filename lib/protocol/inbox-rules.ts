import type { Sender } from './commands';
import type { InboxItem, InboxMarks, InboxRequest, InboxTask } from './inbox';
import type { InboxKind } from './vocabulary';

/** A condition that needs a person, derived from fleet rows. It ends as soon as the rows no longer show it. */
export interface Attention {
  id: string;
  kind: InboxKind;
  title: string | null;
  count: number;
  request: InboxRequest | null;
  messageId: string | null;
  from: Sender | null;
  task?: InboxTask;
  occurredAt?: number;
  /** A changed version reopens the item. For COUNTED_KINDS, only a greater one does. */
  version: number;
}

/**
 * True if an item needs a person: not done, not seen, not snoozed at `now`, and not claimed by someone else. Counts,
 * badges, notifications and the webhook all use this definition; `NEEDS_PERSON` in the database is the same as SQL.
 *
 * @param person `InboxPerson.id` of the reader; null if it concerns no one in particular
 */
export function needsPerson(
  { doneAt, seenAt, snoozedUntil, claim }: InboxMarks,
  now: number,
  person: string | null,
): boolean {
  const isOpen = doneAt === null && seenAt === null && !isSnoozed({ snoozedUntil }, now);
  return isOpen && (claim === null || claim.by.id === person);
}

export function isSnoozed({ snoozedUntil }: Pick<InboxItem, 'snoozedUntil'>, now: number): boolean {
  return snoozedUntil !== null && snoozedUntil > now;
}

/** The dashboard path where a person can handle an item. */
export function inboxItemPath({ kind, agentId, sessionId, request, messageId, task }: InboxItem): string {
  if (sessionId === null) return `/agents/${encodeURIComponent(agentId)}`;
  const session = `/sessions/${encodeURIComponent(sessionId)}`;
  if (task !== undefined) return `${session}#task-${task.position}`;
  if (request !== null) return `${session}#request-${encodeURIComponent(request.id)}`;
  return kind === 'overdue-reply' && messageId !== null
    ? `${session}#message-${encodeURIComponent(messageId)}`
    : session;
}
