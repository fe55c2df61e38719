import type { LogLevelDetail } from '@interlude/protocol/read-models';
import { LOG_LEVELS } from '@interlude/protocol/record-vocabulary';
import type { Sight } from '@/lib/server/access/sight';
import { readLogAgent } from './read-agents';

/** @returns null when there is no such agent */
export async function readLogLevel(sight: Sight, agentId: string): Promise<LogLevelDetail | null> {
  const found = await readLogAgent(sight, agentId);
  return found === null ? null : { position: found.position, ...found.agent.logLevel, levels: LOG_LEVELS };
}
