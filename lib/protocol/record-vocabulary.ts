/** From the least to the most severe. @see PROTOCOL.md, Logs */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Why a record was quarantined instead of accepted. @see PROTOCOL.md, Ingest
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
