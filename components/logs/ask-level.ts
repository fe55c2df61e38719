import type { LogLevelAnswer } from '@interlude/protocol/commands';
import type { LogLevel } from '@interlude/protocol/record-vocabulary';
import { putJson, RequestError } from '@/components/live/fetch-json';

export interface LevelChoice {
  /** Null: the runner's default. */
  level: LogLevel | null;
  /** Null: until it is changed. Left out: what is usual for the level. */
  ttlSeconds?: number | null;
}

export type LevelAnswer = { kind: 'asked' } | { kind: 'failed'; reason: string };

/** Asks an agent's runner for a level. To ask again is no harm: the newest wish counts. */
export async function askLevel(agentId: string, choice: LevelChoice): Promise<LevelAnswer> {
  const path = `/agents/${encodeURIComponent(agentId)}/log-level`;
  try {
    await putJson<LogLevelAnswer>(path, choice);
    return { kind: 'asked' };
  } catch (error) {
    const reason = error instanceof RequestError ? error.message : 'The server can’t be reached. Try again.';
    return { kind: 'failed', reason };
  }
}
