import type { InsightRow } from '@/lib/event-log/batch-rows';
import { cutText } from '@/lib/protocol/cut-text';
import type { LogRecord } from '@/lib/protocol/envelope';
import type { ReadInsight } from '@/lib/protocol/insight';
import { MAX_INSIGHT_DETAIL } from '@/lib/protocol/limits';
import { isFailure } from '@/lib/protocol/signals';

/**
 * What a log line tells beside its words, as it is kept.
 * @param sessionId the session that is meant, where it is the agent's own
 */
export function insightRow(
  position: number,
  { agentId, occurredAt, log }: LogRecord,
  { signal, value, outcome, source, detail }: ReadInsight,
  sessionId: string | null,
): InsightRow {
  const said = detail ?? cutText(log.message, MAX_INSIGHT_DETAIL);
  return {
    position,
    agentId,
    sessionId,
    signal,
    value,
    outcome,
    source: source ?? log.component,
    detail: said.trim() === '' ? '(no detail)' : said,
    isFailure: isFailure({ signal, outcome }, log.level),
    occurredAt,
  };
}
