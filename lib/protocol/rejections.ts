/** Why a record was kept in quarantine instead of taken. @see PROTOCOL.md, Ingest */
export type RejectionCode =
  | 'unknown_kind'
  | 'invalid_record'
  | 'record_too_large'
  | 'session_of_another_agent'
  /** The sender's token is not for the agent that it names. */
  | 'agent_of_another_token'
  /** Only the server writes events of that name. */
  | 'reserved_name'
  /** The event is about a task that no session of the agent is known to have started, and the agent has several. */
  | 'task_of_no_session'
  /**
   * The event is about a task that several other sessions of the agent started under the same name, or one other, and the
   * reporting session may have, too: its oldest tasks were removed.
   */
  | 'task_of_several_sessions'
  /** The database refuses it, whatever came with it. */
  | 'not_storable';

/** Records of these are parked: a person says to which session they belong, or discards them. */
export const PARKING_CODES: ReadonlySet<RejectionCode> = new Set(['task_of_no_session', 'task_of_several_sessions']);
