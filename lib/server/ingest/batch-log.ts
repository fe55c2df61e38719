import { cutText } from '@interlude/protocol/cut-text';
import type { LogRecord } from '@interlude/protocol/envelope';
import type { ReadInsight } from '@interlude/protocol/insight';
import { MAX_INSIGHT_DETAIL, MAX_SIGNALS_KEPT } from '@interlude/protocol/limits';
import { cutLogMessage, utf8Length } from '@interlude/protocol/log-text';
import { isFailure } from '@interlude/protocol/signals';
import { columnText } from '@/db/table-rows';
import type { AgentLog, BatchRows, InsightRow, LogLineRow } from '@/lib/server/event-log/batch-rows';

/** The log lines of a batch, each with its number in its agent's log, and the extent of those logs after it. */
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
    // the text as it is stored: when the line is removed, its stored size is subtracted from this count
    const message = cutLogMessage(columnText(log.message));
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

/**
 * The insight of a log line as it is stored.
 * The session that it names is stored even if it is another agent's; '' if the name can't be a session's id.
 */
export function insightRow(
  position: number,
  { agentId, occurredAt, log }: LogRecord,
  { signal, value, outcome, source, detail, session }: ReadInsight,
): InsightRow {
  const said = detail ?? cutText(log.message, MAX_INSIGHT_DETAIL);
  return {
    position,
    agentId,
    sessionId: session === null ? null : (session.id ?? ''),
    signal,
    value,
    outcome,
    source: source ?? log.component,
    detail: said.trim() === '' ? '(no detail)' : said,
    isFailure: isFailure({ signal, outcome }, log.level),
    occurredAt,
  };
}

/** Drops signals of an agent beyond the number that is kept, so that a batch never replaces more than that at once. */
export function limitSignals(rows: readonly InsightRow[]): InsightRow[] {
  const signals = new Map<string, number>();
  const kept = rows.toReversed().filter(({ agentId, isFailure: wantsLook }) => {
    if (wantsLook) return true;
    const count = (signals.get(agentId) ?? 0) + 1;
    signals.set(agentId, count);
    return count <= MAX_SIGNALS_KEPT;
  });
  return kept.reverse();
}
