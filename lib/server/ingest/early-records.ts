/**
 * How many records in quarantine name a session that has not begun: those stored before, and those of this batch. The
 * session that begins with that agent lacks them.
 */
export class EarlyRecords {
  readonly #counts: Map<string, number>;

  constructor(stored: readonly { sessionId: string; agentId: string; count: number }[]) {
    this.#counts = new Map(stored.map(({ sessionId, agentId, count }) => [keyOf(sessionId, agentId), count]));
  }

  add(sessionId: string, agentId: string): void {
    const key = keyOf(sessionId, agentId);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  take(sessionId: string, agentId: string): number {
    return this.#counts.get(keyOf(sessionId, agentId)) ?? 0;
  }
}

function keyOf(sessionId: string, agentId: string): string {
  return JSON.stringify([sessionId, agentId]);
}
