import type { AgentLog, LogLineRow } from '@/lib/event-log/batch-rows';
import type { LogRecord } from '@/lib/protocol/envelope';

/** The log lines of a batch, each with its number in its agent's log, and how far those logs go after it. */
export class LogTally {
  readonly lines: LogLineRow[] = [];
  readonly #stored: ReadonlyMap<string, AgentLog>;
  readonly #logs = new Map<string, AgentLog>();
  readonly #encoder = new TextEncoder();

  constructor(stored: ReadonlyMap<string, AgentLog>) {
    this.#stored = stored;
  }

  add(position: number, { agentId, occurredAt, log }: LogRecord): void {
    const { lastLine, bytes } = this.#logs.get(agentId) ?? this.#stored.get(agentId) ?? { lastLine: 0, bytes: 0 };
    const { level, component, message, redacted = 0, marker = null } = log;
    const line = lastLine + 1;
    this.#logs.set(agentId, { lastLine: line, bytes: bytes + this.#encoder.encode(message).byteLength });
    this.lines.push({ position, agentId, occurredAt, level, component, message, line, redacted, marker });
  }

  /** Of the agents that wrote. */
  changed(): { agentId: string; log: AgentLog }[] {
    return [...this.#logs].map(([agentId, log]) => ({ agentId, log }));
  }
}
