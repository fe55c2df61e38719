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
  /** Agents were told to have ended something; of a batch that was stored, what it told first. */
  ended?(all: readonly Ended[]): void;
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

/** A turn, or a task. */
export interface Ended {
  kind: 'turn' | 'task';
  agentId: string;
  /** Whose runner told it. */
  sessionId: string;
  /** Null for a turn that its end does not name. */
  id: string | null;
  /** By the runner's clock. */
  occurredAt: number;
}

/** Tells several of it. @returns null for nobody, so that nothing is measured for nobody */
export function telemetryOf(listeners: readonly Telemetry[]): Telemetry | null {
  if (listeners.length < 2) return listeners[0] ?? null;
  const listens = (name: keyof Telemetry) => listeners.some((one) => one[name] !== undefined);
  return {
    answered: (told) => listeners.forEach((one) => void one.answered?.(told)),
    ingested: (told) => listeners.forEach((one) => void one.ingested?.(told)),
    // it costs something to find out
    ...(listens('ended') ? { ended: (all) => listeners.forEach((one) => void one.ended?.(all)) } : {}),
    published: (told) => listeners.forEach((one) => void one.published?.(told)),
  };
}
