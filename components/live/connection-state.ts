/**
 * What the badge says about the one live connection of this browser.
 *
 * `live` means: everything up to the server's newest row has arrived. `gap` means: rows were missed for good (they are
 * past retention), every view was reloaded from a snapshot, and it stays said for a while.
 */
export const CONNECTION_STATUSES = ['connecting', 'live', 'reconnecting', 'gap', 'signed-out'] as const;
export type ConnectionStatus = (typeof CONNECTION_STATUSES)[number];

export interface ConnectionState {
  status: ConnectionStatus;
  /** When this status was entered, epoch milliseconds. */
  since: number;
  /** Failed attempts since the connection was last whole. */
  attempt: number;
  /** While it is stale: up to when everything had arrived, epoch milliseconds; null if it never had. */
  asOf: number | null;
}

const STALE: Record<ConnectionStatus, boolean> = {
  // A page that has just come is as new as it can be.
  connecting: false,
  live: false,
  reconnecting: true,
  // What was missed is loaded anew, and what comes arrives.
  gap: false,
  'signed-out': true,
};

/** Whether things may have happened that the page does not show. Then nothing on it may look as if it went on. */
export function isStale(status: ConnectionStatus): boolean {
  return STALE[status];
}

export const CONNECTION_EVENTS = ['up-to-date', 'gap', 'cut', 'unauthorized', 'gap-shown', 'retry'] as const;
export type ConnectionEvent = (typeof CONNECTION_EVENTS)[number];

/**
 * What each event makes of a status. A planned re-open (`bye`, another topic) is no event: nothing is missing
 * meanwhile.
 */
const AFTER: Record<ConnectionEvent, (status: ConnectionStatus) => ConnectionStatus> = {
  // Being up to date again does not take the word back: what was missed is still missed. Only time does.
  'up-to-date': (status) => (status === 'gap' ? 'gap' : 'live'),
  gap: () => 'gap',
  cut: (status) => (status === 'signed-out' ? 'signed-out' : 'reconnecting'),
  unauthorized: () => 'signed-out',
  'gap-shown': (status) => (status === 'gap' ? 'live' : status),
  // Somebody signed in again, perhaps: what was refused is open once more.
  retry: (status) => (status === 'signed-out' ? 'reconnecting' : status),
};

export function initialConnectionState(now: number): ConnectionState {
  return { status: 'connecting', since: now, attempt: 0, asOf: null };
}

/** @param wholeAt when everything had last arrived, by the clock that says `now`; null if it never had */
export function nextConnectionState(
  state: ConnectionState,
  event: ConnectionEvent,
  now: number,
  wholeAt: number | null,
): ConnectionState {
  const status = AFTER[event](state.status);
  const attempt = event === 'cut' ? state.attempt + 1 : event === 'gap-shown' || event === 'retry' ? state.attempt : 0;
  if (status === state.status && attempt === state.attempt) return state;
  const asOf = isStale(status) ? wholeAt : null;
  return { status, since: status === state.status ? state.since : now, attempt, asOf };
}
