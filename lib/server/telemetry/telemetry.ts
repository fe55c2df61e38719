/**
 * Events of the server's own work, for metrics and traces. `at` is epoch milliseconds, `…Ms` a duration. Never contains
 * the text of messages, log lines or commands.
 *
 * Failure: listeners must not throw and must return quickly, because every record and frame calls them.
 */
export interface Telemetry {
  /** The server responded to a request, or started its stream. */
  responded?(event: Responded): void;
  /** An outbox's batch was stored or refused. */
  ingested?(event: Ingested): void;
  /** Turns or tasks ended, in a batch that was stored. */
  ended?(all: readonly Ended[]): void;
  /** Rows were sent to subscribers. */
  published?(event: Published): void;
}

interface Responded {
  method: string;
  /** Pattern from the route table; null for an unknown path. */
  route: string | null;
  status: number;
  tookMs: number;
}

export interface Ingested {
  producerId: string;
  records: number;
  /** Null if no record was stored. */
  outcome: { accepted: number; duplicates: number; rejected: number } | null;
  /** `answered`, `gap`, `fenced`, `foreign`, or `failed`. */
  kind: string;
  bytes: number;
  /**
   * Arrival of the complete body (epoch milliseconds), then the wait for the write queue and the time until the batch
   * was durable.
   */
  receivedAt: number;
  waitedMs: number;
  tookMs: number;
  /** Age of the newest record by the runner's clock; null if none has a time. */
  ageMs: number | null;
  /** W3C `traceparent` header as sent by the runner. */
  traceparent: string | null;
}

export interface Published {
  rows: number;
  subscribers: number;
  /** Start of the tick, and its duration. */
  at: number;
  tookMs: number;
  /** Age of the oldest row; null for rows without a time. */
  lagMs: number | null;
}

export interface Ended {
  kind: 'turn' | 'task';
  agentId: string;
  /** The session whose runner reported it. */
  sessionId: string;
  /** Null for a turn whose end doesn't name it. */
  id: string | null;
  /** By the runner's clock. */
  occurredAt: number;
}

/** Combines listeners. @returns null without listeners, so callers skip measuring */
export function telemetryOf(listeners: readonly Telemetry[]): Telemetry | null {
  if (listeners.length < 2) return listeners[0] ?? null;
  const listens = (name: keyof Telemetry) => listeners.some((one) => one[name] !== undefined);
  return {
    responded: (event) => listeners.forEach((one) => void one.responded?.(event)),
    ingested: (event) => listeners.forEach((one) => void one.ingested?.(event)),
    // skipped without a listener, because collecting the ends takes time
    ...(listens('ended') ? { ended: (all) => listeners.forEach((one) => void one.ended?.(all)) } : {}),
    published: (event) => listeners.forEach((one) => void one.published?.(event)),
  };
}
