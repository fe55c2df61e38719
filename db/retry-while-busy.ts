import { databaseErrorCode } from './database-error';

/**
 * Keeps trying while another process has the database locked. It waits here and not in SQLite's busy handler, because a
 * transaction begins on the event loop, which would wait too.
 *
 * @throws what `attempt` last threw, after `timeoutMs` or if it is any other error
 */
export async function retryWhileBusy<T>(attempt: () => Promise<T>, timeoutMs: number): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let delayMs = 2; ; delayMs = Math.min(delayMs * 2, 100)) {
    try {
      return await attempt();
    } catch (error) {
      if (databaseErrorCode(error) !== 'SQLITE_BUSY' || performance.now() + delayMs > deadline) throw error;
      // jitter, so that two processes do not try in step
      await new Promise((resolve) => setTimeout(resolve, delayMs * (0.5 + Math.random() / 2)));
    }
  }
}
