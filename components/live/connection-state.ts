/**
 * The state of this browser's live connection.
 *
 * `live`: everything up to the server's newest row has arrived. `gap`: rows past retention were missed and every view
 * was reloaded; shown for a while.
 */
export const CONNECTION_STATUSES = ['connecting', 'live', 'reconnecting', 'gap', 'signed-out'] as const;
export type ConnectionStatus = (typeof CONNECTION_STATUSES)[number];

export interface ConnectionState {
  status: ConnectionStatus;
  /** Start of this status, epoch milliseconds. */
  since: number;
  /** Failed attempts since the connection was last complete. */
  attempt: number;
  /** While stale: time at which the page was last complete, epoch milliseconds; null if it never was. */
  asOf: number | null;
}

const STALE: Record<ConnectionStatus, boolean> = {
  // A page that has just loaded is current.
  connecting: false,
  live: false,
  reconnecting: true,
  // The views were reloaded and new rows arrive.
  gap: false,
  'signed-out': true,
};

/** The page may miss events, so nothing on it may look active. */
export function isStale(status: ConnectionStatus): boolean {
  return STALE[status];
}

export const CONNECTION_EVENTS = ['up-to-date', 'gap', 'cut', 'unauthorized', 'gap-shown', 'retry'] as const;
export type ConnectionEvent = (typeof CONNECTION_EVENTS)[number];

/**
 * The next status for each event. A planned reconnect (`bye`, another topic) is not an event, because nothing is
 * missed.
 */
const AFTER: Record<ConnectionEvent, (status: ConnectionStatus) => ConnectionStatus> = {
  // A gap stays visible until `gap-shown`.
  'up-to-date': (status) => (status === 'gap' ? 'gap' : 'live'),
  gap: () => 'gap',
  cut: (status) => (status === 'signed-out' ? 'signed-out' : 'reconnecting'),
  unauthorized: () => 'signed-out',
  'gap-shown': (status) => (status === 'gap' ? 'live' : status),
  // The user may have signed in again.
  retry: (status) => (status === 'signed-out' ? 'reconnecting' : status),
};

export function initialConnectionState(now: number): ConnectionState {
  return { status: 'connecting', since: now, attempt: 0, asOf: null };
}

/** @param completeAt time at which the page was last complete, on the same clock as `now`; null if it never was */
export function nextConnectionState(
  state: ConnectionState,
  event: ConnectionEvent,
  now: number,
  completeAt: number | null,
): ConnectionState {
  const status = AFTER[event](state.status);
  const attempt = event === 'cut' ? state.attempt + 1 : event === 'gap-shown' || event === 'retry' ? state.attempt : 0;
  if (status === state.status && attempt === state.attempt) return state;
  const asOf = isStale(status) ? completeAt : null;
  return { status, since: status === state.status ? state.since : now, attempt, asOf };
}
