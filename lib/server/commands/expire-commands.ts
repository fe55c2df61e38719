import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';
import { settle } from './acknowledge';
import { commandFromRow, type StoredCommand } from './command-row';

export interface Hour {
  now: number;
  /**
   * Whether the clock can be trusted. A message waits for days and is not sent again once given up, so any other clock
   * leaves it alone; other commands would be too late in any case.
   */
  isSure: boolean;
}

export function expiredCommands({ now, isSure }: Hour): DueRows {
  const which = isSure ? '' : `AND type <> 'message'`;
  const where = `state IN ('queued', 'delivered') AND expires_at <= ?1 ${which}`;
  return { table: 'commands', key: 'id', where, args: [now], order: 'expires_at' };
}

/**
 * Gives up commands that nobody acted on in time, and says so in their sessions.
 * @returns how many; call again while it is not 0
 */
export async function expireCommands(
  transaction: WriteTransaction,
  hour: Hour,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { now } = hour;
  const { rows } = await transaction.execute(selectDue(expiredCommands(hour), choice, '*'));
  for (const stored of rows.map(commandFromRow)) {
    // It is in the agent's input, and nobody can say that the agent will not read it.
    if (stored.command.type === 'message' && stored.state === 'delivered') {
      await settle(transaction, stored, 'done', null, now);
    } else await settle(transaction, stored, 'expired', reasonOf(stored), now);
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
