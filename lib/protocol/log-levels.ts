/** From the least to the most severe. @see PROTOCOL.md, Logs */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What was asked of a runner. */
export interface DesiredLogLevel {
  /** Null: the runner's default. Once that is confirmed, nothing more is asked. */
  level: LogLevel | null;
  requestedAt: number;
  requestedBy: string;
  /** When it goes back by itself; null: it stays. */
  expiresAt: number | null;
  /**
   * `requested`: the runner has not answered yet. `confirmed`: it has changed the level, and its next status says so.
   * `refused`: it can't, and `reason` says why.
   */
  state: 'requested' | 'confirmed' | 'refused';
  reason: string | null;
}
