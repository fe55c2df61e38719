import type { Outbox } from '../outbox/outbox';
import { createLogger, type Logger, type LoggerOptions } from './logger';

/**
 * A logger whose lines go straight to an outbox.
 *
 * Ordering: what is logged and enqueued in one tick is stored in one transaction, in the order of the calls.
 * Failure: a line that the outbox does not take stands in the file alone.
 */
export function createOutboxLogger(options: Omit<LoggerOptions, 'onRecord'>, outbox: Pick<Outbox, 'enqueue'>): Logger {
  const { agentId } = options;
  return createLogger({
    ...options,
    onRecord: ({ at, ...log }) => {
      outbox.enqueue({ kind: 'log', agentId, occurredAt: at, log }).catch(() => undefined);
    },
  });
}
