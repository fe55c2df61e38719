/** From the least to the most severe. @see PROTOCOL.md, Logs */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Reasons for quarantining a record. @see PROTOCOL.md, Ingest
 * - `agent_of_another_token`: the sender's token does not cover the agent
 * - `reserved_name`: only the server writes events of this name
 * - `task_of_no_session`: no session of the agent is known to have started the task, and the agent has several
 * - `task_of_several_sessions`: several other sessions of the agent started a task of this name; or one did, and so may
 *   have the reporting session, whose oldest tasks were removed
 * - `not_storable`: the database refuses the record
 */
export const REJECTION_CODES = [
  'unknown_kind',
  'invalid_record',
  'record_too_large',
  'session_of_another_agent',
  'agent_of_another_token',
  'reserved_name',
  'task_of_no_session',
  'task_of_several_sessions',
  'not_storable',
] as const;
export type RejectionCode = (typeof REJECTION_CODES)[number];

/** Rejections that park the record: a person assigns it to a session, or discards it. */
export const PARKING_CODES: readonly RejectionCode[] = ['task_of_no_session', 'task_of_several_sessions'];

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
