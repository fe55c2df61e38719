import type { InsightRow } from '@/lib/event-log/batch-rows';
import { cutText } from '@/lib/protocol/cut-text';
import type { LogRecord } from '@/lib/protocol/envelope';
import { MAX_INSIGHT_DETAIL } from '@/lib/protocol/limits';

/**
 * What a log line tells of a failure, as it is kept.
 * @param sessionId the session that is meant, where it is the agent's own
 */
export function insightRow(position: number, record: LogRecord, sessionId: string | null): InsightRow | null {
  const { agentId, occurredAt, log } = record;
  if (log.insight === undefined) return null;
  const { kind, subject } = log.insight;
  const detail = cutText(log.message, MAX_INSIGHT_DETAIL);
  return { position, agentId, sessionId, kind, subject, detail, occurredAt };
}
