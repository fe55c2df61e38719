import type { WriteTransaction } from '@/db/write-queue';
import { settle } from './acknowledge';
import { commandFromRow, type StoredCommand } from './command-row';

/** Most commands of one transaction. */
const MAX_EXPIRED = 100;

/**
 * Gives up what nobody acted on in time, and says so where it was asked.
 * @returns how many; call again while it is not 0
 */
export async function expireCommands(transaction: WriteTransaction, now: number): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands WHERE state IN ('queued', 'delivered') AND expires_at <= ?
          ORDER BY expires_at LIMIT ${MAX_EXPIRED}`,
    args: [now],
  });
  for (const stored of rows.map(commandFromRow)) {
    // It is in the agent's input, and nobody can say that the agent will not read it.
    if (stored.command.type === 'message' && stored.state === 'delivered') {
      await settle(transaction, stored, 'done', null, undefined, now);
    } else await settle(transaction, stored, 'expired', reasonOf(stored), undefined, now);
  }
  return rows.length;
}

function reasonOf({ command, state }: StoredCommand): string {
  if (state === 'delivered') return 'the runner took it and never said what became of it';
  const seconds = Math.round((command.expiresAt - command.createdAt) / 1_000);
  const minutes = Math.round(seconds / 60);
  const span =
    seconds < 120 ? `${seconds} seconds` : minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 1440)} days`;
  return `no runner took it within ${span}`;
}
