import { cutText } from '@/lib/protocol/cut-text';
import { MAX_ID_LENGTH } from '@/lib/protocol/limits';
import type { Logger } from '@/lib/runner/logger/logger';

/** A hook died: the line that says so is FATAL, so that every level lets it through, and wants a person's look. */
export function hookFailure(logger: Logger, hook: string, error: string, sessionId: string | null): void {
  const name = hook.toWellFormed().replaceAll('\0', '\uFFFD');
  const subject = cutText(name, MAX_ID_LENGTH - 'hook:'.length) || 'unknown';
  const insight = { kind: 'hook_fatal', subject, ...(sessionId === null ? {} : { sessionId }) } as const;
  logger.child(`hook:${subject}`).log('fatal', error, { insight });
}
