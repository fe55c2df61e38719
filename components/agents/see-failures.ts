import { postJson } from '@/components/live/fetch-json';
import type { Position } from '@/lib/protocol/position';
import type { InsightsSeen } from '@/lib/protocol/read-models';

/** Tells the server that a person has looked at an agent's failures up to this one. */
export function seeFailures(agentId: string, upTo: Position): Promise<InsightsSeen> {
  return postJson(`/agents/${encodeURIComponent(agentId)}/insights/seen`, { upTo });
}
