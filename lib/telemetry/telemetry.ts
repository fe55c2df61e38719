/**
 * What the server tells of its own work, for metrics and traces. Times are milliseconds: `at` of the epoch, `…Ms` how
 * long. Nobody is told what a message, a log line or a command says.
 *
 * Failure: whoever listens never throws, and takes no time that is worth naming: this is called where every record and
 * every frame passes.
 */
export interface Telemetry {
  /** A request was answered; of a stream, its beginning. */
  answered?(told: Answered): void;
  /** A batch of an outbox was taken, or refused. */
  ingested?(told: Ingested): void;
  /** Rows went out to those who listen. */
  published?(told: Published): void;
}

export interface Answered {
  method: string;
  /** As the table has it; null for a path that is none. */
  route: string | null;
  status: number;
  tookMs: number;
}

export interface Ingested {
  producerId: string;
  records: number;
  /** Null if nothing of it was stored. */
  outcome: { accepted: number; duplicates: number; rejected: number } | null;
  /** `answered`, `gap`, `fenced`, `foreign`, or `failed`. */
  kind: string;
  bytes: number;
  /** When its body was there, when its turn to write came, and when it was on disk. */
  receivedAt: number;
  waitedMs: number;
  tookMs: number;
  /** How old its newest record was, by its runner's clock; null if it had none with a time. */
  ageMs: number | null;
  /** W3C, as the runner sent it. */
  traceparent: string | null;
}

export interface Published {
  rows: number;
  subscribers: number;
  /** When the tick began, and how long it took to read and to hand out. */
  at: number;
  tookMs: number;
  /** How long the oldest of the rows was in the database before it went out; null for rows without a time of their own. */
  lagMs: number | null;
}

/** Tells several of it. @returns null for nobody, so that nothing is measured for nobody */
export function telemetryOf(listeners: readonly Telemetry[]): Telemetry | null {
  if (listeners.length < 2) return listeners[0] ?? null;
  return {
    answered: (told) => listeners.forEach((one) => void one.answered?.(told)),
    ingested: (told) => listeners.forEach((one) => void one.ingested?.(told)),
    published: (told) => listeners.forEach((one) => void one.published?.(told)),
  };
}
