import type { LogRecord } from '@interlude/protocol/envelope';
import { truncateLogMessage, utf8Length } from '@interlude/protocol/log-text';
import { columnText } from '@/db/column-text';
import type { AgentLog, BatchRows, LogLineRow } from '@/lib/server/event-log/batch-rows';

/** The log lines of a batch, each with its number in its agent's log, and the extent of those logs after it. */
export class LogTally {
  readonly lines: LogLineRow[] = [];
  readonly #stored: ReadonlyMap<string, AgentLog>;
  readonly #logs = new Map<string, AgentLog>();

  constructor(stored: ReadonlyMap<string, AgentLog>) {
    this.#stored = stored;
  }

  add(position: number, { agentId, occurredAt, log }: LogRecord): void {
    const { lastLine, bytes } = this.#logs.get(agentId) ?? this.#stored.get(agentId) ?? { lastLine: 0, bytes: 0 };
    const { level, component, redacted = 0, marker = null } = log;
    // the text as it is stored: when the line is removed, its stored size is subtracted from this count
    const message = truncateLogMessage(columnText(log.message));
    const line = lastLine + 1;
    this.#logs.set(agentId, { lastLine: line, bytes: bytes + utf8Length(message) });
    this.lines.push({ position, agentId, occurredAt, level, component, message, line, redacted, marker });
  }

  /** The logs of the agents that wrote. */
  changed(): { agentId: string; log: AgentLog }[] {
    return [...this.#logs].map(([agentId, log]) => ({ agentId, log }));
  }

  /** How many lines each component wrote. */
  components(): BatchRows['logComponents'] {
    const counts = new Map<string, BatchRows['logComponents'][number]>();
    for (const { agentId, component } of this.lines) {
      const name = columnText(component);
      const key = `${agentId}\0${name}`;
      const known = counts.get(key);
      if (known === undefined) counts.set(key, { agentId, component: name, lines: 1 });
      else known.lines += 1;
    }
    return [...counts.values()];
  }
}
