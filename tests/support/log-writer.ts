import type { LogMarker } from '@interlude/protocol/envelope';
import { MAX_RECORDS_PER_REQUEST } from '@interlude/protocol/limits';
import type { LogLevel } from '@interlude/protocol/vocabulary';

export interface WrittenLine {
  message: string;
  level?: LogLevel;
  component?: string;
  occurredAt?: number;
  redacted?: number;
  marker?: LogMarker;
}

/** Writes an agent's log to a live server over HTTP, without the runner. */
export class LogWriter {
  readonly #server: { url: string; token: string };
  readonly agentId: string;
  readonly #producerId: string;
  #seq = 0;

  /** @param producerId a separate producer if another writer uses the agent's */
  constructor(server: { url: string; token: string }, agentId: string, producerId: string = agentId) {
    this.#server = server;
    this.agentId = agentId;
    this.#producerId = producerId;
  }

  /** Announces the agent before its first line, as a runner does. */
  arrive(): Promise<void> {
    return this.#post([{ kind: 'status', occurredAt: Date.now(), status: { kind: 'test' } }]);
  }

  /** Resolves when all lines are acknowledged. */
  async write(lines: readonly WrittenLine[]): Promise<void> {
    for (let index = 0; index < lines.length; index += MAX_RECORDS_PER_REQUEST) {
      await this.#send(lines.slice(index, index + MAX_RECORDS_PER_REQUEST));
    }
  }

  /** Writes `count` lines: `line <number>`, starting at `first`. */
  numbered(count: number, first = 1): Promise<void> {
    return this.write(Array.from({ length: count }, (_, index) => ({ message: `line ${first + index}` })));
  }

  #send(lines: readonly WrittenLine[]): Promise<void> {
    const now = Date.now();
    return this.#post(
      lines.map(({ occurredAt = now, level = 'info', component = 'test', ...rest }) => ({
        kind: 'log',
        occurredAt,
        log: { level, component, ...rest },
      })),
    );
  }

  async #post(records: object[]): Promise<void> {
    const response = await fetch(`${this.#server.url}/api/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        producer: { id: this.#producerId, epoch: 1 },
        records: records.map((record) => ({ ...record, seq: ++this.#seq, agentId: this.agentId })),
      }),
    });
    const answer = (await response.json()) as { rejected?: unknown[] };
    if (!response.ok || answer.rejected?.length !== 0) throw new Error(`refused: ${JSON.stringify(answer)}`);
  }
}
