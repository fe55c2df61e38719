import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/log-levels';
import type { Position } from '@interlude/protocol/position';
import type { AgentLogLevel } from '@interlude/protocol/read-models';
import type { ReadScope } from '@/lib/server/access/request-context';
import { readLogAgent } from './read-agents';

/** `GET /agents/:id/log-level` */
export interface LogLevelDetail extends AgentLogLevel {
  position: Position;
  /** All levels, the most verbose first. */
  levels: readonly LogLevel[];
}

/** @returns null when there is no such agent */
export async function readLogLevel(sight: ReadScope, agentId: string): Promise<LogLevelDetail | null> {
  const found = await readLogAgent(sight, agentId);
  return found === null ? null : { position: found.position, ...found.agent.logLevel, levels: LOG_LEVELS };
}
