import type { Sight } from '@/lib/access/sight';
import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/log-levels';
import type { Position } from '@/lib/protocol/position';
import type { AgentLogLevel } from '@/lib/protocol/read-models';
import { readLogAgent } from './read-agents';

/** `GET /agents/:id/log-level` */
export interface LogLevelDetail extends AgentLogLevel {
  position: Position;
  /** All levels, the most verbose first. */
  levels: readonly LogLevel[];
}

/** @returns null when there is no such agent */
export async function readLogLevel(sight: Sight, agentId: string): Promise<LogLevelDetail | null> {
  const found = await readLogAgent(sight, agentId);
  return found === null ? null : { position: found.position, ...found.agent.logLevel, levels: LOG_LEVELS };
}
