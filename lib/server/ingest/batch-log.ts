import type { LogRecord } from '@interlude/protocol/envelope';
import { isFailure, type ReadInsight } from '@interlude/protocol/insight';
import { MAX_INSIGHT_DETAIL, MAX_SIGNALS_KEPT } from '@interlude/protocol/limits';
import { truncateLogMessage, truncateText, utf8Length } from '@interlude/protocol/text';
import { columnText } from '@/db/table-rows';
import type { AgentLog, BatchRows, InsightRow, LogLineRow } from '@/lib/server/event-log/batch-rows';

/** Collects a batch's log lines, numbers them per agent, and tracks the extent of each log. */
export class BatchLog {
  readonly lines: LogLineRow[] = [];
  readonly #stored: ReadonlyMap<string, AgentLog>;
  readonly #logs = new Map<string, AgentLog>();

  constructor(stored: ReadonlyMap<string, AgentLog>) {
    this.#stored = stored;
  }

  add(position: number, { agentId, occurredAt, log }: LogRecord): void {
    const { lastLine, bytes } = this.#logs.get(agentId) ?? this.#stored.get(agentId) ?? { lastLine: 0, bytes: 0 };
    const { level, component, redacted = 0, marker = null } = log;
    // The stored text: retention later subtracts its size from `bytes`.
    const message = truncateLogMessage(columnText(log.message));
    const line = lastLine + 1;
    this.#logs.set(agentId, { lastLine: line, bytes: bytes + utf8Length(message) });
    this.lines.push({ position, agentId, occurredAt, level, component, message, line, redacted, marker });
  }

  changed(): { agentId: string; log: AgentLog }[] {
    return [...this.#logs].map(([agentId, log]) => ({ agentId, log }));
  }

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

/** `sessionId` may be of another agent's session; '' stands for text that can't be a session id. */
export function insightRow(
  position: number,
  { agentId, occurredAt, log }: LogRecord,
  { signal, value, outcome, source, detail, session }: ReadInsight,
): InsightRow {
  const text = detail ?? truncateText(log.message, MAX_INSIGHT_DETAIL);
  return {
    position,
    agentId,
    sessionId: session === null ? null : (session.id ?? ''),
    signal,
    value,
    outcome,
    source: source ?? log.component,
    detail: text.trim() === '' ? '(no detail)' : text,
    isFailure: isFailure({ signal, outcome }, log.level),
    occurredAt,
  };
}

/** Keeps each agent's newest signals up to the stored maximum, and all failures. */
export function limitSignals(rows: readonly InsightRow[]): InsightRow[] {
  const signals = new Map<string, number>();
  const kept = rows.toReversed().filter(({ agentId, isFailure: isKept }) => {
    if (isKept) return true;
    const count = (signals.get(agentId) ?? 0) + 1;
    signals.set(agentId, count);
    return count <= MAX_SIGNALS_KEPT;
  });
  return kept.reverse();
}
