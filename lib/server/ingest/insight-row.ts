import type { LogRecord } from '@interlude/protocol/envelope';
import { isFailure, type ReadInsight } from '@interlude/protocol/insight';
import { MAX_INSIGHT_DETAIL, MAX_SIGNALS_KEPT } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import type { InsightRow } from '@/lib/server/event-log/batch-rows';

/**
 * The insight of a log line as it is stored.
 * The session that it names is stored even if it is another agent's; '' if the name can't be a session's id.
 */
export function insightRow(
  position: number,
  { agentId, occurredAt, log }: LogRecord,
  { signal, value, outcome, source, detail, session }: ReadInsight,
): InsightRow {
  const said = detail ?? truncateText(log.message, MAX_INSIGHT_DETAIL);
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
export function keptInsights(rows: readonly InsightRow[]): InsightRow[] {
  const signals = new Map<string, number>();
  const kept = rows.toReversed().filter(({ agentId, isFailure: wantsLook }) => {
    if (wantsLook) return true;
    const count = (signals.get(agentId) ?? 0) + 1;
    signals.set(agentId, count);
    return count <= MAX_SIGNALS_KEPT;
  });
  return kept.reverse();
}
