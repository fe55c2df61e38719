import type { Sender } from './commands';
import type { Position } from './position';

/** The inbox: what needs a person, over the whole fleet. Times are epoch milliseconds on the server's clock. */

/**
 * In the order in which the inbox shows them.
 * - `permission`, `question`: a request is open
 * - `overdue-reply`: an agent owes a reply for too long
 * - `failure`: a session has failed, or its process broke off
 * - `undelivered`: a task ended while its agent was idle, and no turn has taken up its result in time
 * - `lost-contact`: nothing is heard any more of a session that had something under way
 * - `hook-failure`: failures around an agent that nobody has looked at
 * - `delivery-gap`: records of a session were lost, or are in quarantine
 * - `parked`: records about tasks wait for somebody to say whose they are
 */
export const INBOX_KINDS = [
  'permission',
  'question',
  'overdue-reply',
  'failure',
  'undelivered',
  'lost-contact',
  'hook-failure',
  'delivery-gap',
  'parked',
] as const;
export type InboxKind = (typeof INBOX_KINDS)[number];

/** A count of items of each kind, all of them zero. */
export function noItems(): Record<InboxKind, number> {
  return Object.fromEntries(INBOX_KINDS.map((kind) => [kind, 0])) as Record<InboxKind, number>;
}

/** Something that needs a person until it is done. */
export interface InboxItem extends InboxMarks {
  /** What it is about; opaque. The same thing has the same id when it comes up again. */
  id: string;
  kind: InboxKind;
  agentId: string;
  /** Null if it is about the agent. */
  sessionId: string | null;
  /** What is asked, owed or wrong, in the agent's or the server's words; null if the kind says it all. */
  title: string | null;
  /** How many it stands for: failures, missing or parked records; else 1. */
  count: number;
  /** Of a permission or a question. `GET /sessions/:id/requests/:requestId` has what it asks in full. */
  request: InboxRequest | null;
  /** Of an overdue reply: the message, and who waits. */
  messageId: string | null;
  from: Sender | null;
  /** Of a result that was not delivered: the run of the task. */
  task?: InboxTask;
  /** When it came up. When there is more of it, or it comes up again, this is later and all marks are gone. */
  since: number;
  /** Position at which it came up. Unlike `updatedPosition`, it stays when the item is marked or comes back unchanged. */
  openedPosition: Position;
  updatedPosition: Position;
}

/** What people have made of an item, and whether it is done. */
export interface InboxMarks {
  /** Somebody has seen it. */
  seenAt: number | null;
  /** Until then nobody wants to be told of it. */
  snoozedUntil: number | null;
  /** Who takes care of it. */
  claim: InboxClaim | null;
  /** When it stopped needing anybody; null while it does. */
  doneAt: number | null;
}

export interface InboxRequest {
  id: string;
  /** As `RequestItem.digest`. Null for readers who may not answer. */
  digest: string | null;
  openedPosition: Position;
  /** Until when it can be answered; null: it does not expire. */
  answerBy: number | null;
}

/** @see Task */
export interface InboxTask {
  id: string;
  runId: string | null;
  position: Position;
}

export interface InboxClaim {
  by: InboxPerson;
  at: number;
}

/** The person or the program that claimed an item. */
export interface InboxPerson {
  /** As `Me.id`; `local` for everybody who signs in with this machine's own links or token. */
  id: string;
  /** What to call them. */
  name: string;
}

/** What needs a person: it follows from the rows of the fleet, and is over as soon as it no longer does. */
export interface Attention {
  id: string;
  kind: InboxKind;
  title: string | null;
  count: number;
  request: InboxRequest | null;
  messageId: string | null;
  from: Sender | null;
  task?: InboxTask;
  /** Another one is news: it came up again. Where several are counted, only a greater one is. */
  version: number;
}

/** Kinds of which there can be more or fewer. */
export const COUNTED_KINDS = ['hook-failure', 'delivery-gap', 'parked'] as const satisfies readonly InboxKind[];

/** Kinds that are done once seen, although their cause remains. */
export const DONE_ONCE_SEEN: readonly InboxKind[] = ['delivery-gap', 'undelivered'];

/** Whether it is to be counted: nobody has seen it, and nobody has put it off. Time alone changes it. */
export function isNews({ doneAt, seenAt, snoozedUntil }: InboxItem, now: number): boolean {
  return doneAt === null && seenAt === null && !isSnoozed({ snoozedUntil }, now);
}

export function isSnoozed({ snoozedUntil }: Pick<InboxItem, 'snoozedUntil'>, now: number): boolean {
  return snoozedUntil !== null && snoozedUntil > now;
}

/** Where in the dashboard a person can see to an item: the path of a page. */
export function placeOf({ kind, agentId, sessionId, request, messageId, task }: InboxItem): string {
  if (sessionId === null) return `/agents/${encodeURIComponent(agentId)}`;
  const session = `/sessions/${encodeURIComponent(sessionId)}`;
  if (task !== undefined) return `${session}#task-${task.position}`;
  if (request !== null) return `${session}#request-${encodeURIComponent(request.id)}`;
  return kind === 'overdue-reply' && messageId !== null
    ? `${session}#message-${encodeURIComponent(messageId)}`
    : session;
}

/** `GET /inbox`: what is not done, in the order of INBOX_KINDS, of each kind the oldest first. */
export interface InboxList {
  position: Position;
  items: InboxItem[];
  /** Where the next page begins, as `after` takes it; opaque, null at the end. */
  next: string | null;
  /** How many items of each kind pass the filters, listed or not; counted up to 100,000. */
  counts: Record<InboxKind, number>;
}

/** `POST /inbox/marks` */
export interface InboxMarked {
  /** The items as they are now, in the order asked for; those that are unknown are left out. */
  items: InboxItem[];
  /** Of these something has come up since they were shown, which stays unmarked. */
  changed: string[];
  position: Position;
}
