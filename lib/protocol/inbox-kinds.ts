/**
 * Inbox kinds in the order in which the inbox shows them.
 * - `permission`, `question`: a request is open
 * - `overdue-reply`: an agent's reply is overdue
 * - `failure`: a session failed, or its process broke off
 * - `undelivered`: a task ended while its agent was idle, and no turn took up its result in time
 * - `lost-contact`: a session went silent with work under way
 * - `hook-failure`: an agent has unseen failures
 * - `delivery-gap`: records of a session were lost or rejected
 * - `parked`: records about tasks must be assigned to a session
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

/** A zero for each inbox kind. */
export function noItems(): Record<InboxKind, number> {
  return Object.fromEntries(INBOX_KINDS.map((kind) => [kind, 0])) as Record<InboxKind, number>;
}

/** Kinds whose `count` can exceed 1. */
export const COUNTED_KINDS = ['hook-failure', 'delivery-gap', 'parked'] as const satisfies readonly InboxKind[];

/** Kinds that are done once seen, although their cause remains. */
export const DONE_ONCE_SEEN: readonly InboxKind[] = ['delivery-gap', 'undelivered'];
