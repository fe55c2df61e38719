import { HOOK_FATAL } from '@interlude/protocol/insight';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import type { Logger } from '../logger/logger';

/** A hook that died, and what it said about that. */
export interface HookFailure {
  hook: string;
  error: string;
}

export function hookFailure(hook: string, error: string): HookFailure {
  const name = hook.toWellFormed().replaceAll('\0', '\uFFFD').trim();
  return {
    hook: truncateText(name, MAX_ID_LENGTH - 'hook:'.length) || 'unknown',
    error: error.trim() === '' ? '(no detail)' : error,
  };
}

/** Its log line is FATAL, so that every level lets it through, and needs a person's attention. */
export function logHookFailure(logger: Logger, { hook, error }: HookFailure, sessionId: string | null): void {
  const insight = { signal: HOOK_FATAL, outcome: 'failed', source: hook, ...(sessionId === null ? {} : { sessionId }) };
  logger.child(`hook:${hook}`).log('fatal', error, { insight });
}
