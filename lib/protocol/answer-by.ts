import { MAX_TIME } from './limits';

/**
 * Until when a request can be answered, on the server's clock: for as long from when it came as its agent had said it
 * would wait. However far apart their clocks are, the agent never waits longer.
 *
 * @param expiresAt as its agent said
 * @returns null if it does not expire; one that would have before it was asked says nothing
 */
export function answerBy(expiresAt: unknown, asked: { occurredAt: number; receivedAt: number }): number | null {
  const { occurredAt, receivedAt } = asked;
  if (typeof expiresAt !== 'number' || !(expiresAt > occurredAt && expiresAt <= MAX_TIME)) return null;
  return Math.min(MAX_TIME, receivedAt + expiresAt - occurredAt);
}
