import type { LogMarker } from '@interlude/protocol/envelope';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { type InProcessTarget, ingest, record } from './ingest-target';

export interface WrittenLine {
  message: string;
  level?: LogLevel;
  component?: string;
  occurredAt?: number;
  marker?: LogMarker;
}

/** One agent’s outbox, which writes log lines through ingest as a runner does. */
export class LineWriter {
  readonly agentId: string;
  readonly #target: InProcessTarget;
  #seq = 0;

  constructor(target: InProcessTarget, agentId: string) {
    this.#target = target;
    this.agentId = agentId;
  }

  /** @param occurredAt of lines that have none of their own */
  async write(lines: readonly WrittenLine[], occurredAt = 1_795_170_000_000): Promise<void> {
    if (lines.length === 0) return;
    const records = lines.map(({ occurredAt: at = occurredAt, level = 'info', component = 'c', ...log }) =>
      record(++this.#seq, {
        kind: 'log',
        agentId: this.agentId,
        sessionId: undefined,
        occurredAt: at,
        log: { level, component, ...log },
      }),
    );
    await ingest(this.#target, records, 1, `outbox-${this.agentId}`);
  }
}
